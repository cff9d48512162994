// Damages footers and column chunks of Parquet files, and reads them with the compiled reader, under sanitizers.
//
// Arguments: seed, seconds, and the files to begin with. A file's first byte specifies what it holds: F a footer; C a column
// chunk (B: its Bloom filter; I: its page index, behind how many bytes its first part has instead of codec and level), behind
// its codec, layout (see `layout_of`) and greatest level (a byte each) and its number of rows (8 bytes, little-endian); N one
// inside of structs and lists, with its greatest repetition level, the definition level of an element (a byte each) and its
// number of entries (8 bytes) after these; W a whole file of the columns int64, float, string and a list of structs of an int64
// and a string, behind the same head as C.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "parquet/bloom_filter.h"
#include "parquet/chunk_stream.h"
#include "parquet/float_bounds.h"
#include "parquet/footer.h"
#include "parquet/footer_check.h"
#include "parquet/many_files.h"
#include "parquet/nested_pages.h"
#include "parquet/page_index.h"
#include "parquet/schema.h"

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
    if (read) {
        for (const std::string_view &text : {facts.schema, facts.metadata}) {
            Bytes part(text.begin(), text.end());
            part.shrink_to_fit();
            std::vector<SchemaElement> elements;
            std::vector<std::pair<std::string_view, std::string_view>> pairs;
            SchemaReader(part.data(), part.data() + part.size()).elements(elements);
            SchemaReader(part.data(), part.data() + part.size()).pairs(pairs);
            uint8_t sum = 0;  // reads all bytes that the texts cover
            for (const SchemaElement &e : elements) for (const char c : e.name) sum += static_cast<uint8_t>(c);
            for (const auto &[key, value] : pairs) for (const char c : key) sum += static_cast<uint8_t>(c) + value.size();
            state ^= sum == 255;  // or the compiler leaves it out
        }
    }
    Bytes changed(exact);
    changed.shrink_to_fit();
    FloatBounds bounds(changed.data(), changed.data() + changed.size());
    if (bounds.find()) bounds.hide(bounds.writer().size() % 2);
    const int problem = FooterCheck(exact.data(), exact.data() + exact.size()).check();
    return read && !problem;
}

// Memory for what is decoded, with the bytes behind it that may be touched.
static uint8_t *room(int64_t size) { return static_cast<uint8_t *>(std::malloc(size + SLACK)); }

// Return how values lie in memory and in pages, of a seed's byte: up to 16 the bytes of those that lie alike.
static ValueLayout layout_of(uint8_t code) {
    static const ValueLayout OTHERS[] = {{1, ValueLayout::BITS}, {1, 4}, {2, 4}, {16, 4}, {16, 8}, {8, ValueLayout::INSTANTS}};
    return code <= 16 ? ValueLayout{code} : code < 40 ? OTHERS[code - 32] : ValueLayout{16, 40 - code};
}

