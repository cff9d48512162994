// Many Parquet files of a few schemas, read in one call. The columns of all files of a schema are decoded into one output; of
// nested columns the levels and values. With tests, only rows that pass them are decoded. Small files are read whole, of
// larger ones the required column chunks.
//
// A file with an unknown schema, an unsupported encoding or codec, a row group that is too large, or damage, and one that
// can't be read, ends the run before it: the output contains nothing of it, and it is read with PyArrow.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "memory/kept_memory.h"
#include "platform/files.h"
#include "page_index.h"
#include "footer.h"
#include "nested_pages.h"
#include "chunk_reader.h"

namespace delta_parquet {

enum { MAGIC_BYTES = 4, TAIL_BYTES = 8 };
const int MOST_CODEC = 8, GZIP_NUMBER = 2, ZSTD_NUMBER = 6;  // numbers of parquet.thrift
enum PhysicalType { INT32 = 1, INT64 = 2, FLOAT = 4, DOUBLE_TYPE = 5, BYTE_ARRAY = 6 };
const int64_t KNOWN_ENCODINGS = 1 << PLAIN | 1 << PLAIN_DICTIONARY | 1 << RLE | 1 << 4 /* BIT_PACKED */ | 1 << DELTA_BINARY_PACKED |
                                1 << DELTA_LENGTH_BYTE_ARRAY | 1 << DELTA_BYTE_ARRAY | 1 << RLE_DICTIONARY | 1 << BYTE_STREAM_SPLIT;
const int64_t MOST_TEXT_OF_RUN = int64_t(64) << 20;
// If a file is not read whole, its last bytes are read first; mostly they contain the footer.
const int64_t FOOTER_BYTES = int64_t(64) << 10;
const int64_t CHUNK_WINDOW = int64_t(256) << 10;

// The memory of all columns: large blocks come from the reused ones, if there are any.
struct Memory {
    delta_memory::KeptBlocks *blocks = nullptr;
    int64_t least_block = 0;
    // The ratio of all files to those read so far, and the most rows of all.
    double files = 1;
    int64_t most_rows = INT64_MAX;

    // Return the estimated ratio of the final size to the size of the first `rows` rows.
    double ahead(int64_t rows) const {
        const double most = (static_cast<double>(most_rows) + rows / 2) / std::max<int64_t>(rows, 1);
        return 1.05 * std::max(1.0, std::min(files, most));
    }
};

// Memory whose content is preserved when it grows.
class Growing {
   public:
    explicit Growing(Memory &memory) : memory_(memory) {}
    Growing(const Growing &) = delete;
    Growing &operator=(const Growing &) = delete;
    ~Growing() { drop(data, size_, is_lent_); }
    // Make room for `size` bytes and SLACK after them.
    bool room(int64_t size) { return size + SLACK <= size_ || grow(std::max(size + SLACK, 2 * size_)); }
    // Make room for `size` bytes and for the estimated growth: `ahead * size` bytes, at most MOST_AHEAD more than `size`.
    bool room(int64_t size, double ahead) {
        if (size + SLACK <= size_) return true;
        const double expected = std::min<double>(ahead * size, size + MOST_AHEAD);
        return grow(std::max(size, static_cast<int64_t>(expected)) + SLACK);
    }
    // Replace large memory that is mostly unused by smaller memory.
    void fit(int64_t used) {
        if (!is_lent_ || 4 * (used + SLACK) >= size_) return;
        int64_t size = used + SLACK;
        bool is_lent = false;
        uint8_t *const fitting = take(size, is_lent);
        if (!fitting) return;
        std::memcpy(fitting, data, used + SLACK);
        replace(fitting, size, is_lent);
    }
    uint8_t *data = nullptr;
    int64_t size() const { return size_; }

   private:
    enum : int64_t { MOST_AHEAD = 16 << 20 };

    // Return other memory of at least `size` bytes, and set `size` to its bytes.
    uint8_t *take(int64_t &size, bool &is_lent) const {
        size_t found = size;
        void *const block = size >= memory_.least_block && memory_.blocks ? memory_.blocks->take(found) : nullptr;
        is_lent = block != nullptr;
        if (!block) return static_cast<uint8_t *>(std::malloc(size));
        size = found;
        return static_cast<uint8_t *>(block);
    }
    bool grow(int64_t size) {
        if (!is_lent_ && (size < memory_.least_block || !memory_.blocks)) {
            uint8_t *const grown = static_cast<uint8_t *>(std::realloc(data, size));
            if (!grown) return false;
            data = grown;
            size_ = size;
            return true;
        }
        bool is_lent = false;
        uint8_t *const grown = take(size, is_lent);
        if (!grown) return false;
        if (size_) std::memcpy(grown, data, size_);
        replace(grown, size, is_lent);
        return true;
    }
    void replace(uint8_t *other, int64_t size, bool is_lent) {
        drop(data, size_, is_lent_);
        data = other;
        size_ = size;
        is_lent_ = is_lent;
    }
    void drop(uint8_t *old, int64_t size, bool is_lent) {
        if (is_lent) memory_.blocks->give(old, size);
        else std::free(old);
    }

