// Tests of the values of pages on encoded data: an entry of a dictionary, a constant and the value of a run are tested once,
// packed numbers and plain texts where they are, and texts of FSST by their first symbol if that decides.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "pages.h"
#include "parquet/value_marks.h"

namespace delta_lance {

using delta_parquet::Test;

// The result of a test of the first bytes of a text.
enum Verdict : uint8_t { FAILS = 0, PASSES = 1, UNDECIDED = 2 };

// Of more keys texts are decoded and looked up.
constexpr int64_t MOST_KEYS = 1000;

// Return whether texts that begin with `size` bytes pass a test. Precondition: the test is one of texts.
inline Verdict verdict_of(const Test &test, const uint8_t *head, size_t size) {
    Verdict found = UNDECIDED;
    if (test.is_joined()) {
        const bool is_any = test.kind == delta_parquet::ANY_OF;
        const Verdict decisive = is_any ? PASSES : FAILS;
        found = is_any ? FAILS : PASSES;
        for (const Test *part : test.parts) {
            const Verdict one = verdict_of(*part, head, size);
            if (one == decisive) {
                found = one;
                break;
            }
            if (one == UNDECIDED) found = UNDECIDED;
        }
    } else if (test.kind == delta_parquet::IN_SET && test.num_keys <= MOST_KEYS) {
        found = FAILS;
        for (int64_t k = 0; k < test.num_keys && found == FAILS; k++) {
            const size_t length = test.ends[k + 1] - test.ends[k];
            if (length >= size && !std::memcmp(test.keys + test.ends[k], head, size)) found = UNDECIDED;
        }
    } else if (test.kind == delta_parquet::IS_BELOW) {
        const size_t length = test.ends[1];
        const int order = std::memcmp(head, test.keys, size < length ? size : length);
        if (order) found = order < 0 ? PASSES : FAILS;
    } else if (test.kind == delta_parquet::LIKE_PATTERN && !test.has_wildcard) {
        const size_t length = test.ends[1];
        if (std::memcmp(head, test.keys, size < length ? size : length)) found = FAILS;
    }
    if (found == UNDECIDED || !test.is_negated) return found;
    return found == PASSES ? FAILS : PASSES;
}

// A column whose values are tested, not returned. It has no lists.
class TestedColumn : public Column {
   public:
    const Test *test = nullptr;
    unsigned bits = 0;  // of a value; 0: texts

    // Write for each requested row of a page whether it passes, 1 or 0.
    Error append_flags(Context &context, const Page &page, const std::vector<Range> &ranges, const std::vector<Part> &parts, uint8_t *flags) {
        for (const Range &range : ranges)
            if (range.first > range.last || range.last > page.num_rows) return "rows are requested that the page does not have";
        if (page.layers.kinds().size() != layers.size()) return "a page has another number of layers than its column";
        // without lists any level above 0 is a null, of the value or of a struct around it
        for (const int kind : page.layers.kinds())
            if (is_list(kind)) return "a page is nested in another way than its column";
        table_ = nullptr;
        entries_.clear();
        if (page.is_blob) return "a page of blobs has no values to test";
        if (page.layout == MINI_BLOCK) return mini_block_flags(context, page, ranges, parts, flags);
        if (page.layout == CONSTANT_PAGE) return constant_flags(page, ranges, flags);
        return decoded_flags(context, page, ranges, parts, flags);
    }

    // Write for each of n values in buffers of Arrow whether it passes, 1 or 0; without `valid` none of them is null.
    Error array_flags(uint64_t n, Bytes valid, Bytes offsets, Bytes data, uint8_t *flags) {
        if (n > UINT64_C(1) << 48) return "an array has too many values";
        if (valid.data && valid.size < (n + 7) / 8) return "a buffer of validity ends before its values do";
        if (test->is_of_levels()) {
            mark(nullptr, n, flags);
        } else if (bits) {
            if (data.size < (n * bits + 7) / 8) return "a buffer ends before its values do";
            if (bits == 1) mark_bits(data.data, 0, n, flags);
            else mark(data.data, n, flags);
        } else if (n) {
            Slices slices;
            slices.is_wide = values.is_wide;
            slices.offsets = offsets.data;
            slices.data = data;
            if (offsets.size < (n + 1) * (values.is_wide ? 8 : 4)) return "a buffer of offsets ends before its values do";
            if (!slices.rise(0, n)) return "offsets of values do not rise, or end after their bytes";
            mark_slices(slices, n, flags);
        }
        if (!valid.data) return nullptr;
        const uint8_t null = flag_of_null();
        for (uint64_t i = 0; i < n; i++) flags[i] = get_bit(valid.data, i) ? flags[i] : null;
        return nullptr;
    }