// Choose a test that values of a layout may be given, of two to four of its kinds, with keys in memory of exactly their size.
static void make_single(const ValueLayout &layout, Test &test, Bytes &keys, std::vector<int32_t> &ends, bool of_values) {
    const int width = layout.width;
    if (layout.is_bits()) {
        static const int KINDS_OF_BITS[3] = {IN_RANGE, IS_NULL, HAS_VALUE};
        test.kind = KINDS_OF_BITS[of_values ? 0 : below(3)];
        test.least = below(2), test.most = below(2);
        return;
    }
    static const int KINDS[2][5] = {{IN_SET, LIKE_PATTERN, IS_BELOW, IS_NULL, HAS_VALUE}, {IN_SET, IN_RANGE, IN_RANGE, IS_NULL, HAS_VALUE}};
    test.kind = KINDS[width != 0][below(of_values ? 3 : 5)];
    if (width == 16) {
        test.kind = KINDS[1][1 + below(of_values ? 1 : 4)];
        test.is_wide = true;
        test.wide_least = Wide(static_cast<int64_t>(next_random()));
        test.wide_most = Wide(next_random(), next_random());
        test.least = static_cast<int64_t>(test.wide_least.low);
        test.most = INT64_MAX;
        return;
    }
    if (width) {
        test.is_float = width >= 4 && below(2);
        test.least = test.most = width == 4   ? static_cast<int32_t>(next_random())
                                 : width == 8 ? static_cast<int64_t>(next_random())
                                              : static_cast<int8_t>(next_random());
        test.low = -1e300, test.high = 1e300, test.with_nan = below(2);
        if (below(2)) test.least = width == 4 ? INT32_MIN : width == 8 ? INT64_MIN : INT8_MIN;
        if (test.kind != IN_SET) return;
        test.num_keys = below(4);
        for (int64_t k = 0; k < test.num_keys; k++) {
            const double real = static_cast<double>(k);
            uint8_t key[8];
            if (test.is_float) std::memcpy(key, &real, 8);
            else std::memcpy(key, &k, 8);
            keys.insert(keys.end(), key, key + 8);
        }
    } else if (test.kind == IN_SET || test.kind == LIKE_PATTERN || test.kind == IS_BELOW) {
        test.has_wildcard = test.kind == LIKE_PATTERN && below(2);
        test.num_keys = test.kind == LIKE_PATTERN ? (test.has_wildcard ? 1 : 2) + below(3) : test.kind == IS_BELOW ? 1 : below(4);
        test.with_key = below(2);
        ends.push_back(0);
        for (int64_t k = 0; k < test.num_keys; k++) {
            const size_t before = keys.size();
            keys.resize(before + below(12), static_cast<uint8_t>('a' + k));
            for (size_t i = before; test.has_wildcard && i < keys.size(); i++)
                if (!below(3)) keys[i] = Test::WILDCARD;
            ends.push_back(static_cast<int32_t>(keys.size()));
        }
        test.ends = ends.data();
    }
    keys.shrink_to_fit();
    if (!keys.empty()) test.keys = keys.data();
    if (test.kind == IN_SET) test.hash_keys();
    if (test.kind == IS_BELOW) test.first = Test::head_of(test.keys, keys.size());
}

// Tests that others are made of, for as long as a case takes.
struct Part {
    Test test;
    Bytes keys;
    std::vector<int32_t> ends;
};
static std::vector<std::unique_ptr<Part>> parts_of_case;

// The same, or several of them.
static void make_test(const ValueLayout &layout, Test &test, Bytes &keys, std::vector<int32_t> &ends, int depth = 0) {
    if (below(3) || depth > 2) {
        make_single(layout, test, keys, ends, depth > 0);
    } else {
        test.kind = below(2) ? ANY_OF : ALL_OF;
        for (size_t n = below(4); n; n--) {
            parts_of_case.push_back(std::make_unique<Part>());
            Part &part = *parts_of_case.back();
            make_test(layout, part.test, part.keys, part.ends, depth + 1);
            test.parts.push_back(&part.test);
        }
    }
    if (test.is_of_levels()) return;
    test.is_negated = below(2);
    test.with_null = !depth && below(3) == 0;
}

// Return whether all rows are read; strings are requested as codes or as text.
static bool read_chunk(const Bytes &bytes, int codec, const ValueLayout &layout, int most, int64_t num_rows) {
    const int width = layout.width;
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
    job.layout = layout;
    job.most_level = most;
    job.form = width ? NUMBERS : below(2) ? CODES : STRINGS;
    job.out = room(width ? layout.bytes_of(kept) : (kept + 1) * 4);
    job.bits = most ? room((kept + 7) / 8) : nullptr;
    job.room = below(2) ? below(1 << 16) : 0;
    job.text = job.room ? room(job.room) : nullptr;
    Test test;
    std::vector<uint64_t> passed((num_rows + 63) / 64);
    Bytes keys;
    std::vector<int32_t> ends;
    if (below(2)) {
        make_test(layout, test, keys, ends);
        job.test = &test;
        job.passed = passed.data();
        if (below(2)) {  // rows are only tested
            job.form = NUMBERS;
            std::free(job.out);
            job.out = nullptr;
        }
    }
    run_job(space, source, num_rows, masked ? mask.data() : nullptr, kept, 256 << 20, job);
    std::free(job.text);
    std::free(job.out);
    std::free(job.bits);
    std::free(in);
    return job.status == DONE;
}