    Memory &memory_;
    int64_t size_ = 0;
    bool is_lent_ = false;
};

// One column: its place in the files, and its decoded values.
struct RunColumn {
    RunColumn(int leaf, int type, const ValueLayout &layout, int most_level, Memory &memory)
        : memory(memory), leaf(leaf), type(type), layout(layout), most_level(most_level), data(memory), ends(memory), bits(memory) {}
    // Make room for `rows` rows, and for the estimated rows of further files.
    bool room_for_all(int64_t rows) {
        const double ahead = memory.ahead(rows);
        return layout.width ? data.room(layout.bytes_of(rows), ahead)
                            : data.room(text, ahead) && ends.room((rows + 1) * static_cast<int64_t>(sizeof(int32_t)), ahead);
    }
    // Release the memory beyond `rows` rows.
    void fit(int64_t rows) {
        data.fit(layout.width ? layout.bytes_of(rows) : text);
        ends.fit(layout.width ? 0 : (rows + 1) * static_cast<int64_t>(sizeof(int32_t)));
        bits.fit(has_bits ? (rows + 7) / 8 : 0);
    }
    Memory &memory;
    const int leaf, type;
    const ValueLayout layout;
    const int most_level;
    Growing data, ends, bits;
    int64_t text = 0, nulls = 0;
    bool has_bits = false;
};

// A column inside of structs, lists and maps: the levels of the entries and the values of all files, as of one chunk. See
// NestedJob.
struct RunLeaf {
    // A list around the column. All columns in it must have the same number of elements: entries whose repetition level is at
    // most `repetition` and whose definition level is at least `slot`.
    struct Shared { int key, repetition, slot; };

    RunLeaf(int leaf, int type, int width, int decimal_bytes, int most_definition, int most_repetition, int slot_definition, Memory &memory)
        : leaf(leaf), type(type), width(width), decimal_bytes(decimal_bytes), most_definition(most_definition),
          most_repetition(most_repetition), slot_definition(slot_definition), definitions(memory), repetitions(memory), out(memory),
          bits(memory), text(memory) {}
    int64_t out_bytes(int64_t n) const { return width ? n * width : (n + 1) * static_cast<int64_t>(sizeof(int32_t)); }
    int64_t bytes() const { return entries * (1 + (most_repetition > 0)) + out_bytes(slots) + used; }
    void fit() {
        definitions.fit(entries);
        repetitions.fit(most_repetition ? entries : 0);
        out.fit(slots || width ? out_bytes(slots) : 0);
        bits.fit(has_bits ? (slots + 7) / 8 : 0);
        text.fit(used);
    }

    const int leaf, type, width, decimal_bytes, most_definition, most_repetition, slot_definition;
    std::vector<Shared> shared;
    Growing definitions, repetitions, out, bits, text;
    int64_t entries = 0, slots = 0, nulls = 0, used = 0;
    bool has_bits = false;
};

// A test of the values of a column; rows pass if all tests do. The caller owns the test itself.
struct RunTest {
    int leaf, type;
    ValueLayout layout;
    int most_level;
    const Test *test;
    RunColumn *column;  // the column among those returned that is the same one, if there is one

    bool passes_nulls() const { return test->kind == IS_NULL; }
};

// A test, or several, which all have to pass, or any.
struct RunTests {
    enum Kind { ONE, ALL, ANY };
    explicit RunTests(Kind kind) : kind(kind) {}

    const Kind kind;
    RunTest one{};
    std::vector<std::unique_ptr<RunTests>> parts;
};

// The current file: all of its bytes, or a descriptor.
struct FileBytes {
    const uint8_t *data = nullptr;
    Source source;
    int64_t size = 0;
};

// The requested rows of a file: `rows` bits of a mask from bit `first` on; without a mask, all rows.
struct PickedRows {
    const uint64_t *mask = nullptr;
    int64_t first = 0, rows = 0;
    bool is_known = false;  // whether the file certainly has `rows` rows

