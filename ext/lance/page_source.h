// The rows of one column that a writer collects for a page: levels and values, copied from Arrow arrays.
//
// Levels are collected as marks: 0 is valid, 1 + 2 k a null and 2 + 2 k an empty list at layer k, counted from the outermost
// one. Their numbers depend on which of them a page has, and are given when it is complete (levels.h).
#pragma once

#include <cstdint>
#include <vector>

#include "codings.h"
#include "levels.h"

namespace delta_lance {

// A layer of an Arrow array: its validity (nullptr = all valid), and what is below each of its entries.
struct LayerIn {
    enum Kind { ITEM = 0, LIST = 1, LARGE_LIST = 2, FIXED_LIST = 3, ALL_NULL = 4 };
    int kind = ITEM;
    const uint8_t *validity = nullptr;
    uint64_t offset = 0;              // of the array within its buffers
    const uint8_t *offsets = nullptr;  // of lists
    uint64_t size = 0;                // of lists of a fixed size

    bool is_list() const { return kind == LIST || kind == LARGE_LIST; }
    bool is_valid(uint64_t i) const { return kind != ALL_NULL && (!validity || get_bit(validity, offset + i)); }
    int64_t at(uint64_t i) const {
        return kind == LARGE_LIST ? load<int64_t>(offsets + 8 * (offset + i)) : load<int32_t>(offsets + 4 * (offset + i));
    }
};

// Lists of a fixed size within a value: the validity of their items.
struct ItemsIn {
    uint64_t size = 0;
    const uint8_t *validity = nullptr;
    uint64_t offset = 0;
};

// The values of an Arrow array.
struct ValuesIn {
    const uint8_t *data = nullptr;
    uint64_t offset = 0;  // of values of a fixed size: in values of the innermost list
    const uint8_t *offsets = nullptr;
    bool is_wide = false;
    std::vector<ItemsIn> lists;
};

class PageSource {
   public:
    unsigned bits = 0;                 // of a value; 0: each has its own length
    bool is_wide = false;              // whether files have 64-bit offsets of values
    unsigned code_bits = 0;            // of the keys of a dictionary type; 0: pages choose their own
    uint64_t most_codes = 0;           // different keys of that type
    uint64_t list_items = 1;           // values of one item
    std::vector<uint64_t> list_sizes;  // of lists of a fixed size within an item, the outermost first
    std::vector<bool> layer_is_list;   // the outermost first

    uint64_t num_rows = 0;
    uint64_t num_entries = 0;            // levels
    uint64_t num_items = 0;              // entries that have a value, or room for one
    std::vector<uint16_t> rep;           // empty without lists
    std::vector<uint16_t> marks;         // empty if all are valid
    std::vector<uint64_t> seen;          // how often each mark occurs
    Values values;                       // offsets of values of any length have 32 bits
    KeptBlocks *lender = nullptr;        // of the values and of pages

    void lend_from(KeptBlocks *source) {
        lender = source;
        values.lend_from(source);
    }
    bool has_lists() const { return num_lists_ > 0; }
    uint16_t num_lists() const { return static_cast<uint16_t>(num_lists_); }

    void set_layers(const std::vector<bool> &is_list) {
        layer_is_list = is_list;
        num_lists_ = 0;
        for (const bool list : is_list) num_lists_ += list;
        seen.assign(2 * is_list.size() + 1, 0);
        values.validity = std::vector<Bits>(list_sizes.size());
        values.bits = bits;
    }

    // Bytes in memory.
    uint64_t size() const { return values.fixed.size() + values.offsets.size() + values.text.size() + 2 * (rep.size() + marks.size()); }

    void clear() {
        num_rows = num_entries = num_items = 0;
        rep.clear();
        marks.clear();
        seen.assign(seen.size(), 0);
        values.clear();
        values.validity = std::vector<Bits>(list_sizes.size());
    }