static void fill(std::vector<uint64_t> &mask, int64_t rows, int64_t &kept) {
    mask.assign((rows + 63) / 64, 0);
    kept = 0;
    for (int64_t i = 0; i < rows; i++) {
        const bool keep = below(3) == 0;
        mask[i / 64] |= static_cast<uint64_t>(keep) << (i % 64);
        kept += keep;
    }
}

// Bytes in memory of exactly their size, as a source.
struct Exact {
    explicit Exact(const Bytes &given) : bytes(given.begin(), given.end()) {
        bytes.shrink_to_fit();
        source.bytes = bytes.empty() ? &none : bytes.data();
        source.size = static_cast<int64_t>(bytes.size());
    }
    Exact(const Exact &) = delete;
    Exact &operator=(const Exact &) = delete;
    const uint8_t none = 0;
    Bytes bytes;
    Source source;
};

// Return whether all stretches are read; some of them, or some of their rows, may be left out.
static bool read_stretches(const Bytes &bytes, int codec, const ValueLayout &layout, int most, int64_t num_rows) {
    const int width = layout.width;
    const Exact in(bytes);
    const Source &source = in.source;
    Workspace space;
    ChunkJob chunk;
    chunk.size = source.size;
    chunk.codec = codec;
    chunk.layout = layout;
    chunk.most_level = most;
    const int form = width ? NUMBERS : below(2) ? CODES : STRINGS;
    BigDictionary big;
    ChunkStream stream(source, chunk, num_rows, 1 + below(2000), below(4000), below(2) ? &big : nullptr);
    for (int64_t first = 0, stop; first < num_rows; first = stop) {
        if (below(4) == 0) first += below(num_rows - first);
        stop = first + 1 + static_cast<int64_t>(below(num_rows - first));
        const bool masked = below(2);
        std::vector<uint64_t> mask;
        int64_t kept = stop - first;
        if (masked) fill(mask, stop - first, kept);
        ChunkJob job;
        job.layout = layout;
        job.form = form;
        job.out = room(width ? layout.bytes_of(kept) : (kept + 1) * 4);
        job.bits = most ? room((kept + 7) / 8) : nullptr;
        job.room = below(2) ? below(1 << 12) : 0;
        job.text = job.room ? room(job.room) : nullptr;
        stream.run(space, first, stop, masked ? mask.data() : nullptr, kept, 256 << 20, form == CODES && below(2), job);
        for (uint8_t *block : {job.text, job.out, job.bits}) std::free(block);
        if (job.status != DONE) return form == CODES;
    }
    return true;
}

// Return whether the chunk is read several times as chunks of neighbouring row groups.
static bool read_joined(const Bytes &bytes, int codec, const ValueLayout &layout, int most, int64_t num_rows) {
    const Exact in(bytes);
    Workspace space;
    std::vector<ChunkPart> parts(1 + below(3));
    for (ChunkPart &part : parts) {
        part.size = in.source.size;
        part.num_rows = num_rows;
        part.codec = codec;
        part.most_level = most;
    }
    const int64_t count = static_cast<int64_t>(parts.size()), total = count * num_rows;
    ChunkJob job;
    job.layout = layout;
    job.form = layout.width ? NUMBERS : STRINGS;
    job.out = room(layout.width ? layout.bytes_of(total) : (total + 1) * 4);
    job.bits = most ? room((total + 7) / 8) : nullptr;
    job.room = below(2) ? below(1 << 12) : 0;
    job.text = job.room ? room(job.room) : nullptr;
    run_joined(space, in.source, parts.data(), count, total, 256 << 20, job);
    for (uint8_t *block : {job.text, job.out, job.bits}) std::free(block);
    return job.status == DONE;
}

// Return whether the filter is used, of a chunk whose values have so many bytes.
static bool read_bloom_filter(const Bytes &bytes, int width) {
    const Exact exact(bytes);
    const Source &source = exact.source;
    const int64_t offset = below(8) ? 0 : static_cast<int64_t>(next_random());
    BloomFilter filter(source, offset, below(2) ? -1 : static_cast<int64_t>(below(2) ? source.size : below(2 * source.size + 1)));
    Test test;
    Bytes keys;
    std::vector<int32_t> ends;
    make_test(ValueLayout{width}, test, keys, ends);
    lacks_keys(filter, test, width);
    BloomFilter whole(source, 0, source.size);
    return whole.open();
}