    bool any() const {
        for (int64_t at = 0; at < rows; at += 64)
            if (word(at)) return true;
        return false;
    }
    // Write the bits of `n` rows from `start` on, as bits from 0 on, and return how many of them are set.
    int64_t cut(int64_t start, int64_t n, std::vector<uint64_t> &out) const {
        int64_t count = 0;
        out.assign((n + 63) / 64 + 1, 0);
        for (int64_t at = 0; at < n; at += 64) {
            uint64_t bits = word(start + at);
            if (n - at < 64) bits &= (UINT64_C(1) << (n - at)) - 1;
            out[at / 64] = bits;
            count += __builtin_popcountll(bits);
        }
        return count;
    }

   private:
    // Return the bits of the rows from `row` on; those after the last row are zero.
    uint64_t word(int64_t row) const {
        const int64_t at = first + row, left = rows - row;
        uint64_t bits = mask[at / 64] >> (at % 64);
        if (at % 64 && left > 64 - at % 64) bits |= mask[at / 64 + 1] << (64 - at % 64);
        return left < 64 ? bits & ((UINT64_C(1) << left) - 1) : bits;
    }
};

// Functions that decompress pages, by the codec's number in parquet.thrift; nullptr for codecs that are compiled in.
struct ForeignCodecs {
    Decompress decompress = nullptr;
    void *codecs[MOST_CODEC] = {};
    bool has(int64_t codec) const { return codec >= 0 && codec < MOST_CODEC && codecs[codec]; }
};

// State that the runs of all schemas share.
struct Shared {
    Workspace *space = nullptr;
    ForeignCodecs foreign;
    Memory memory;
};

// The columns of the files of one schema.
class FileRun {
   public:
    FileRun(Shared &shared, const char *schema, size_t schema_size, const char *metadata, size_t metadata_size)
        : shared_(shared), schema_(schema, schema_size), metadata_(metadata, metadata_size) {}
    ~FileRun() {
        for (RunColumn *c : columns_) delete c;
        for (RunLeaf *l : leaves_) delete l;
    }
    FileRun(const FileRun &) = delete;
    FileRun &operator=(const FileRun &) = delete;

    void add_column(int leaf, int type, int width, int stored, int most_level) {
        columns_.push_back(new RunColumn(leaf, type, ValueLayout{width, stored}, most_level, shared_.memory));
    }
    RunLeaf *add_leaf(int leaf, int type, int width, int decimal_bytes, int most_definition, int most_repetition, int slot_definition) {
        leaves_.push_back(new RunLeaf(leaf, type, width, decimal_bytes, most_definition, most_repetition, slot_definition, shared_.memory));
        return leaves_.back();
    }
    // Begin a test whose parts are added up to `end_tests`; rows pass any of them, or all.
    void begin_tests(bool is_any) {
        RunTests &around = *open_.back();
        around.parts.push_back(std::make_unique<RunTests>(is_any ? RunTests::ANY : RunTests::ALL));
        open_.push_back(around.parts.back().get());
    }
    void end_tests() {
        if (open_.size() > 1) open_.pop_back();
    }
    // Precondition: all columns were added.
    void add_test(int leaf, int type, int width, int stored, int most_level, const Test *test) {
        RunColumn *column = nullptr;
        for (RunColumn *c : columns_)
            if (c->leaf == leaf && c->type == type && c->layout.width == width && c->layout.stored == stored && c->most_level == most_level)
                column = c;
        open_.back()->parts.push_back(std::make_unique<RunTests>(RunTests::ONE));
        RunTest &one = open_.back()->parts.back()->one;
        one.leaf = leaf, one.type = type, one.layout = ValueLayout{width, stored}, one.most_level = most_level;
        one.test = test, one.column = column;
    }
    int64_t rows() const { return rows_; }
    // Return a column, in memory that fits it.
    RunColumn &column(int64_t i) {
        columns_[i]->fit(rows_);
        return *columns_[i];
    }
    RunLeaf &leaf(int64_t i) {
        leaves_[i]->fit();
        return *leaves_[i];
    }
    bool fits(const FooterFacts &footer) const { return footer.schema == schema_ && footer.metadata == metadata_; }

