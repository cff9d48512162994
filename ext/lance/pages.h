// Pages of the data files of versions 2.1 and 2.2: mini-blocks, full-zip and constant.
//
// A page object holds what is small (positions of chunks, the dictionary, levels of a constant page); the bytes of its values
// are read for the requested rows. A column object appends rows of pages, one page after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codings.h"
#include "levels.h"

namespace delta_lance {

enum Layout { MINI_BLOCK = 1, CONSTANT_PAGE = 2, FULL_ZIP = 3 };

// Rows first to last of a page.
struct Range {
    uint64_t first, last;
};

// Bytes of a page's value buffer that were read, from a position in it on; sorted.
struct Part {
    uint64_t at;
    Bytes bytes;
};

inline bool find_bytes(const std::vector<Part> &parts, uint64_t at, uint64_t size, Bytes &out) {
    auto next = std::upper_bound(parts.begin(), parts.end(), at, [](uint64_t a, const Part &p) { return a < p.at; });
    if (next == parts.begin()) return false;
    const Part &part = *--next;
    const uint64_t skipped = at - part.at;
    if (skipped > part.bytes.size || size > part.bytes.size - skipped) return false;
    out = {part.bytes.data + skipped, size};
    return true;
}

struct Chunk {
    uint64_t at, size;
    uint64_t first_item, count;  // values
    uint64_t first_row;          // rows that begin in earlier chunks
    bool has_preamble;           // whether it begins within a row
};

// The chunks of a page, 16 bytes each, and 8 more in pages of lists: fresh memory takes longer than to read the words.
class Chunks {
public:
    size_t size() const { return ends_.size(); }

    void clear() {
        ends_.clear();
        rows_.clear();
    }

    void reserve(size_t n, bool has_rows) {
        ends_.reserve(n);
        if (has_rows) rows_.reserve(n);
    }

    // Append a chunk that begins where the last one ends.
    void append(uint64_t size, uint64_t count) {
        const End last = ends_.empty() ? End() : ends_.back();
        ends_.push_back({last.at + size, last.item + count});
    }

    // Append such a chunk of a page of lists.
    void append(uint64_t size, uint64_t count, uint64_t first_row, bool has_preamble) {
        append(size, count);
        rows_.push_back(first_row << 1 | (has_preamble ? 1 : 0));
    }

    Chunk operator[](size_t i) const {
        const End begin = i ? ends_[i - 1] : End();
        const uint64_t row = rows_.empty() ? begin.item << 1 : rows_[i];
        return {begin.at, ends_[i].at - begin.at, begin.item, ends_[i].item - begin.item, row >> 1, (row & 1) != 0};
    }

    // The number of chunks whose first row is not after `row`.
    size_t begin_until(uint64_t row) const {
        if (ends_.empty()) return 0;
        if (rows_.empty()) {
            // the first chunk begins with row 0; each other one where the one before it ends
            const auto next = std::upper_bound(ends_.begin(), ends_.end() - 1, row, [](uint64_t r, const End &e) { return r < e.item; });
            return static_cast<size_t>(next - ends_.begin()) + 1;
        }
        const auto next = std::upper_bound(rows_.begin(), rows_.end(), row, [](uint64_t r, uint64_t c) { return r < c >> 1; });
        return static_cast<size_t>(next - rows_.begin());
    }

private:
    struct End {
        uint64_t at = 0, item = 0;
    };

    std::vector<End> ends_;
    std::vector<uint64_t> rows_;
};

// A child of a packed struct of values of any length.
struct PackedField {
    int coding = -1;
    uint64_t bits = 0;         // of a value, or of its length
    bool is_variable = false;
};

struct Page {
    int layout = 0;
    uint64_t num_rows = 0;
    Layers layers;
    Codings codings;
    int value = -1, rep = -1, def = -1, dictionary = -1;
    bool is_blob = false;  // values are positions and sizes, and levels are within them
    Layers outer;          // those of a blob page
    // mini-blocks
    uint64_t num_buffers = 0, num_items = 0, num_dictionary_items = 0;
    bool is_large = false;
    Chunks chunks;
    Values entries;
    // full-zip
    unsigned bits_rep = 0, bits_def = 0;
    uint64_t bits_per_value = 0, bits_per_offset = 0;
    std::vector<uint64_t> row_starts;
    std::vector<PackedField> fields;
    uint64_t data_size = 0;
    // constant
    Levels levels;
    std::vector<uint64_t> level_starts;  // of rows, in pages of lists
    bool is_null = false;
    std::vector<uint8_t> constant;

    uint64_t control_bytes() const {
        const unsigned bits = bits_rep + bits_def;
        return bits == 0 ? 0 : bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
    }