    // Copy rows to another source, which is empty.
    Error copy_rows(uint64_t first, uint64_t last, PageSource &to) const {
        to.bits = bits, to.is_wide = is_wide, to.code_bits = code_bits, to.most_codes = most_codes;
        to.list_items = list_items, to.list_sizes = list_sizes;
        to.set_layers(layer_is_list);
        uint64_t entry = 0, item = 0;
        const auto skip_to = [&](uint64_t row, uint64_t &rows) {
            for (; entry < num_entries; entry++) {
                if (is_row(entry) && rows++ == row) {
                    rows--;
                    return;
                }
                item += has_item(entry);
            }
        };
        uint64_t rows = 0;
        skip_to(first, rows);
        const uint64_t first_entry = entry, first_item = item;
        skip_to(last, rows);
        to.num_rows = last - first;
        to.num_entries = entry - first_entry;
        to.num_items = item - first_item;
        const auto at = [](const std::vector<uint16_t> &levels, uint64_t i) { return levels.begin() + static_cast<std::ptrdiff_t>(i); };
        if (num_lists_) to.rep.assign(at(rep, first_entry), at(rep, entry));
        if (marks.empty()) {
            to.seen[0] = to.num_entries;
        } else {
            to.marks.assign(at(marks, first_entry), at(marks, entry));
            for (const uint16_t mark : to.marks) to.seen[mark]++;
        }
        uint64_t inner = 1;
        for (size_t k = 0; k < list_sizes.size(); k++) {
            inner *= list_sizes[k];
            Bits &valid = to.values.validity[k];
            const Bits &from = values.validity[k];
            const bool good = from.is_stored() ? valid.append_bits(from.block().data(), first_item * inner, to.num_items * inner)
                                               : valid.append_ones(to.num_items * inner);
            if (!good) return NO_MEMORY;
        }
        return to.values.append_from(values, first_item * inner, to.num_items * inner);
    }

    // Append n rows.
    Error append(const std::vector<LayerIn> &layers, const ValuesIn &in, uint64_t n) {
        if (layers.size() != layer_is_list.size()) return "an array has another number of layers than its column";
        for (size_t i = 0; i < layers.size(); i++)
            if (layers[i].is_list() != layer_is_list[i]) return "an array is nested in another way than its column";
        n_ = n;
        is_identity_ = true;
        has_marks_ = false;
        rep_.clear();
        if (num_lists_) rep_.assign(n, static_cast<uint16_t>(num_lists_));
        unsigned lists_inside = num_lists_;
        for (size_t k = 0; k < layers.size(); k++) {
            const LayerIn &layer = layers[k];
            if (layer.is_list()) {
                lists_inside--;
                if (Error e = enter_lists(layer, static_cast<uint16_t>(k), static_cast<uint16_t>(lists_inside))) return e;
                continue;
            }
            mark_nulls(layer, static_cast<uint16_t>(k));
            if (layer.kind == LayerIn::FIXED_LIST) enter_fixed_lists(layer.size, static_cast<uint16_t>(lists_inside));
        }
        return append_entries(in);
    }

   private:
    bool is_row(uint64_t entry) const { return !num_lists_ || rep[entry] == num_lists_; }
    // Whether an entry has a value, or room for one: it is in no list that is null or empty.
    bool has_item(uint64_t entry) const {
        const uint16_t mark = marks.empty() ? 0 : marks[entry];
        if (!mark) return true;
        for (size_t k = (mark - 1u) / 2; k < layer_is_list.size(); k++)
            if (layer_is_list[k]) return false;
        return true;
    }

    static uint16_t null_mark(uint16_t layer) { return static_cast<uint16_t>(1 + 2 * layer); }

    void want_marks() {
        if (has_marks_) return;
        marks_.assign(n_, 0);
        has_marks_ = true;
    }
    int64_t at(uint64_t i) const { return is_identity_ ? static_cast<int64_t>(i) : at_[i]; }

    void mark_nulls(const LayerIn &layer, uint16_t k) {
        if (!layer.validity && layer.kind != LayerIn::ALL_NULL) return;
        const uint16_t mark = null_mark(k);
        if (is_identity_ && layer.validity) {
            // nothing is marked as long as all are valid
            uint64_t i = 0;
            if (!has_marks_) {
                while (i < n_ && get_bit(layer.validity, layer.offset + i)) i++;
                if (i == n_) return;
            }
            want_marks();
            for (; i < n_; i++)
                if (!marks_[i] && !get_bit(layer.validity, layer.offset + i)) marks_[i] = mark;
            return;
        }
        want_marks();
        for (uint64_t i = 0; i < n_; i++)
            if (!marks_[i] && !layer.is_valid(static_cast<uint64_t>(at(i)))) marks_[i] = mark;
    }