    // Append the requested rows of one file that pass. Returns false, and appends nothing, if the file has to be read with
    // PyArrow.
    bool append(const FileBytes &file, const FooterFacts &footer, const PickedRows &picked) {
        const int64_t before = rows_;
        int64_t seen = 0;
        for (const RunColumn *c : columns_) marks_.push_back({c->text, c->nulls, 0, 0});
        for (const RunLeaf *l : leaves_) marks_.push_back({l->used, l->nulls, l->entries, l->slots});
        bool good = !picked.mask || footer.num_rows == picked.rows;
        for (const GroupFacts &group : footer.groups) {
            int64_t kept = 0;
            good = good && group.num_rows >= 0 && group.num_rows <= footer.num_rows - seen &&
                   (!may_pass(tests_, group, footer) || append(file, group, picked, seen, kept));
            if (!good) break;
            seen += group.num_rows;
            rows_ += kept;
        }
        good = good && seen == footer.num_rows;
        if (!good) {
            rows_ = before;
            const Mark *mark = marks_.data();
            for (RunColumn *c : columns_) c->text = mark->text, c->nulls = mark->nulls, mark++;
            for (RunLeaf *l : leaves_) {
                l->used = mark->text, l->nulls = mark->nulls, l->entries = mark->entries, l->slots = mark->slots;
                mark++;
            }
        }
        marks_.clear();
        return good;
    }
    // Return the bytes of the columns.
    int64_t bytes() const {
        int64_t total = 0;
        for (const RunColumn *c : columns_) total += c->layout.width ? c->layout.bytes_of(rows_) : c->text + 4 * rows_;
        for (const RunLeaf *l : leaves_) total += l->bytes();
        return total;
    }

   private:
    struct Mark { int64_t text, nulls, entries, slots; };

    // Append the rows of a row group that begins with row `first` of the file.
    bool append(const FileBytes &file, const GroupFacts &group, const PickedRows &picked, int64_t first, int64_t &kept) {
        if (group.num_rows > MOST_GROUP_ROWS || rows_ + group.num_rows > MOST_RUN_ROWS) return false;
        const uint64_t *keep = nullptr;
        kept = group.num_rows;
        if (picked.mask) {
            kept = picked.cut(first, group.num_rows, keep_);
            keep = kept < group.num_rows ? keep_.data() : nullptr;
        }
        // the column of the last test is decoded once, for the test and for the result
        const RunTests *const end = tests_.parts.empty() ? nullptr : tests_.parts.back().get();
        const RunTest *const last = end && end->kind == RunTests::ONE && !end->one.passes_nulls() ? &end->one : nullptr;
        for (const auto &test : tests_.parts) {
            if (!kept) return true;
            if (!narrow(file, group, *test, keep, kept, last == &test->one ? last->column : nullptr)) return false;
            keep = keep_.data();
        }
        if (!kept) return true;
        for (RunColumn *column : columns_) {
            if (last && column == last->column) continue;
            if (!(is_null(column) ? append_nulls(*column, kept) : append(file, group, keep, kept, *column))) return false;
        }
        counts_.clear();
        for (RunLeaf *leaf : leaves_)
            if (!append(file, group, keep, kept, *leaf)) return false;
        return true;
    }

    // Return whether a row of a group may pass, by the statistics of its chunks.
    static bool may_pass(const RunTests &tests, const GroupFacts &group, const FooterFacts &footer) {
        if (tests.kind == RunTests::ONE) return may_pass(tests.one, group, footer);
        const bool is_any = tests.kind == RunTests::ANY;
        for (const auto &part : tests.parts)
            if (may_pass(*part, group, footer) == is_any) return is_any;
        return !is_any;
    }
    static bool may_pass(const RunTest &test, const GroupFacts &group, const FooterFacts &footer) {
        if (static_cast<size_t>(test.leaf) >= group.chunks.size()) return true;
        const ChunkFacts &chunk = group.chunks[test.leaf];
        if (!chunk.is_plain || chunk.type != test.type || chunk.num_values != group.num_rows) return true;
        if (test.test->is_of_levels()) return chunk.null_count != (test.passes_nulls() ? 0 : group.num_rows);
        if (test.test->with_null && chunk.null_count != 0) return true;
        const bool is_ordered = test.layout.stored == ValueLayout::AS_IN_MEMORY || test.layout.stored == ValueLayout::FLOATS;
        return !is_ordered || !footer.has_orders || !chunk.has_least || !chunk.has_most ||
               delta_parquet::may_pass(*test.test, test.layout.width, chunk.least, chunk.most);
    }

    // Return whether a column is null in all rows that pass.
    bool is_null(const RunColumn *column) const {
        for (const auto &test : tests_.parts)
            if (test->kind == RunTests::ONE && test->one.column == column && test->one.passes_nulls()) return true;
        return false;
    }