    // Find the chunks of mini-blocks. `index` is the repetition index; without it rows are values.
    Error find_chunks(Bytes words, Bytes index, uint64_t depth, uint64_t size) {
        const uint64_t width = is_large ? 4 : 2, n = words.size / width;
        if (words.size % width) return "chunk words end within a word";
        const bool has_rows = layers.num_lists() > 0;
        if (has_rows && (depth < 1 || depth > 8 || index.size != n * (depth + 1) * 8)) return "its repetition index has another length than its chunks require";
        if (num_rows >> 62) return "it has too many rows";  // as `Chunks` keeps them
        chunks.clear();
        chunks.reserve(n, has_rows);
        uint64_t at = 0, items = 0, rows = 0;
        bool is_open = false;
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t word = is_large ? load<uint32_t>(words.data + 4 * i) : load<uint16_t>(words.data + 2 * i);
            const uint64_t bytes = ((word >> 4) + 1) * 8;
            const uint64_t count = i + 1 < n ? UINT64_C(1) << (word & 15) : num_items - items;
            if (items > num_items || count > num_items - items || count > Codings::MOST_VALUES) return "chunks have another number of values than the page";
            if (bytes > size - at) return "a chunk ends after its buffer";
            if (has_rows) {
                chunks.append(bytes, count, rows + (is_open ? 1 : 0), is_open);
                const uint64_t ended = load<uint64_t>(index.data + i * (depth + 1) * 8);
                if (ended > num_rows - rows) return "its repetition index has more rows than the page";
                rows += ended;
                is_open = load<uint64_t>(index.data + i * (depth + 1) * 8 + 8) != 0;
            } else {
                chunks.append(bytes, count);
            }
            at += bytes;
            items += count;
        }
        if (items != num_items || (num_items && !n)) return "chunks have another number of values than the page";
        if (has_rows ? is_open || rows != num_rows : num_items != num_rows) return "chunks have another number of rows than the page";
        return nullptr;
    }

    // Find where rows begin in a full-zip page; `width` bytes each, and one for the end.
    Error find_rows(Bytes index) {
        if (num_rows >= Block::MOST || index.size % (num_rows + 1)) return "its row index has another length than its rows require";
        const uint64_t width = index.size / (num_rows + 1);
        if (width != 1 && width != 2 && width != 4 && width != 8) return "its row index has positions of a width that is not 1, 2, 4 or 8 bytes";
        row_starts.resize(num_rows + 1);
        uint64_t before = 0;
        for (uint64_t i = 0; i <= num_rows; i++) {
            uint64_t start = 0;
            std::memcpy(&start, index.data + i * width, width);
            if (start < before || start > data_size) return "its row index does not rise, or ends after its buffer";
            before = row_starts[i] = start;
        }
        return nullptr;
    }

    // Set the levels of a constant page, raw or compressed, no bytes = not stored; and whether it has no value.
    Error open_constant(Context &context, bool has_value, Bytes rep_bytes, Bytes def_bytes, uint64_t num_rep, uint64_t num_def) {
        is_null = !has_value;
        levels.clear();
        levels.has_rep = rep_bytes.size > 0;
        levels.has_def = def_bytes.size > 0;
        if (levels.has_rep)
            if (Error e = read_levels(context, rep, rep_bytes, num_rep, levels.rep)) return e;
        if (levels.has_def)
            if (Error e = read_levels(context, def, def_bytes, num_def, levels.def)) return e;
        if (levels.has_rep && levels.has_def && levels.rep.size() != levels.def.size()) return "there are more levels of one kind than of the other";
        levels.count = std::max(levels.rep.size(), levels.def.size());
        return find_level_rows();
    }

    // Have every row of a constant page without lists have the same definition level.
    void fill_levels(uint16_t level) {
        levels.has_def = true;
        levels.def.assign(num_rows, level);
        levels.count = num_rows;
    }

    Error read_levels(Context &context, int node, Bytes bytes, uint64_t n, std::vector<uint16_t> &out) const {
        if (node < 0) {
            if (bytes.size % 2) return "levels end within a level";
            out.resize(bytes.size / 2);
            if (bytes.size) std::memcpy(out.data(), bytes.data, bytes.size);
            return nullptr;
        }
        if (n > (UINT64_C(1) << 32)) return "a constant page has too many levels";
        Values found;
        found.bits = 16;
        if (Error e = codings.append_block(context, node, bytes, n, found)) return e;
        out.resize(found.count);
        if (found.count) std::memcpy(out.data(), found.fixed.data(), 2 * found.count);
        return nullptr;
    }