    Error enter_lists(const LayerIn &layer, uint16_t k, uint16_t inside) {
        std::vector<int64_t> &to = next_at_;
        std::vector<uint16_t> &rep = next_rep_, &marks = next_marks_;
        to.clear();
        rep.clear();
        marks.clear();
        bool any = has_marks_;
        for (uint64_t i = 0; i < n_; i++) {
            uint16_t mark = has_marks_ ? marks_[i] : 0;
            int64_t first = 0, last = 0;
            if (!mark) {
                const uint64_t place = static_cast<uint64_t>(at(i));
                if (!layer.is_valid(place)) {
                    mark = null_mark(k);
                } else {
                    first = layer.at(place), last = layer.at(place + 1);
                    if (first < 0 || last < first) return "offsets of lists do not rise";
                    if (first == last) mark = static_cast<uint16_t>(null_mark(k) + 1);
                }
            }
            if (mark) {
                any = true;
                to.push_back(-1);
                rep.push_back(rep_[i]);
                marks.push_back(mark);
                continue;
            }
            const uint64_t count = static_cast<uint64_t>(last - first), old = to.size();
            to.resize(old + count);
            for (uint64_t j = 0; j < count; j++) to[old + j] = first + static_cast<int64_t>(j);
            rep.resize(old + count, inside);
            rep[old] = rep_[i];
            marks.resize(old + count, 0);
        }
        at_.swap(to);
        rep_.swap(rep);
        marks_.swap(marks);
        n_ = at_.size();
        is_identity_ = false;
        has_marks_ = any;
        return nullptr;
    }

    // An entry that belongs to no list, since one around it is null or empty, stays one entry.
    void enter_fixed_lists(uint64_t size, uint16_t inside) {
        next_at_.clear();
        next_rep_.clear();
        next_marks_.clear();
        for (uint64_t i = 0; i < n_; i++) {
            const int64_t place = at(i);
            const uint64_t count = place < 0 ? 1 : size, old = next_at_.size();
            next_at_.resize(old + count, -1);
            if (place >= 0)
                for (uint64_t j = 0; j < count; j++) next_at_[old + j] = place * static_cast<int64_t>(size) + static_cast<int64_t>(j);
            if (num_lists_) {
                next_rep_.resize(old + count, inside);
                next_rep_[old] = rep_[i];
            }
            if (has_marks_) next_marks_.resize(old + count, marks_[i]);
        }
        at_.swap(next_at_);
        if (num_lists_) rep_.swap(next_rep_);
        if (has_marks_) marks_.swap(next_marks_);
        n_ = at_.size();
        is_identity_ = false;
    }

    Error append_entries(const ValuesIn &in) {
        if (num_lists_) rep.insert(rep.end(), rep_.begin(), rep_.end());
        if (has_marks_) {
            marks.resize(num_entries, 0);
            marks.insert(marks.end(), marks_.begin(), marks_.end());
            for (const uint16_t mark : marks_) seen[mark]++;
        } else {
            seen[0] += n_;
            if (!marks.empty()) marks.resize(num_entries + n_, 0);
        }
        num_entries += n_;
        if (num_lists_) {
            for (const uint16_t level : rep_) num_rows += level == num_lists_;
        } else {
            num_rows += n_;
        }
        // ranges of values that follow each other
        uint64_t i = 0;
        while (i < n_) {
            if (is_identity_) return append_values(in, 0, n_, has_marks_ ? marks_.data() : nullptr);
            if (at_[i] < 0) {
                i++;
                continue;
            }
            uint64_t end = i + 1;
            while (end < n_ && at_[end] == at_[end - 1] + 1) end++;
            if (Error e = append_values(in, static_cast<uint64_t>(at_[i]), end - i, has_marks_ ? marks_.data() + i : nullptr)) return e;
            i = end;
        }
        return nullptr;
    }