    // Reduce the rows of `keep` to those that pass, as a mask in `keep_`. A single test appends their values to a column, if
    // one is given.
    bool narrow(const FileBytes &file, const GroupFacts &group, const RunTests &tests, const uint64_t *keep, int64_t &kept, RunColumn *column) {
        if (tests.kind == RunTests::ONE) return run(file, group, tests.one, keep, kept, column);
        const size_t words = (group.num_rows + 63) / 64 + 1;
        std::vector<uint64_t> left(words), found(words);
        for (int64_t w = 0; 64 * w < group.num_rows; w++) left[w] = keep ? keep[w] : mask_word_of_all(w, group.num_rows);
        if (tests.kind == RunTests::ALL) {
            for (const auto &part : tests.parts) {
                if (!kept) break;
                if (!narrow(file, group, *part, left.data(), kept, nullptr)) return false;
                left.swap(keep_);
            }
            keep_.swap(left);
            return true;
        }
        int64_t rest = kept;
        kept = 0;
        for (const auto &part : tests.parts) {
            if (!rest) break;
            int64_t count = rest;
            if (!narrow(file, group, *part, left.data(), count, nullptr)) return false;
            for (size_t w = 0; w < words && w < keep_.size(); w++) {
                found[w] |= keep_[w];
                left[w] &= ~keep_[w];
            }
            kept += count;
            rest -= count;
        }
        keep_.swap(found);
        return true;
    }
    static uint64_t mask_word_of_all(int64_t word, int64_t n) { return n - 64 * word < 64 ? (UINT64_C(1) << (n - 64 * word)) - 1 : ~UINT64_C(0); }

    // A reader of the selected rows of a chunk, or none if the chunk has to be read with PyArrow.
    struct Opened {
        bool good = false;
        ChunkBytes bytes{nullptr, 0};
        int codec = UNCOMPRESSED;
    };
    Opened open(const FileBytes &file, const GroupFacts &group, int leaf, int type, bool is_nested = false) {
        Opened out;
        if (leaf < 0 || static_cast<size_t>(leaf) >= group.chunks.size()) return out;
        const ChunkFacts &chunk = group.chunks[leaf];
        int64_t first = chunk.data_page;
        if (chunk.dictionary_page > 0 && chunk.dictionary_page < first) first = chunk.dictionary_page;
        const bool is_foreign = shared_.foreign.has(chunk.codec);
        if (!chunk.is_plain || chunk.type != type || chunk.num_values < group.num_rows ||
            (chunk.num_values > group.num_rows && !is_nested) || (chunk.codec != 0 && chunk.codec != 1 && !is_foreign) || chunk.encodings & ~KNOWN_ENCODINGS || first < MAGIC_BYTES || chunk.compressed <= 0 || chunk.uncompressed <= 0 ||
            first > file.size || chunk.compressed > file.size - first) return out;
        shared_.space->decompress = shared_.foreign.decompress;
        shared_.space->codec = is_foreign ? shared_.foreign.codecs[chunk.codec] : nullptr;
        out.codec = chunk.codec == ZSTD_NUMBER ? ZSTD : chunk.codec == GZIP_NUMBER ? GZIP : is_foreign ? FOREIGN : chunk.codec == 1 ? SNAPPY : UNCOMPRESSED;
        out.bytes = file.data ? ChunkBytes(file.data + first, chunk.compressed)
                              : ChunkBytes(shared_.space->chunk, file.source, first, chunk.compressed, CHUNK_WINDOW);
        out.good = true;
        return out;
    }

    // Reduce `keep_` to the rows that pass, and append their values to a column, if one is given.
    bool run(const FileBytes &file, const GroupFacts &group, const RunTest &test, const uint64_t *keep, int64_t &kept, RunColumn *column) {
        const Opened opened = open(file, group, test.leaf, test.type);
        if (!opened.good) return false;
        passed_.assign((group.num_rows + 63) / 64 + 1, 0);
        // the number of rows that pass is estimated from the files before
        if (column && rows_ && !column->room_for_all(rows_)) return false;
        ChunkReader reader(*shared_.space, opened.bytes, opened.codec, test.layout, test.most_level, group.num_rows, keep, kept, test.test,
                           passed_.data(), column != nullptr);
        Status status;
        int64_t found = 0;
        while ((status = reader.next_page()) == PAGE) {
            if (column && !append_page(reader, *column, rows_ + found)) return false;
            found += reader.kept();
        }
        if (status != DONE) return false;
        keep_.swap(passed_);
        kept = found;
        return true;
    }