   private:
    unsigned width() const { return bits == 1 ? 1 : bits / 8; }

    uint8_t flag_of_null() const {
        return test->kind == delta_parquet::IS_NULL || (test->kind != delta_parquet::HAS_VALUE && test->with_null);
    }

    // Set the flags of values; those of null follow from levels.
    Error mark(const uint8_t *values, uint64_t n, uint8_t *out) const {
        if (test->is_of_levels()) std::memset(out, test->kind == delta_parquet::HAS_VALUE, n);
        else delta_parquet::mark_values(values, static_cast<int64_t>(n), static_cast<int>(width()), *test, out);
        return nullptr;
    }

    Error mark_bits(const uint8_t *values, uint64_t first, uint64_t n, uint8_t *out) {
        bytes_.resize(n);
        for (uint64_t i = 0; i < n; i++) bytes_[i] = get_bit(values, first + i);
        return mark(bytes_.data(), n, out);
    }

    // The flags of n values that were decoded.
    Error mark_decoded(const Values &values, uint64_t n, uint8_t *out) {
        if (values.count < n) return "a page has fewer values than rows";
        if (test->is_of_levels()) return mark(nullptr, n, out);
        if (bits == 1) return mark_bits(values.fixed.data(), 0, n, out);
        if (bits) return mark(values.fixed.data(), n, out);
        Slices slices;
        slices.is_wide = values.is_wide;
        slices.offsets = values.offsets.data();
        slices.data = {values.text.data(), values.text.size()};
        return n ? mark_slices(slices, n, out) : nullptr;
    }

    bool test_text(const uint8_t *text, uint64_t size, const uint8_t *end) {
        if (static_cast<uint64_t>(end - text) >= size + delta_parquet::SLACK) return test->passes(text, size);
        // bytes after the text are read
        bytes_.resize(size + delta_parquet::SLACK);
        if (size) std::memcpy(bytes_.data(), text, size);
        return test->passes(bytes_.data(), size);
    }

    // Precondition: offsets rise, and end within the bytes.
    Error mark_slices(const Slices &slices, uint64_t n, uint8_t *out) {
        const uint8_t *const end = slices.data.data + slices.data.size;
        for (uint64_t i = 0; i < n; i++) out[i] = test_text(slices.data.data + slices.at(i), slices.at(i + 1) - slices.at(i), end);
        return nullptr;
    }

    Error mark_coded(Context &context, const Slices &slices, const SymbolTable &table, uint64_t n, uint8_t *out) {
        if (table_ != &table) {
            table_ = &table;
            for (unsigned code = 0; code < 256; code++) {
                const unsigned size = code == SymbolTable::ESCAPE ? 0 : table.length_of(code);
                uint8_t symbol[8];
                table.copy_symbol(code, symbol);
                verdicts_[code] = size ? verdict_of(*test, symbol, size) : UNDECIDED;
            }
        }
        const uint8_t *const codes = slices.data.data;
        uint64_t begin = slices.at(0);
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t end = slices.at(i + 1);
            const Verdict verdict = begin == end ? UNDECIDED : verdicts_[codes[begin]];
            out[i] = verdict;
            if (verdict == UNDECIDED)
                if (Error e = test_codes(context, table, codes + begin, end - begin, out[i])) return e;
            begin = end;
        }
        return nullptr;
    }

    Error test_codes(Context &context, const SymbolTable &table, const uint8_t *codes, uint64_t n, uint8_t &flag) {
        if (n >= Codings::MOST_CODES) return "a block of FSST is too long";
        if (context.starts.size() < n + 1) context.starts.resize(n + 1);
        text_.clear();
        if (!text_.reserve(8 * n + 8 + delta_parquet::SLACK)) return NO_MEMORY;
        const int64_t size = table.decode(codes, n, text_.data(), context.starts.data());
        if (size < 0) return "a code of FSST has no symbol";
        flag = test->passes(text_.data(), static_cast<size_t>(size));
        return nullptr;
    }