    // Find where the rows of a constant page begin.
    Error find_level_rows() {
        level_starts.clear();
        if (!layers.num_lists()) return nullptr;
        if (!levels.has_rep) return num_rows ? "a page of lists has no repetition levels" : nullptr;
        if (levels.count && levels.rep[0] != layers.num_lists()) return "a page does not begin with a row";
        for (uint64_t i = 0; i < levels.count; i++)
            if (levels.rep[i] == layers.num_lists()) level_starts.push_back(i);
        level_starts.push_back(levels.count);
        return level_starts.size() == num_rows + 1 ? nullptr : "levels describe another number of rows than the page has";
    }

    // The chunks from the one where row `first` begins to the end of row `last` - 1.
    void chunks_of(const Range &range, size_t &from, size_t &to) const {
        from = chunks.begin_until(range.first);
        from -= from > 0;
        to = chunks.begin_until(range.last);
        // a chunk that begins with the next row is not needed
        while (to > from && chunks[to - 1].first_row == range.last && !chunks[to - 1].has_preamble) to--;
        if (range.last == num_rows) to = chunks.size();
    }

    // Append the ranges of bytes that rows need, those nearer than `gap` joined.
    Error plan(const std::vector<Range> &ranges, uint64_t gap, std::vector<Range> &bytes) const {
        for (const Range &range : ranges) {
            if (range.first > range.last || range.last > num_rows) return "rows are requested that the page does not have";
            if (range.first == range.last) continue;
            uint64_t begin = 0, end = 0;
            if (layout == MINI_BLOCK) {
                size_t from, to;
                chunks_of(range, from, to);
                if (from >= to) continue;
                begin = chunks[from].at;
                end = chunks[to - 1].at + chunks[to - 1].size;
            } else if (layout == FULL_ZIP) {
                if (row_starts.empty()) {
                    const uint64_t width = control_bytes() + bits_per_value / 8;
                    if (width && num_rows > data_size / width) return "a buffer ends before its values do";
                    begin = range.first * width;
                    end = range.last * width;
                } else {
                    begin = row_starts[range.first];
                    end = row_starts[range.last];
                }
            } else {
                continue;
            }
            if (!bytes.empty() && begin <= bytes.back().last + gap && begin >= bytes.back().first) bytes.back().last = std::max(bytes.back().last, end);
            else bytes.push_back({begin, end});
        }
        return nullptr;
    }
};

// A column that rows of pages are appended to.
class Column {
   public:
    std::vector<LayerOut> layers;
    Values values;
    uint64_t list_items = 1;           // values of one item: the product of the sizes of lists of a fixed size
    std::vector<uint64_t> list_sizes;  // of these lists, the outermost first
    std::vector<Values> children;      // the fields of a packed struct whose rows have their own length
    std::vector<std::vector<uint64_t>> child_sizes;

    // Decode a dictionary page's entries, once for each page.
    Error read_dictionary(Context &context, Page &page, Bytes bytes) const {
        Values &entries = page.entries;
        entries.bits = values.bits;
        entries.is_wide = values.is_wide;
        entries.validity = std::vector<Bits>(values.validity.size());
        if (page.num_dictionary_items > Block::MOST / 64) return "its dictionary has too many entries";
        if (Error e = page.codings.append_block(context, page.dictionary, bytes, page.num_dictionary_items, entries)) return e;
        if (values.bits == 0 && !entries.offsets.size() && !entries.offsets.append_zeros(8)) return NO_MEMORY;
        return nullptr;
    }

    // Expect rows of a page to be appended: room for all rows that are expected is taken with the first ones.
    void expect(const Page &page, uint64_t rows) {
        const bool has_items = page.layout == MINI_BLOCK && page.num_rows;
        const double each = has_items ? static_cast<double>(page.num_items) / static_cast<double>(page.num_rows) : 1;
        const double items = each * static_cast<double>(list_items) * static_cast<double>(rows);
        expected_ += static_cast<uint64_t>(std::min(items, static_cast<double>(Values::MOST_RESERVED)));
    }