    bool append(const FileBytes &file, const GroupFacts &group, const uint64_t *keep, int64_t kept, RunColumn &column) {
        const Opened opened = open(file, group, column.leaf, column.type);
        if (!opened.good || !column.room_for_all(rows_ + kept)) return false;
        ChunkReader reader(*shared_.space, opened.bytes, opened.codec, column.layout, column.most_level, group.num_rows, keep, kept);
        Status status;
        int64_t done = 0;
        while ((status = reader.next_page()) == PAGE) {
            if (!append_page(reader, column, rows_ + done)) return false;
            done += reader.kept();
        }
        return status == DONE && done == kept;
    }

    bool append(const FileBytes &file, const GroupFacts &group, const uint64_t *keep, int64_t kept, RunLeaf &leaf) {
        const Opened opened = open(file, group, leaf.leaf, leaf.type, true);
        if (!opened.good) return false;
        NestedJob job;
        const int64_t n = group.chunks[leaf.leaf].num_values;
        if (n > MOST_ENTRIES || leaf.entries + n > MOST_RUN_ENTRIES) return false;
        job.codec = opened.codec;
        job.width = leaf.width;
        job.decimal_bytes = leaf.decimal_bytes;
        job.most_definition = leaf.most_definition;
        job.most_repetition = leaf.most_repetition;
        job.slot_definition = leaf.slot_definition;
        job.num_entries = n;
        job.out = job_out_.room(job.out_bytes(n));
        job.bits = job_bits_.room((n + 7) / 8);
        job.definitions = job_definitions_.room(n);
        job.repetitions = job_repetitions_.room(n);
        if (!job.out || !job.bits || !job.definitions || !job.repetitions) return false;
        std::memset(job.bits, 0, (n + 7) / 8 + SLACK);
        const Status status = NestedReader(*shared_.space, opened.bytes, group.num_rows, MOST_TEXT_OF_RUN - leaf.used, job)
                                  .run(0, group.num_rows, keep, job);
        return status == DONE && has_as_many(job, leaf, kept) && append(job, leaf);
    }

    // Return whether the job has `kept` rows, and as many elements of each shared list as other columns. If only the sums
    // over all files were compared, one file with too many elements and another with too few would not be detected.
    bool has_as_many(const NestedJob &job, const RunLeaf &leaf, int64_t kept) {
        const int64_t n = job.entries;
        if ((leaf.most_repetition ? n - count_levels(job.repetitions, n, 1) : n) != kept) return false;
        for (const RunLeaf::Shared &shared : leaf.shared) {
            int64_t count = 0;
            if (leaf.most_repetition)
                for (int64_t i = 0; i < n; i++) count += (job.repetitions[i] <= shared.repetition) & (job.definitions[i] >= shared.slot);
            else
                count = count_levels(job.definitions, n, shared.slot);
            bool is_new = true;
            for (const Count &known : counts_)
                if (known.key == shared.key) {
                    if (known.count != count) return false;
                    is_new = false;
                }
            if (is_new) counts_.push_back({shared.key, count});
        }
        return true;
    }

    // Append the result of a chunk.
    bool append(const NestedJob &job, RunLeaf &leaf) {
        const int64_t entries = leaf.entries + job.entries, slots = leaf.slots + job.slots, used = leaf.used + job.used;
        if (!leaf.definitions.room(entries) || (leaf.most_repetition && !leaf.repetitions.room(entries)) || !leaf.out.room(leaf.out_bytes(slots)) ||
            (!leaf.width && !leaf.text.room(used))) return false;
        std::memcpy(leaf.definitions.data + leaf.entries, job.definitions, job.entries);
        if (leaf.most_repetition) std::memcpy(leaf.repetitions.data + leaf.entries, job.repetitions, job.entries);
        if (leaf.width) {
            std::memcpy(leaf.out.data + leaf.slots * leaf.width, job.out, job.slots * leaf.width);
        } else {
            const int32_t *const from = reinterpret_cast<const int32_t *>(job.out);
            int32_t *const ends = reinterpret_cast<int32_t *>(leaf.out.data) + leaf.slots;
            const int32_t before = static_cast<int32_t>(leaf.used);
            for (int64_t i = 0; i <= job.slots; i++) ends[i] = before + (i ? from[i] : 0);
            const uint8_t *const text = job.grown.data() ? job.grown.data() : job.text;
            if (job.used) std::memcpy(leaf.text.data + leaf.used, text, job.used);
        }
        if (job.nulls || leaf.has_bits) {
            if (!room_for_bits(leaf.bits, leaf.has_bits, leaf.slots, job.slots)) return false;
            if (job.nulls) or_bits(leaf.bits.data, leaf.slots, reinterpret_cast<const uint64_t *>(job.bits), job.slots);
            else set_bits(leaf.bits.data, leaf.slots, job.slots);
        }
        leaf.entries = entries;
        leaf.slots = slots;
        leaf.used = used;
        leaf.nulls += job.nulls;
        return true;
    }