// Return whether the index is used: the bytes of the column index (as many as the seed specifies), then of the offset index.
static bool read_page_index(const Bytes &bytes, const Bytes &seed, int64_t num_rows) {
    uint32_t size = seed[1] | seed[3] << 8;
    if (size > bytes.size()) size = static_cast<uint32_t>(bytes.size());
    // memory of exactly their sizes
    const std::vector<Bytes> parts{Bytes(bytes.begin(), bytes.begin() + size), Bytes(bytes.begin() + size, bytes.end())};
    Test test;
    Bytes keys;
    std::vector<int32_t> ends;
    make_test(ValueLayout{seed[2]}, test, keys, ends);
    std::vector<uint64_t> rows((num_rows + 63) / 64);
    return find_rows(parts[0].data(), static_cast<int64_t>(parts[0].size()), parts[1].data(),
                     static_cast<int64_t>(parts[1].size()), test, seed[2], num_rows, rows.data());
}

// Set what a seed specifies of a chunk inside of structs and lists.
static void describe(const Bytes &seed, int64_t size, NestedJob &job) {
    job.size = size;
    job.codec = seed[1];
    job.width = seed[2] > DECIMALS ? DECIMALS : seed[2];  // of decimals it has their bytes too
    job.decimal_bytes = seed[2] > DECIMALS ? seed[2] - DECIMALS : 0;
    job.most_definition = seed[3];
    job.most_repetition = seed[12];
    job.slot_definition = seed[13];
    std::memcpy(&job.num_entries, seed.data() + 14, 8);
}

// Return whether all entries are read, and lists and structs around them made of their levels.
static bool read_nested(const Bytes &bytes, const Bytes &seed, int64_t num_rows) {
    uint8_t *const in = static_cast<uint8_t *>(std::malloc(bytes.size() ? bytes.size() : 1));
    if (!bytes.empty()) std::memcpy(in, bytes.data(), bytes.size());
    std::vector<uint64_t> mask((num_rows + 63) / 64);
    for (auto &word : mask) word = next_random() & next_random();
    const bool masked = below(2);
    Workspace space;
    Source source;
    source.bytes = in;
    source.size = static_cast<int64_t>(bytes.size());
    NestedJob job;
    describe(seed, source.size, job);
    const int64_t n = job.num_entries;
    job.out = room(job.width ? n * job.width : (n + 1) * 4);
    job.bits = room((n + 7) / 8);
    std::memset(job.bits, 0, (n + 7) / 8 + SLACK);
    job.definitions = room(n);
    job.repetitions = room(job.most_repetition ? n : 0);
    job.room = masked || below(2) ? 0 : 1 + below(1 << 16);
    job.text = job.room ? room(job.room) : nullptr;
    run_nested(space, source, num_rows, masked && num_rows ? mask.data() : nullptr, 256 << 20, &job, 1);
    const bool read = job.status == DONE;
    if (read) {
        int32_t *const ends = reinterpret_cast<int32_t *>(room((job.entries + 1) * 4));
        for (int repetition = 0; repetition <= job.most_repetition; repetition++) {
            Around around;
            around.repetition = repetition;
            around.slot = static_cast<int>(below(job.most_definition + 1));
            around.there = static_cast<int>(below(job.most_definition + 1));
            around.element = static_cast<int>(below(job.most_definition + 1));
            uint8_t *const bits = room((job.entries + 8) / 8);
            std::memset(bits, 0, (job.entries + 8) / 8 + SLACK);
            if (repetition) find_lists(job.definitions, job.repetitions, job.entries, around, ends, bits);
            const bool has_lists = repetition < job.most_repetition;
            std::memset(bits, 0, (job.entries + 8) / 8 + SLACK);
            find_structs(job.definitions, has_lists ? job.repetitions : nullptr, job.entries, around, bits);
            std::free(bits);
        }
        std::free(ends);
    }
    for (uint8_t *block : {job.text, job.out, job.bits, job.definitions, job.repetitions, in}) std::free(block);
    return read;
}