    // Append n values; those of marked entries become zero or empty, so that they do not depend on what lies beneath nulls.
    Error append_values(const ValuesIn &in, uint64_t first, uint64_t n, const uint16_t *mark) {
        num_items += n;
        if (!bits) return in.is_wide ? append_texts<int64_t>(in, first, n, mark) : append_texts<int32_t>(in, first, n, mark);
        uint64_t inner = 1;
        for (size_t k = 0; k < list_sizes.size(); k++) {
            inner *= list_sizes[k];
            const ItemsIn &list = in.lists[k];
            Bits &valid = values.validity[k];
            if (!append_validity(valid, list, first, n, inner, mark)) return NO_MEMORY;
        }
        const uint64_t count = n * inner;
        if (Error e = values.add_fixed(count)) return e;
        if (bits == 1) {
            if (in.data) copy_bits(values.fixed.data(), values.count, in.data, in.offset + first * inner, count);
            if (mark)
                for (uint64_t i = 0; i < n; i++)
                    if (mark[i])
                        for (uint64_t b = values.count + i * inner; b < values.count + (i + 1) * inner; b++) values.fixed.data()[b >> 3] &= static_cast<uint8_t>(~(1u << (b & 7)));
        } else {
            const uint64_t width = bits / 8;
            if (count) {
                if (in.data) std::memcpy(values.fixed.end(), in.data + (in.offset + first * inner) * width, count * width);
                else std::memset(values.fixed.end(), 0, count * width);
            }
            if (mark) clear_marked(values.fixed.end(), width * inner, n, mark);
        }
        values.added(count);
        return nullptr;
    }

    // Append which items of n lists are valid; all items of marked lists are.
    static bool append_validity(Bits &valid, const ItemsIn &list, uint64_t first, uint64_t n, uint64_t inner, const uint16_t *mark) {
        if (!list.validity) return valid.append_ones(n * inner);
        if (!mark) return valid.append_bits(list.validity, list.offset + first * inner, n * inner);
        for (uint64_t i = 0, end; i < n; i = end) {
            for (end = i + 1; end < n && !mark[end] == !mark[i]; end++) {}
            const uint64_t count = (end - i) * inner;
            if (!(mark[i] ? valid.append_ones(count) : valid.append_bits(list.validity, list.offset + (first + i) * inner, count))) return false;
        }
        return true;
    }

    static void clear_marked(uint8_t *to, uint64_t width, uint64_t n, const uint16_t *mark) {
        if (width == 8) {
            for (uint64_t i = 0; i < n; i++)
                if (mark[i]) std::memset(to + 8 * i, 0, 8);
        } else {
            for (uint64_t i = 0; i < n; i++)
                if (mark[i]) std::memset(to + width * i, 0, width);
        }
    }

    template <class T>
    Error append_texts(const ValuesIn &in, uint64_t first, uint64_t n, const uint16_t *mark) {
        const uint8_t *const from = in.offsets + (in.offset + first) * sizeof(T);
        if (Error e = values.add_offsets(n)) return e;
        if (!in.offsets) return values.append_empty(n);
        const T begin = load<T>(from), end = load<T>(from + n * sizeof(T));
        if (begin < 0 || end < begin) return "offsets of values do not rise";
        const uint64_t used = values.text.size();
        if (static_cast<uint64_t>(end - begin) + used > INT32_MAX) return TOO_LONG;
        auto *const to = reinterpret_cast<uint32_t *>(values.offsets.end());
        bool rises = true, is_clean = true;
        for (uint64_t i = 0; i < n; i++) {
            const T a = load<T>(from + i * sizeof(T)), b = load<T>(from + (i + 1) * sizeof(T));
            rises &= a <= b;
            to[i] = static_cast<uint32_t>(static_cast<uint64_t>(b - begin) + used);
        }
        if (!rises) return "offsets of values do not rise";
        if (mark)
            for (uint64_t i = 0; i < n; i++) is_clean &= !mark[i] || load<T>(from + i * sizeof(T)) == load<T>(from + (i + 1) * sizeof(T));
        if (is_clean) {
            if (end > begin && !values.text.append(in.data + begin, static_cast<uint64_t>(end - begin))) return NO_MEMORY;
        } else {
            for (uint64_t i = 0; i < n; i++) {
                const T a = load<T>(from + i * sizeof(T)), b = load<T>(from + (i + 1) * sizeof(T));
                if (!mark[i] && b > a && !values.text.append(in.data + a, static_cast<uint64_t>(b - a))) return NO_MEMORY;
                to[i] = static_cast<uint32_t>(values.text.size());
            }
        }
        values.offsets.add_size(4 * n);
        values.count += n;
        return nullptr;
    }

    unsigned num_lists_ = 0;
    // entries of the rows that are appended: where they are in the array of the layer that is entered, or -1
    uint64_t n_ = 0;
    bool is_identity_ = true, has_marks_ = false;
    std::vector<int64_t> at_, next_at_;
    std::vector<uint16_t> rep_, next_rep_, marks_, next_marks_;
};

}  // namespace delta_lance