    // Append the selected rows of the current page after `at` others.
    bool append_page(ChunkReader &reader, RunColumn &column, int64_t at) {
        return (column.layout.width ? append_fixed(reader, column, at) : append_text(reader, column, at)) &&
               append_validity(reader, column, at);
    }

    bool append_fixed(ChunkReader &reader, RunColumn &column, int64_t at) {
        return room_for_fixed(column, at, reader.kept()) && reader.append_fixed(column.data.data, at);
    }

    static bool room_for_fixed(RunColumn &column, int64_t at, int64_t more) {
        const int64_t size = column.layout.bytes_of(at + more);
        if (!column.data.room(size)) return false;
        if (column.layout.is_bits()) {
            uint8_t *const bits = column.data.data;
            if (at % 8) bits[at / 8] &= static_cast<uint8_t>((1 << at % 8) - 1);
            std::memset(bits + (at + 7) / 8, 0, size - (at + 7) / 8);
        }
        return true;
    }

    bool append_nulls(RunColumn &column, int64_t more) {
        const int64_t at = rows_, end = at + more;
        if (column.layout.width) {
            if (!room_for_fixed(column, at, more)) return false;
            if (!column.layout.is_bits()) std::memset(column.data.data + at * column.layout.width, 0, more * column.layout.width);
        } else {
            if (!column.data.room(column.text) || !column.ends.room((end + 1) * sizeof(int32_t))) return false;
            int32_t *const ends = reinterpret_cast<int32_t *>(column.ends.data);
            for (int64_t i = at ? at + 1 : 0; i <= end; i++) ends[i] = static_cast<int32_t>(column.text);
        }
        if (!room_for_bits(column.bits, column.has_bits, at, more)) return false;
        column.nulls += more;
        return true;
    }

    bool append_text(ChunkReader &reader, RunColumn &column, int64_t at) {
        const int64_t more = reader.text_bytes();
        if (more < 0 || column.text + more > MOST_TEXT_OF_RUN || !column.data.room(column.text + more) ||
            !column.ends.room((at + reader.kept() + 1) * sizeof(int32_t))) return false;
        int32_t *const ends = reinterpret_cast<int32_t *>(column.ends.data);
        if (!at) ends[0] = 0;
        const int64_t end = reader.append_text(ends + at, column.data.data, column.text);
        if (end < 0) return false;
        column.text = end;
        return true;
    }

    bool append_validity(ChunkReader &reader, RunColumn &column, int64_t at) {
        if (!reader.nulls() && !column.has_bits) return true;
        int64_t nulls = 1;  // not 0, so that the bits before are not written
        if (!room_for_bits(column.bits, column.has_bits, at, reader.kept()) || !reader.append_validity(column.bits.data, at, nulls, 0)) return false;
        column.nulls += nulls - 1;
        return true;
    }

    // Make room for the bits of further rows, which are zero.
    static bool room_for_bits(Growing &bits, bool &has_bits, int64_t at, int64_t more) {
        const int64_t held = bits.size();
        if (!bits.room((at + more + 7) / 8)) return false;
        if (bits.size() > held) std::memset(bits.data + held, 0, bits.size() - held);
        if (!has_bits) {
            set_bits(bits.data, 0, at);
            has_bits = true;
        }
        return true;
    }

    enum : int64_t {
        MOST_GROUP_ROWS = int64_t(1) << 20, MOST_RUN_ROWS = int64_t(1) << 22,
        MOST_ENTRIES = int64_t(1) << 22, MOST_RUN_ENTRIES = int64_t(1) << 26
    };
    struct Count { int key; int64_t count; };