// Return whether all stretches are read of a chunk inside of structs and lists.
static bool read_nested_stretches(const Bytes &bytes, const Bytes &seed, int64_t num_rows) {
    const Exact in(bytes);
    const Source &source = in.source;
    Workspace space;
    NestedJob chunk;
    describe(seed, source.size, chunk);
    NestedStream stream(source, chunk, num_rows, 1 + below(2000), below(4000), 256 << 20);
    for (int64_t first = 0, stop; first < num_rows; first = stop) {
        if (below(4) == 0) first += below(num_rows - first);
        stop = first + 1 + static_cast<int64_t>(below(num_rows - first));
        const bool masked = below(2);
        std::vector<uint64_t> mask;
        int64_t kept;
        if (masked) fill(mask, stop - first, kept);
        NestedJob job;
        describe(seed, source.size, job);
        const int64_t n = job.num_entries = below(2) ? below(20) : job.num_entries;
        uint8_t *const blocks[] = {room(job.out_bytes(n)), room((n + 7) / 8), room(n), room(n)};
        job.out = blocks[0], job.bits = blocks[1], job.definitions = blocks[2], job.repetitions = blocks[3];
        std::memset(job.bits, 0, (n + 7) / 8 + SLACK);
        stream.run(space, first, stop, masked ? mask.data() : nullptr, job);
        for (uint8_t *block : blocks) std::free(block);
        if (job.status != DONE) return false;
    }
    return true;
}

static int decompress_nothing(void *, const uint8_t *, int64_t, uint8_t *, int64_t) noexcept { return 0; }

// Return whether a file is read behind a sound one and before another: all of its rows, or those that pass tests.
static bool read_files(const Bytes &bytes, const Bytes &sound) {
    FooterFacts known;
    const uint8_t *const end = sound.data() + sound.size() - TAIL_BYTES;
    if (!FooterReader(end - load<uint32_t>(end), end).footer(known)) return false;
    static delta_memory::KeptBlocks blocks;
    FileRuns runs(below(2) ? -1 : 1 << 20, below(2) ? &blocks : nullptr, below(3000));
    Workspace space;
    int64_t left = 3;
    for (const int codec : {GZIP_NUMBER, ZSTD_NUMBER}) runs.add_codec(codec, decompress_nothing, &runs);
    FileRun *const run = runs.add(known.schema.data(), known.schema.size(), known.metadata.data(), known.metadata.size());
    static const int COLUMNS[3][2] = {{INT64, 8}, {FLOAT, 4}, {BYTE_ARRAY, 0}};
    const int num_leaves = static_cast<int>(below(3));
    for (int i = 0; i < num_leaves; i++) {
        RunLeaf *const leaf = i ? run->add_leaf(4, BYTE_ARRAY, 0, 0, 4, 1, 2) : run->add_leaf(3, INT64, 8, 0, 4, 1, 2);
        leaf->shared.push_back({0, 1, 2});
    }
    Test tests[3];
    Bytes keys[3];
    std::vector<int32_t> ends[3];
    for (int i = 0; i < 3; i++) {
        if (below(4)) run->add_column(i, COLUMNS[i][0], COLUMNS[i][1], 0, 1);
        if (below(3)) continue;
        make_test(ValueLayout{COLUMNS[i][1]}, tests[i], keys[i], ends[i]);
        for (size_t n = below(3); n; n--) run->begin_tests(below(2));
        run->add_test(i, COLUMNS[i][0], COLUMNS[i][1], 0, 1, &tests[i]);
        if (below(2)) run->end_tests();
    }
    // of exactly this size, so that reading behind it is seen
    std::vector<uint64_t> mask((3 * known.num_rows + 63) / 64);
    for (uint64_t &word : mask) word = below(3) ? next_random() & next_random() : 0;
    PickedRows picked;
    picked.mask = below(2) && !mask.empty() ? mask.data() : nullptr;
    picked.is_known = below(2);
    bool read = true;
    for (const Bytes *file : {&sound, &bytes, &sound}) {
        picked.first += picked.rows;
        picked.rows = known.num_rows;
        const int memory = memfd_create("delta-fuzz", 0);
        if (memory < 0 || write(memory, file->data(), file->size()) != static_cast<ssize_t>(file->size())) return close(memory), false;
        read &= runs.read(space, ("/proc/self/fd/" + std::to_string(memory)).c_str(), static_cast<int64_t>(file->size()), --left, picked) == 0;
        close(memory);
    }
    for (int i = 0; i < num_leaves; i++) {
        const RunLeaf &leaf = run->leaf(i);
        // of exactly this size, so that reading behind it is seen
        const Bytes definitions(leaf.definitions.data, leaf.definitions.data + leaf.entries);
        const Bytes repetitions(leaf.repetitions.data, leaf.repetitions.data + leaf.entries);
        std::vector<int32_t> ends(leaf.entries + 1);
        Bytes bits((leaf.entries + 8) / 8 + SLACK);
        Around list{1, 0, 1, 2};
        find_lists(definitions.data(), repetitions.data(), leaf.entries, list, ends.data(), bits.data());
        if (list.slots != run->rows() || list.elements != leaf.slots) return std::abort(), false;
        if (leaf.width) continue;
        const int32_t *const text_ends = reinterpret_cast<const int32_t *>(leaf.out.data);
        for (int64_t k = 0; k < leaf.slots; k++)
            if (text_ends[k] > text_ends[k + 1]) return std::abort(), false;
        if (leaf.slots && (text_ends[0] || text_ends[leaf.slots] != leaf.used)) return std::abort(), false;
    }
    return read;
}