    Error append(Context &context, const Page &page, const std::vector<Range> &ranges, const std::vector<Part> &parts) {
        const auto &kinds = page.is_blob ? page.outer.kinds() : page.layers.kinds();
        if (kinds.size() != layers.size()) return "a page has another number of layers than its column";
        for (size_t i = 0; i < kinds.size(); i++)
            if (is_list(kinds[i]) != layers[i].is_list) return "a page is nested in another way than its column";
        levels_.clear();
        if (children.empty() && !values.count) values.reserve(expected_);
        const uint64_t count = values_count(), before = values.count;
        uint64_t rows = 0, appended = 0;
        for (const Range &range : ranges) {
            if (range.first > range.last || range.last > page.num_rows) return "rows are requested that the page does not have";
            rows += range.last - range.first;
        }
        if (page.layout == MINI_BLOCK) {
            if (Error e = append_mini_blocks(context, page, ranges, parts)) return e;
        } else if (page.layout == FULL_ZIP) {
            if (Error e = append_zip(context, page, ranges, parts)) return e;
        } else if (Error e = append_constant(page, ranges)) {
            return e;
        }
        appended = values_count() - count;
        if (page.is_blob) return append_blob_levels(page, before, rows);
        return append_layers(page.layers, levels_, appended, rows, layers);
    }

   protected:
    // How many items have a value, or room for one.
    uint64_t values_count() const {
        if (children.empty()) return values.count / list_items;
        uint64_t items = 1;
        for (const uint64_t size : child_sizes[0]) items *= size;
        return children[0].count / items;
    }

    Error append_blob_levels(const Page &page, uint64_t before, uint64_t rows) {
        if (values.bits != 128 || page.layers.num_lists()) return "a blob page has values that are no positions and sizes";
        levels_.clear();
        levels_.has_def = true;
        levels_.has_rep = page.outer.num_lists() > 0;
        for (uint64_t i = before; i < values.count; i++) {
            const uint64_t position = load<uint64_t>(values.fixed.data() + 16 * i), size = load<uint64_t>(values.fixed.data() + 16 * i + 8);
            const uint64_t level = size ? 0 : position;
            levels_.rep.push_back(static_cast<uint16_t>(level));
            levels_.def.push_back(static_cast<uint16_t>(level >> 16));
        }
        levels_.count = values.count - before;
        if (levels_.has_rep) return "a blob within a list is not supported";
        return append_layers(page.outer, levels_, levels_.count, rows, layers);
    }

    // --- mini-blocks ---

    struct ChunkParts {
        Bytes buffers[32];
        unsigned num_buffers = 0;
        uint64_t num_levels = 0;
        Values rep, def;
    };

    Error read_levels(Context &context, const Page &page, int node, Bytes bytes, uint64_t n, Values &out) const {
        out.bits = 16;
        if (page.codings.bits_of(node) != 16) return "levels do not have 16 bits";
        return page.codings.append_block(context, node, bytes, n, out);
    }

    // Read the header and the levels of a chunk.
    Error open_chunk(Context &context, const Page &page, const Chunk &chunk, const std::vector<Part> &parts, ChunkParts &found) const {
        static constexpr char SHORT[] = "a chunk ends before its buffers do";
        Bytes in;
        if (!find_bytes(parts, chunk.at, chunk.size, in)) return "bytes of a chunk were not read";
        const uint8_t *const start = in.data;
        const auto cut = [&](uint64_t n, Bytes &part) {
            if (!in.cut(n, part)) return false;
            Bytes padding;
            const uint64_t rest = -(static_cast<uint64_t>(in.data - start)) & 7;
            in.cut(rest < in.size ? rest : in.size, padding);
            return true;
        };
        const bool has_rep = page.rep >= 0, has_def = page.def >= 0;
        const uint64_t width = page.is_large ? 4 : 2;
        Bytes head;
        if (page.num_buffers > 32) return "a page has too many buffers";
        if (!cut(2 + 2 * (has_rep + has_def) + width * page.num_buffers, head)) return SHORT;
        found.num_levels = load<uint16_t>(head.data);
        const uint8_t *at = head.data + 2;
        Bytes rep, def;
        const uint64_t rep_size = has_rep ? load<uint16_t>(at) : 0;
        at += 2 * has_rep;
        const uint64_t def_size = has_def ? load<uint16_t>(at) : 0;
        at += 2 * has_def;
        if (has_rep && !cut(rep_size, rep)) return SHORT;
        if (has_def && !cut(def_size, def)) return SHORT;
        found.num_buffers = static_cast<unsigned>(page.num_buffers);
        for (unsigned i = 0; i < found.num_buffers; i++, at += width) {
            const uint64_t size = page.is_large ? load<uint32_t>(at) : load<uint16_t>(at);
            if (!cut(size, found.buffers[i])) return SHORT;
        }
        // a count beyond 16 bits is stored without its higher bits; runs contain the whole one
        uint64_t sum = 0;
        if (has_rep && !page.codings.sum_of_runs(context, page.rep, rep, sum) && sum) found.num_levels = whole_count(sum, found.num_levels);
        else if (has_def && !page.codings.sum_of_runs(context, page.def, def, sum) && sum) found.num_levels = whole_count(sum, found.num_levels);
        if (found.num_levels > MOST_LEVELS) return "a chunk has too many levels";
        found.rep.fixed.clear();
        found.def.fixed.clear();
        found.rep.count = found.def.count = 0;
        if (has_rep)
            if (Error e = read_levels(context, page, page.rep, rep, found.num_levels, found.rep)) return e;
        if (has_def)
            if (Error e = read_levels(context, page, page.def, def, found.num_levels, found.def)) return e;
        return nullptr;
    }