    Shared &shared_;
    const std::string schema_, metadata_;
    std::vector<RunColumn *> columns_;
    std::vector<RunLeaf *> leaves_;
    std::vector<Count> counts_;
    Scratch job_out_, job_bits_, job_definitions_, job_repetitions_;
    RunTests tests_{RunTests::ALL};
    std::vector<RunTests *> open_{&tests_};
    std::vector<uint64_t> keep_, passed_;
    std::vector<Mark> marks_;
    int64_t rows_ = 0;
};

// Consecutive files, each appended to the run of its schema.
class FileRuns {
   public:
    // Files of up to `whole_bytes` are read whole. `blocks` is nullptr, or outlives this object: columns of at least
    // `least_block` bytes use a block.
    FileRuns(int64_t whole_bytes, delta_memory::KeptBlocks *blocks, int64_t least_block = 256 << 10) : whole_bytes_(whole_bytes) {
        shared_.memory.blocks = blocks;
        shared_.memory.least_block = least_block;
    }
    ~FileRuns() { for (FileRun *run : runs_) delete run; }
    FileRuns(const FileRuns &) = delete;
    FileRuns &operator=(const FileRuns &) = delete;

    FileRun *add(const char *schema, size_t schema_size, const char *metadata, size_t metadata_size) {
        runs_.push_back(new FileRun(shared_, schema, schema_size, metadata, metadata_size));
        return runs_.back();
    }
    void add_codec(int codec, Decompress decompress, void *object) {
        shared_.foreign.decompress = decompress;
        if (codec >= 0 && codec < MOST_CODEC) shared_.foreign.codecs[codec] = object;
    }
    FileRun &run(int64_t i) { return *runs_[i]; }
    // Set the most rows that are expected of all files.
    void expect(int64_t rows) { shared_.memory.most_rows = rows; }
    int64_t rows() const {
        int64_t total = 0;
        for (const FileRun *run : runs_) total += run->rows();
        return total;
    }
    int64_t bytes() const {
        int64_t total = 0;
        for (const FileRun *run : runs_) total += run->bytes();
        return total;
    }

    // Read the requested rows of a file, which `left` more follow. Returns the number of its run, or -1 if this file and all
    // further ones have to be read with PyArrow. A file without a requested row is not opened if its number of rows is known;
    // it counts for the first run.
    int64_t read(Workspace &space, const char *path, int64_t size, int64_t left, const PickedRows &picked = {}) {
        if (is_ended_) return -1;
        if (picked.mask && picked.is_known && !picked.any()) return 0;
        is_ended_ = true;
        shared_.space = &space;
        shared_.memory.files = 1 + static_cast<double>(left) / ++files_;
        const int file = file_open(path);
        if (file < 0) return -1;
        const int64_t found = read(file, size, picked);
        file_close(file);
        is_ended_ = found < 0;
        return found;
    }

   private:
    int64_t read(int file, int64_t size, const PickedRows &picked) {
        file_facts_t facts;
        // files whose size differs from that in the log are read with PyArrow
        if (size < MAGIC_BYTES + TAIL_BYTES || file_facts(file, &facts) || facts.size != size) return -1;
        FileBytes bytes;
        bytes.source.file = file;
        bytes.size = size;
        const bool is_whole = size <= whole_bytes_;
        int64_t tail = is_whole || size < FOOTER_BYTES ? size : FOOTER_BYTES;
        const uint8_t *data = read_tail(bytes.source, size - tail, tail);
        if (!data || std::memcmp(data + tail - MAGIC_BYTES, "PAR1", MAGIC_BYTES)) return -1;
        const int64_t footer_bytes = int64_t(load<uint32_t>(data + tail - TAIL_BYTES)) + TAIL_BYTES;
        if (footer_bytes > size - MAGIC_BYTES) return -1;
        if (footer_bytes > tail) {
            tail = footer_bytes;
            if (!(data = read_tail(bytes.source, size - tail, tail))) return -1;
        }
        if (tail == size && std::memcmp(data, "PAR1", MAGIC_BYTES)) return -1;
        if (is_whole) bytes.data = data;
        const uint8_t *const end = data + tail - TAIL_BYTES;
        FooterReader reader(end - (footer_bytes - TAIL_BYTES), end);
        FooterFacts footer;
        if (!reader.footer(footer) || !footer.is_plain) return -1;
        for (size_t i = 0; i < runs_.size(); i++)
            if (runs_[i]->fits(footer)) return runs_[i]->append(bytes, footer, picked) ? static_cast<int64_t>(i) : -1;
        return -1;
    }

    const uint8_t *read_tail(const Source &source, int64_t offset, int64_t size) {
        uint8_t *const out = tail_.room(size);
        if (!out || !source.read(offset, size, out)) return nullptr;
        std::memset(out + size, 0, SLACK);
        return out;
    }

    Shared shared_;
    Scratch tail_;
    std::vector<FileRun *> runs_;
    const int64_t whole_bytes_;
    int64_t files_ = 0;
    bool is_ended_ = false;
};

}  // namespace delta_parquet