    // --- mini-blocks ---

    Error mini_block_flags(Context &context, const Page &page, const std::vector<Range> &ranges, const std::vector<Part> &parts, uint8_t *flags) {
        if (page.rep >= 0) return "a page without lists has repetition levels";
        if (page.dictionary >= 0 && !test->is_of_levels()) {
            entries_.resize(page.entries.count);
            if (Error e = mark_decoded(page.entries, page.entries.count, entries_.data())) return e;
        }
        size_t opened = SIZE_MAX;
        for (const Range &range : ranges) {
            if (range.first == range.last) continue;
            size_t from, to;
            page.chunks_of(range, from, to);
            for (size_t k = from; k < to; k++) {
                const Chunk chunk = page.chunks[k];
                const uint64_t first = range.first > chunk.first_item ? range.first - chunk.first_item : 0;
                const uint64_t last = std::min(range.last - chunk.first_item, chunk.count);
                if (first > last) return "chunks do not cover the rows";
                // the flags of a whole chunk are written where they belong
                const bool is_whole = last - first == chunk.count;
                if (!is_whole) chunk_flags_.resize(chunk.count);
                uint8_t *const to_flags = is_whole ? flags : chunk_flags_.data();
                if (is_whole || opened != k)
                    if (Error e = mark_chunk(context, page, chunk, parts, to_flags)) return e;
                if (!is_whole) {
                    opened = k;
                    std::memcpy(flags, chunk_flags_.data() + first, last - first);
                }
                flags += last - first;
            }
        }
        return nullptr;
    }

    Error mark_chunk(Context &context, const Page &page, const Chunk &chunk, const std::vector<Part> &parts, uint8_t *out) {
        ChunkParts &found = chunk_;
        const uint64_t n = chunk.count;
        if (Error e = open_chunk(context, page, chunk, parts, found)) return e;
        if (test->is_of_levels()) mark(nullptr, n, out);
        else if (page.dictionary >= 0) {
            if (Error e = mark_choices(context, page, found, n, out)) return e;
        } else if (Error e = mark_mini(context, page.codings, page.value, found.buffers, found.num_buffers, n, out, 0)) {
            return e;
        }
        if (page.def < 0) return nullptr;
        if (found.def.count != n) return "a chunk has more levels than values, or fewer";
        return mark_nulls(found.def.fixed.as<uint16_t>(), n, page.layers.most_level(), out);
    }

    Error mark_nulls(const uint16_t *def, uint64_t n, uint16_t most, uint8_t *out) const {
        const uint8_t null = flag_of_null();
        uint16_t highest = 0;
        for (uint64_t i = 0; i < n; i++) {
            highest = def[i] > highest ? def[i] : highest;
            out[i] = def[i] ? null : out[i];
        }
        return highest > most ? "a definition level is too high" : nullptr;
    }

    Error mark_choices(Context &context, const Page &page, const ChunkParts &found, uint64_t n, uint8_t *out) {
        if (Error e = read_codes(context, page, found, n, 0, n)) return e;
        const uint64_t entries = entries_.size();
        const bool good = Codings::with_codes(codes_, [&](const auto *code) {
            uint64_t most = 0;
            for (uint64_t i = 0; i < n; i++) most = code[i] > most ? code[i] : most;
            if (n && most >= entries) return UINT64_C(0);
            for (uint64_t i = 0; i < n; i++) out[i] = entries_[code[i]];
            return UINT64_C(1);
        });
        return good ? nullptr : "a code of its dictionary is too large";
    }