    static constexpr uint64_t MOST_LEVELS = 1 << 24;
    static uint64_t whole_count(uint64_t sum, uint64_t stored) { return sum % 65536 == stored ? sum : stored; }

    Error append_values(Context &context, const Page &page, const ChunkParts &found, uint64_t n, uint64_t first, uint64_t last, Values &out) {
        if (page.dictionary < 0) return page.codings.append_mini(context, page.value, found.buffers, found.num_buffers, n, first, last, out);
        if (Error e = read_codes(context, page, found, n, first, last)) return e;
        return Codings::append_chosen(codes_, page.entries, list_items, out);
    }

    Error append_to_values(Context &context, const Page &page, const ChunkParts &found, uint64_t n, uint64_t first, uint64_t last) {
        const bool is_first = !values.count;
        if (Error e = append_values(context, page, found, n, first, last, values)) return e;
        if (is_first && !values.bits) values.reserve(expected_);
        return nullptr;
    }

    // Decode codes first to last of a chunk, which choose entries of its page's dictionary.
    Error read_codes(Context &context, const Page &page, const ChunkParts &found, uint64_t n, uint64_t first, uint64_t last) {
        codes_.bits = static_cast<unsigned>(page.codings.bits_of(page.value));
        if (codes_.bits != 8 && codes_.bits != 16 && codes_.bits != 32 && codes_.bits != 64) return "codes of a dictionary do not have 8, 16, 32 or 64 bits";
        codes_.fixed.clear();
        codes_.count = 0;
        return page.codings.append_mini(context, page.value, found.buffers, found.num_buffers, n, first, last, codes_);
    }

    Error append_mini_blocks(Context &context, const Page &page, const std::vector<Range> &ranges, const std::vector<Part> &parts) {
        levels_.has_rep = page.rep >= 0;
        levels_.has_def = page.def >= 0;
        if (page.layers.num_lists() && page.num_rows && !levels_.has_rep) return "a page of lists has no repetition levels";
        if (!page.layers.num_lists() && levels_.has_rep) return "a page without lists has repetition levels";
        ChunkParts &found = chunk_;
        size_t opened = SIZE_MAX;
        for (size_t r = 0; r < ranges.size(); r++) {
            const Range &range = ranges[r];
            if (range.first == range.last) continue;
            size_t from, to;
            page.chunks_of(range, from, to);
            for (size_t k = from; k < to; k++) {
                const Chunk chunk = page.chunks[k];
                if (k != opened) {
                    if (Error e = open_chunk(context, page, chunk, parts, found)) return e;
                    opened = k;
                    decoded_.first = decoded_.last = 0;
                }
                if (page.layers.num_lists()) {
                    const bool is_whole = (k > from || (range.first == chunk.first_row && !chunk.has_preamble)) &&
                                          (k + 1 < to || range.last == page.num_rows);
                    if (Error e = append_rows(context, page, chunk, found, range, k == from, is_whole)) return e;
                    continue;
                }
                const uint64_t first = range.first > chunk.first_item ? range.first - chunk.first_item : 0;
                const uint64_t last = std::min(range.last - chunk.first_item, chunk.count);
                if (first > last) return "chunks do not cover the rows";
                if (levels_.has_def) {
                    if (found.def.count != chunk.count) return "a chunk has more levels than values, or fewer";
                    const uint16_t *const def = found.def.fixed.as<uint16_t>();
                    levels_.def.insert(levels_.def.end(), def + first, def + last);
                }
                levels_.count += last - first;
                if (decoded_.first == decoded_.last && !is_picked(page, ranges, r, chunk)) {
                    if (Error e = append_to_values(context, page, found, chunk.count, first, last)) return e;
                    continue;
                }
                if (decoded_.first == decoded_.last) {
                    if (Error e = decode_picked(context, page, found, ranges, r, chunk)) return e;
                }
                if (Error e = values.append_from(picked_, first - decoded_.first, last - first)) return e;
            }
        }
        return nullptr;
    }