int main(int argc, char **argv) {
    if (argc < 4) return std::fputs("usage: decoder SEED SECONDS FILE...\n", stderr), 2;
    state = std::strtoull(argv[1], nullptr, 10) * 2654435761u + 1;
    std::vector<Bytes> seeds;
    for (int i = 3; i < argc; i++) {
        std::ifstream file(argv[i], std::ios::binary);
        seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
        if (seeds.back().size() < (seeds.back().empty() || seeds.back()[0] == 'N' ? 22u : 12u)) return std::fprintf(stderr, "%s is no seed\n", argv[i]), 2;
    }
    const auto stop = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[2]));
    uint64_t cases = 0;
    for (; cases % 64 || std::chrono::steady_clock::now() < stop; cases++) {
        parts_of_case.clear();
        const Bytes &seed = seeds[cases < seeds.size() ? cases : below(seeds.size())];
        const bool is_footer = seed[0] == 'F';
        const bool is_nested = seed[0] == 'N';
        Bytes bytes(seed.begin() + (is_footer ? 1 : is_nested ? 22 : 12), seed.end());
        const bool sound = cases < seeds.size();
        if (!sound) damage(bytes);
        int64_t num_rows = 0;
        if (!is_footer) std::memcpy(&num_rows, seed.data() + 4, 8);
        if (!sound && below(8) == 0) num_rows = static_cast<int64_t>(below(2 * num_rows + 2));
        const bool read = is_footer        ? read_footer(bytes)
                          : seed[0] == 'B' ? read_bloom_filter(bytes, seed[2])
                          : seed[0] == 'I' ? read_page_index(bytes, seed, num_rows)
                          : seed[0] == 'W' ? read_files(bytes, Bytes(seed.begin() + 12, seed.end()))
                          : is_nested ? read_nested(bytes, seed, num_rows) & read_nested_stretches(bytes, seed, num_rows)
                                      : read_chunk(bytes, seed[1], layout_of(seed[2]), seed[3], num_rows) &
                                            read_joined(bytes, seed[1], layout_of(seed[2]), seed[3], num_rows) &
                                            read_stretches(bytes, seed[1], layout_of(seed[2]), seed[3], num_rows);
        if (sound && !read && (is_footer || is_nested || seed[0] == 'B' || seed[0] == 'I' || seed[2])) {
            return std::fprintf(stderr, "%s is not read although it is not damaged\n", argv[3 + cases]), 2;
        }
    }
    std::printf("%llu cases\n", static_cast<unsigned long long>(cases));
}
