// Damages footers and column chunks of Parquet files, and reads them with the compiled reader, under sanitizers.
//
// Arguments: seed, seconds, and the files to begin with. A file's first byte specifies what it holds: F a footer; C a column
// chunk, behind its codec, width and greatest level (a byte each) and its number of rows (8 bytes, little-endian).
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "footer_check.h"
#include "parquet_footer.h"

using namespace delta_parquet;
using Bytes = std::vector<uint8_t>;

static uint64_t state;
static uint64_t next_random() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}
static size_t below(size_t n) { return n ? next_random() % n : 0; }

static void damage(Bytes &bytes) {
    for (size_t n = 1 + below(4); n; n--) {
        if (bytes.empty()) return;
        const size_t at = below(bytes.size());
        switch (below(6)) {
            case 0: bytes[at] ^= static_cast<uint8_t>(1 << below(8)); break;
            case 1: bytes[at] = static_cast<uint8_t>(next_random()); break;
            case 2: bytes.resize(at); break;
            case 3: bytes.insert(bytes.begin() + at, 1 + below(9), 0xff); break;  // a length that is too great
            case 4: bytes.erase(bytes.begin() + at, bytes.begin() + at + below(std::min<size_t>(bytes.size() - at, 8) + 1)); break;
            default: bytes[at] = static_cast<uint8_t>(bytes[at] + (below(2) ? 1 : 255));
        }
    }
}

// Return whether the footer is read and found good.
static bool read_footer(const Bytes &bytes) {
    if (bytes.empty()) return false;
    // of exactly this size, so that reading behind it is seen
    Bytes exact(bytes.begin(), bytes.end());
    exact.shrink_to_fit();
    FooterFacts facts;
    const bool read = FooterReader(exact.data(), exact.data() + exact.size()).footer(facts);
    const int problem = FooterCheck(exact.data(), exact.data() + exact.size()).check();
    return read && !problem;
}

// Return whether all rows are read; strings are read as codes or as text, whichever comes.
static bool read_chunk(const Bytes &bytes, int codec, int width, int most, int64_t num_rows) {
    uint8_t *const in = static_cast<uint8_t *>(std::malloc(bytes.size() + SLACK));
    if (!bytes.empty()) std::memcpy(in, bytes.data(), bytes.size());
    std::memset(in + bytes.size(), 0, SLACK);
    std::vector<uint64_t> mask((num_rows + 63) / 64);
    int64_t kept = num_rows;
    const bool masked = below(2);
    if (masked) {
        kept = 0;
        for (int64_t i = 0; i < num_rows; i++) {
            const bool keep = below(3) == 0;
            mask[i / 64] |= static_cast<uint64_t>(keep) << (i % 64);
            kept += keep;
        }
    }
    Workspace space;
    ChunkReader reader(space, in, static_cast<int64_t>(bytes.size()), codec, width, most, num_rows,
                       masked ? mask.data() : nullptr, kept);
    Rows rows;
    uint8_t *const bits = most ? static_cast<uint8_t *>(std::malloc((num_rows + 7) / 8 + SLACK)) : nullptr;
    if (width) {
        uint8_t *const out = static_cast<uint8_t *>(std::malloc(kept * width + SLACK));
        read_values(reader, width, num_rows, out, bits, rows);
        std::free(out);
    } else if (below(2)) {
        uint8_t *const out = static_cast<uint8_t *>(std::malloc(kept * 4 + SLACK));
        read_codes(reader, num_rows, out, bits, rows);
        std::free(out);
    } else {
        const int64_t room = 1 << 16;
        int32_t *const ends = static_cast<int32_t *>(std::calloc(1, (kept + 1) * 4 + SLACK));
        uint8_t *const data = static_cast<uint8_t *>(std::malloc(room + SLACK));
        int64_t used = 0, more = 0;
        read_text(reader, num_rows, ends, data, room, bits, rows, used, more, false);
        std::free(ends);
        std::free(data);
    }
    std::free(bits);
    std::free(in);
    return rows.done == num_rows;
}

int main(int argc, char **argv) {
    if (argc < 4) return std::fputs("usage: decoder SEED SECONDS FILE...\n", stderr), 2;
    state = std::strtoull(argv[1], nullptr, 10) * 2654435761u + 1;
    std::vector<Bytes> seeds;
    for (int i = 3; i < argc; i++) {
        std::ifstream file(argv[i], std::ios::binary);
        seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
        if (seeds.back().size() < 12) return std::fprintf(stderr, "%s is no seed\n", argv[i]), 2;
    }
    const auto stop = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[2]));
    uint64_t cases = 0;
    for (; cases % 64 || std::chrono::steady_clock::now() < stop; cases++) {
        const Bytes &seed = seeds[cases < seeds.size() ? cases : below(seeds.size())];
        const bool is_footer = seed[0] == 'F';
        Bytes bytes(seed.begin() + (is_footer ? 1 : 12), seed.end());
        const bool sound = cases < seeds.size();
        if (!sound) damage(bytes);
        int64_t num_rows = 0;
        if (!is_footer) std::memcpy(&num_rows, seed.data() + 4, 8);
        if (!sound && below(8) == 0) num_rows = static_cast<int64_t>(below(2 * num_rows + 2));
        const bool read = is_footer ? read_footer(bytes) : read_chunk(bytes, seed[1], seed[2], seed[3], num_rows);
        if (sound && !read && (is_footer || seed[2])) {
            return std::fprintf(stderr, "%s is not read although it is not damaged\n", argv[3 + cases]), 2;
        }
    }
    std::printf("%llu cases\n", static_cast<unsigned long long>(cases));
}