    // Whether several ranges lie in a chunk that is decoded as a whole for each of them.
    bool is_picked(const Page &page, const std::vector<Range> &ranges, size_t r, const Chunk &chunk) const {
        if (r + 1 == ranges.size() || ranges[r + 1].first >= chunk.first_item + chunk.count) return false;
        if (!values.validity.empty() || !page.codings.has(page.value)) return false;
        const int kind = page.codings.nodes[page.value].kind;
        return page.dictionary >= 0 || (kind != FLAT && kind != VARIABLE && kind != FSST);
    }

    // Decode the values of a chunk from the first to the last one that ranges from number r on have in it.
    Error decode_picked(Context &context, const Page &page, const ChunkParts &found, const std::vector<Range> &ranges, size_t r,
                        const Chunk &chunk) {
        const uint64_t end = chunk.first_item + chunk.count;
        decoded_.first = ranges[r].first > chunk.first_item ? ranges[r].first - chunk.first_item : 0;
        for (; r < ranges.size() && ranges[r].first < end; r++)
            if (ranges[r].last > ranges[r].first) decoded_.last = std::min(ranges[r].last - chunk.first_item, chunk.count);
        picked_.clear();
        picked_.bits = values.bits;
        picked_.is_wide = values.is_wide;
        return append_values(context, page, found, chunk.count, decoded_.first, decoded_.last, picked_);
    }

    // Append the rows of a chunk of lists that are within a range.
    Error append_rows(Context &context, const Page &page, const Chunk &chunk, const ChunkParts &found, const Range &range, bool is_first,
                      bool is_whole) {
        const uint64_t n = found.num_levels;
        const uint16_t *const rep = found.rep.fixed.as<uint16_t>(), *const def = levels_.has_def ? found.def.fixed.as<uint16_t>() : nullptr;
        const uint16_t begin = page.layers.num_lists(), visible = page.layers.most_visible();
        if (is_whole) return append_levels_of(context, page, chunk, found, {0, n}, {0, chunk.count});
        uint64_t row = chunk.first_row, i = 0, first = 0, first_value = 0, value = 0;
        bool is_in = !is_first;
        // levels before the first row of the chunk belong to a row of a chunk before
        uint64_t last = n, last_value = UINT64_MAX;
        for (; i < n; i++) {
            if (rep[i] == begin) {
                if (row == range.first && !is_in) is_in = true, first = i, first_value = value;
                if (row == range.last) {
                    last = i;
                    last_value = value;
                    break;
                }
                row++;
            }
            value += !def || def[i] <= visible;
        }
        if (!is_in) return "a chunk does not have the rows that its index specifies";
        if (last_value == UINT64_MAX) {
            last_value = value;
            if (value != chunk.count) return "levels describe another number of values than are stored";
        }
        return append_levels_of(context, page, chunk, found, {first, last}, {first_value, last_value});
    }

    Error append_levels_of(Context &context, const Page &page, const Chunk &chunk, const ChunkParts &found, const Range &levels,
                           const Range &items) {
        const uint16_t *const rep = found.rep.fixed.as<uint16_t>(), *const def = found.def.fixed.as<uint16_t>();
        levels_.rep.insert(levels_.rep.end(), rep + levels.first, rep + levels.last);
        if (levels_.has_def) levels_.def.insert(levels_.def.end(), def + levels.first, def + levels.last);
        levels_.count += levels.last - levels.first;
        return append_to_values(context, page, found, chunk.count, items.first, items.last);
    }

    // --- full-zip ---

    Error append_zip(Context &context, const Page &page, const std::vector<Range> &ranges, const std::vector<Part> &parts) {
        levels_.has_rep = page.bits_rep > 0;
        levels_.has_def = page.bits_def > 0;
        const uint64_t control = page.control_bytes();
        const bool is_fixed = page.bits_per_value || !page.bits_per_offset;
        if (page.layers.num_lists() ? !levels_.has_rep : levels_.has_rep) return "a page has repetition levels that its layers do not require";
        if (page.bits_per_value % 8 || page.bits_rep + page.bits_def > 32) return "a full-zip page has values in parts of bytes";
        if (!is_fixed && page.bits_per_offset != 8 && page.bits_per_offset != 16 && page.bits_per_offset != 32 && page.bits_per_offset != 64)
            return "lengths do not have 8, 16, 32 or 64 bits";
        if ((!is_fixed || page.layers.num_lists()) && page.row_starts.size() != page.num_rows + 1) return "a full-zip page has no row index";
        const uint64_t width = page.bits_per_value / 8;
        for (const Range &range : ranges) {
            if (range.first == range.last) continue;
            uint64_t begin, end;
            if (page.row_starts.empty()) {
                if (width && range.last > page.data_size / width) return "a buffer ends before its values do";
                begin = range.first * (control + width), end = range.last * (control + width);
            } else {
                begin = page.row_starts[range.first], end = page.row_starts[range.last];
            }
            Bytes in;
            if (!find_bytes(parts, begin, end - begin, in)) return "bytes of rows were not read";
            const Error e = is_fixed && !control ? append_zipped(page, in, range.last - range.first) : append_items(context, page, in, range, is_fixed);
            if (e) return e;
        }
        return nullptr;
    }

