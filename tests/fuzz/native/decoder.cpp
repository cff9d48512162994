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

// Memory for what is decoded, with the bytes behind it that may be touched.
static uint8_t *room(int64_t size) { return static_cast<uint8_t *>(std::malloc(size + SLACK)); }

// Return whether all rows are read; strings are requested as codes or as text.
static bool read_chunk(const Bytes &bytes, int codec, int width, int most, int64_t num_rows) {
    // memory of exactly this size
    uint8_t *const in = static_cast<uint8_t *>(std::malloc(bytes.size() ? bytes.size() : 1));
    if (!bytes.empty()) std::memcpy(in, bytes.data(), bytes.size());
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
    Source source;
    source.bytes = in;
    source.size = static_cast<int64_t>(bytes.size());
    ChunkJob job;
    job.size = source.size;
    job.codec = codec;
    job.width = width;
    job.most_level = most;
    job.form = width ? NUMBERS : below(2) ? CODES : STRINGS;
    job.out = room(width ? kept * width : (kept + 1) * 4);
    job.bits = most ? room((kept + 7) / 8) : nullptr;
    job.room = below(2) ? below(1 << 16) : 0;
    job.text = job.room ? room(job.room) : nullptr;
    Range range;
    std::vector<uint64_t> passed((num_rows + 63) / 64);
    if (width && below(2)) {
        range.is_float = below(2);
        range.least = range.most = width == 4 ? static_cast<int32_t>(next_random()) : static_cast<int64_t>(next_random());
        range.low = -1e300, range.high = 1e300, range.with_nan = below(2);
        if (below(2)) range.least = width == 4 ? INT32_MIN : INT64_MIN;
        job.range = &range;
        job.passed = passed.data();
    }
    run_job(space, source, num_rows, masked ? mask.data() : nullptr, kept, 256 << 20, job);
    std::free(job.text);
    std::free(job.out);
    std::free(job.bits);
    std::free(in);
    return job.status == DONE;
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