    Error mark_mini(Context &context, const Codings &codings, int node, const Bytes *buffers, unsigned num_buffers, uint64_t n, uint8_t *out,
                    unsigned depth) {
        if (!codings.has(node) || depth >= Context::MOST_NESTED) return "its compressions are nested too deeply";
        const Coding &c = codings.nodes[node];
        if (c.kind == FLAT && c.bits == bits && num_buffers == 1 && n <= Codings::MOST_VALUES) {
            if (buffers[0].size < (n * bits + 7) / 8) return "a buffer ends before its values do";
            return bits == 1 ? mark_bits(buffers[0].data, 0, n, out) : mark(buffers[0].data, n, out);
        }
        if ((c.kind == VARIABLE || c.kind == FSST) && !bits) {
            Slices slices;
            const SymbolTable *table = nullptr;
            if (Error e = codings.find_slices(context, node, buffers, num_buffers, n, slices, table, depth)) return e;
            if (!slices.rise(0, n)) return "offsets of values do not rise, or end after their bytes";
            return table ? mark_coded(context, slices, *table, n, out) : mark_slices(slices, n, out);
        }
        if (c.kind == GENERAL && num_buffers && num_buffers <= 32) {
            Block &plain = context.scratch(depth, 0);
            if (Error e = context.decompress(c.scheme, buffers[0], plain)) return e;
            Bytes inner[32];
            inner[0] = {plain.data(), plain.size()};
            for (unsigned i = 1; i < num_buffers; i++) inner[i] = buffers[i];
            return mark_mini(context, codings, c.child, inner, num_buffers, n, out, depth + 1);
        }
        if (c.kind == RLE && num_buffers == 2 && bits >= 8 && n) return mark_runs(context, codings, c, buffers, n, out, depth);
        picked_.clear();
        picked_.bits = bits;
        if (Error e = codings.append_mini(context, node, buffers, num_buffers, n, 0, n, picked_, depth)) return e;
        return mark_decoded(picked_, n, out);
    }

    Error mark_runs(Context &context, const Codings &codings, const Coding &c, const Bytes *buffers, uint64_t n, uint8_t *out, unsigned depth) {
        Values values, lengths;
        values.bits = bits;
        if (Error e = codings.find_runs(context, c, buffers, values, lengths, depth)) return e;
        run_flags_.resize(values.count);
        if (Error e = mark_decoded(values, values.count, run_flags_.data())) return e;
        uint64_t at = 0;
        for (uint64_t i = 0; i < lengths.count && at < n; i++) {
            const uint64_t length = Codings::code_at(lengths, i), end = length < n - at ? at + length : n;
            if (!length) return "a run has no length";
            std::memset(out + at, run_flags_[i], end - at);
            at = end;
        }
        return at < n ? "runs have fewer values than there are" : nullptr;
    }

    // --- other pages ---

    Error constant_flags(const Page &page, const std::vector<Range> &ranges, uint8_t *flags) {
        uint8_t flag = flag_of_null();
        if (!page.is_null) {
            if (test->is_of_levels()) flag = test->kind == delta_parquet::HAS_VALUE;
            else if (!bits) flag = test_text(page.constant.data(), page.constant.size(), page.constant.data() + page.constant.size());
            else if (page.constant.size() != width()) return "a constant has another width than its column";
            else if (Error e = bits == 1 ? mark_bits(page.constant.data(), 0, 1, &flag) : mark(page.constant.data(), 1, &flag)) return e;
        }
        for (const Range &range : ranges) {
            const uint64_t n = range.last - range.first;
            std::memset(flags, flag, n);
            if (page.levels.has_def) {
                if (range.last > page.levels.count) return "a constant page has fewer levels than rows";
                if (Error e = mark_nulls(page.levels.def.data() + range.first, n, page.layers.most_level(), flags)) return e;
            }
            flags += n;
        }
        return nullptr;
    }

    Error decoded_flags(Context &context, const Page &page, const std::vector<Range> &ranges, const std::vector<Part> &parts, uint8_t *flags) {
        Column column;
        column.values.bits = bits;
        column.values.is_wide = values.is_wide;
        column.layers.resize(layers.size());
        if (Error e = column.append(context, page, ranges, parts)) return e;
        uint64_t rows = 0;
        for (const Range &range : ranges) rows += range.last - range.first;
        for (const LayerOut &layer : column.layers)
            if (layer.valid.size() != rows) return "levels describe another number of rows than the page has";
        if (Error e = mark_decoded(column.values, rows, flags)) return e;
        const uint8_t null = flag_of_null();
        for (const LayerOut &layer : column.layers) {
            if (!layer.valid.zeros()) continue;
            const uint8_t *const valid = layer.valid.block().data();
            for (uint64_t i = 0; i < rows; i++) flags[i] = get_bit(valid, i) ? flags[i] : null;
        }
        return nullptr;
    }

    std::vector<uint8_t> bytes_, chunk_flags_, run_flags_, entries_;
    Block text_;
    const SymbolTable *table_ = nullptr;
    Verdict verdicts_[256];
};

}  // namespace delta_lance