    // Append items that have no control word.
    Error append_zipped(const Page &page, Bytes in, uint64_t n) {
        levels_.count += n;
        return append_fixed(page, in, n);
    }

    Error append_fixed(const Page &page, Bytes in, uint64_t n) {
        int node = page.value;
        if (page.codings.has(node) && page.codings.nodes[node].kind == FIXED_SIZE_LIST) return page.codings.append_zipped(node, in, n, values);
        if (!page.codings.has(node)) return "a full-zip page has no compression";
        const Coding &c = page.codings.nodes[node];
        if (c.kind == CONSTANT && c.value.empty()) return values.append_zeros(n);
        if (c.kind != FLAT && c.kind != PACKED_STRUCT) return "a full-zip page has a compression that is not supported";
        if (values.bits != page.bits_per_value || values.bits % 8) return "values have another width than their column";
        if (n > Block::MOST / 64 || in.size < n * (values.bits / 8)) return "a buffer ends before its values do";
        if (!values.fixed.append(in.data, n * (values.bits / 8))) return NO_MEMORY;
        values.count += n;
        return nullptr;
    }

    Error append_items(Context &context, const Page &page, Bytes in, const Range &range, bool is_fixed) {
        static constexpr char SHORT[] = "a row ends before its items do";
        const uint64_t control = page.control_bytes();
        const uint64_t width = is_fixed ? page.bits_per_value / 8 : page.bits_per_offset / 8;
        const uint64_t def_mask = page.bits_def ? (UINT64_C(1) << page.bits_def) - 1 : 0;
        const uint16_t visible = page.layers.most_visible(), begin = page.layers.num_lists();
        uint64_t rows = 0;
        const uint64_t num_rows = range.last - range.first;
        while (in.size || (!control && !width && rows < num_rows)) {
            Bytes part;
            uint64_t word = 0;
            if (!in.cut(control, part)) return SHORT;
            if (control) std::memcpy(&word, part.data, control);
            const uint64_t def = word & def_mask, rep = word >> page.bits_def;
            if (def > UINT16_MAX || rep > UINT16_MAX) return "a level is too high";
            if (levels_.has_rep) levels_.rep.push_back(static_cast<uint16_t>(rep));
            if (levels_.has_def) levels_.def.push_back(static_cast<uint16_t>(def));
            levels_.count++;
            rows += !levels_.has_rep || rep == begin;
            if (rows > num_rows) return "a full-zip page has more rows than its index specifies";
            if (def > visible) continue;
            if (is_fixed) {
                if (!in.cut(width, part)) return SHORT;
                if (Error e = append_fixed(page, part, 1)) return e;
                continue;
            }
            Bytes value;
            if (def == 0) {
                if (!in.cut(width, part)) return SHORT;
                uint64_t length = 0;
                std::memcpy(&length, part.data, width);
                if (!in.cut(length, value)) return SHORT;
            }
            if (Error e = append_any_length(context, page, value, def == 0)) return e;
        }
        return rows == num_rows ? nullptr : "a full-zip page has fewer rows than its index specifies";
    }

    Error append_any_length(Context &context, const Page &page, Bytes value, bool is_valid) {
        if (!page.fields.empty()) return append_packed(context, page, value);
        if (!children.empty()) return "values are no packed structs";
        return is_valid ? append_text(context, page.codings, page.value, value, values) : values.append_empty(1);
    }

    // Append one value of any length.
    static Error append_text(Context &context, const Codings &codings, int node, Bytes in, Values &out) {
        if (!codings.has(node)) return "values of any length have no compression";
        if (out.bits) return "values of any length are in a column of values of a fixed size";
        const Coding &c = codings.nodes[node];
        if (c.kind == GENERAL) {
            if (!in.size) return out.append_empty(1);
            Block &plain = context.scratch(0, 0);
            if (Error e = context.decompress(c.scheme, in, plain)) return e;
            return out.append_text(plain.data(), plain.size());
        }
        if (c.kind == VARIABLE) return out.append_text(in.data, in.size);
        if (c.kind != FSST) return "values of any length have a compression that is not supported";
        const uint64_t offsets[2] = {0, in.size};
        const Slices slices = {reinterpret_cast<const uint8_t *>(offsets), true, in};
        return Codings::append_slices(context, slices, 0, 1, &c.table, out);
    }

    Error append_packed(Context &context, const Page &page, Bytes row) {
        static constexpr char SHORT[] = "a packed struct ends before its fields do";
        if (page.fields.size() != children.size()) return "a packed struct has another number of fields than its type";
        const bool is_empty = !row.size;
        for (size_t i = 0; i < children.size(); i++) {
            const PackedField &field = page.fields[i];
            Values &out = children[i];
            if (field.is_variable == (out.bits != 0)) return "a packed struct has fields of another kind than its type";
            if (is_empty) {
                if (Error e = append_zero_items(out, child_sizes[i], 1)) return e;
                continue;
            }
            Bytes part;
            if (!field.is_variable) {
                if (!row.cut(field.bits / 8, part)) return SHORT;
                if (Error e = page.codings.append_block(context, field.coding, part, 1, out)) return e;
                continue;
            }
            if (field.bits != 32 && field.bits != 64) return "lengths do not have 32 or 64 bits";
            if (!row.cut(field.bits / 8, part)) return SHORT;
            const uint64_t length = field.bits == 32 ? load<uint32_t>(part.data) : load<uint64_t>(part.data);
            if (!row.cut(length, part)) return SHORT;
            if (Error e = append_text(context, page.codings, field.coding, part, out)) return e;
        }
        return row.size ? "a packed struct has bytes after its fields" : nullptr;
    }

    // --- constant ---

    Error append_constant(const Page &page, const std::vector<Range> &ranges) {
        levels_.has_rep = page.levels.has_rep;
        levels_.has_def = page.levels.has_def;
        const uint16_t visible = page.layers.most_visible();
        for (const Range &range : ranges) {
            uint64_t from = range.first, to = range.last;
            if (page.layers.num_lists()) {
                if (page.level_starts.size() != page.num_rows + 1) return from == to ? nullptr : "a page of lists has no repetition levels";
                from = page.level_starts[from], to = page.level_starts[to];
            }
            uint64_t n = to - from;
            levels_.count += n;
            if (levels_.has_rep) levels_.rep.insert(levels_.rep.end(), page.levels.rep.begin() + from, page.levels.rep.begin() + to);
            if (levels_.has_def) {
                if (to > page.levels.count) return "a constant page has fewer levels than rows";
                levels_.def.insert(levels_.def.end(), page.levels.def.begin() + from, page.levels.def.begin() + to);
                if (page.layers.num_lists()) {
                    n = 0;
                    for (uint64_t i = from; i < to; i++) n += page.levels.def[i] <= visible;
                }
            }
            if (Error e = append_constants(page, n)) return e;
        }
        return nullptr;
    }

    Error append_constants(const Page &page, uint64_t n) {
        if (page.is_null) {
            for (size_t i = 0; i < children.size(); i++)
                if (Error e = append_zero_items(children[i], child_sizes[i], n)) return e;
            return children.empty() ? append_zero_items(values, list_sizes, n) : nullptr;
        }
        if (!children.empty() || list_items != 1) return "a constant page has a nested value";
        if (values.bits) {
            if (page.constant.size() * 8 != (values.bits == 1 ? 8 : values.bits)) return "a constant has another width than its column";
            return Codings::append_repeated(page.constant.data(), n, values);
        }
        const uint64_t size = page.constant.size();
        if (n && size > Block::MOST / n) return NO_MEMORY;
        if (!values.fits(n * size)) return TOO_LONG;
        if (Error e = values.add_offsets(n)) return e;
        if (!values.text.reserve_more(n * size)) return NO_MEMORY;
        for (uint64_t i = 0; i < n; i++) {
            if (size) std::memcpy(values.text.end(), page.constant.data(), size);
            values.text.add_size(size);
            values.put_offset(values.text.size());
        }
        values.count += n;
        return nullptr;
    }

    // Append n items whose values are zero, or empty.
    static Error append_zero_items(Values &out, const std::vector<uint64_t> &sizes, uint64_t n) {
        for (size_t i = 0; i < sizes.size(); i++) {
            if (n > Block::MOST / sizes[i]) return NO_MEMORY;
            n *= sizes[i];
            if (!out.validity[i].append_ones(n)) return NO_MEMORY;
        }
        return out.append_zeros(n);
    }

   protected:
    uint64_t expected_ = 0;  // values
    Levels levels_;
    Values codes_;
    ChunkParts chunk_;
    Values picked_;            // values of a chunk that several ranges choose from
    Range decoded_ = {0, 0};   // which values these are
};

}  // namespace delta_lance
