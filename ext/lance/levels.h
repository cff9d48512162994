// Repetition and definition levels, from which the validity and the offsets of nested arrays are made.
//
// The layers of a page are listed from the innermost one. Level 0 is valid; each layer that may be null or empty takes the
// next numbers. A repetition level k begins a list at the k-th list layer from the inside, and 0 continues the innermost list.
#pragma once

#include <cstdint>
#include <vector>

#include "blocks.h"

namespace delta_lance {

enum LayerKind {
    VALID_ITEM = 1,
    VALID_LIST = 2,
    NULLABLE_ITEM = 3,
    NULLABLE_LIST = 4,
    EMPTYABLE_LIST = 5,
    NULL_AND_EMPTY_LIST = 6,
};

inline bool is_list(int kind) { return kind == VALID_LIST || kind >= NULLABLE_LIST; }

// The layers of one page.
class Layers {
   public:
    Error assign(const std::vector<int> &kinds) {
        kinds_ = kinds;
        lists_of_.assign(1, 0);
        num_lists_ = most_visible_ = 0;
        if (kinds.empty() || kinds.size() > 64) return "a page has no layers, or too many";
        for (const int kind : kinds) {
            if (kind < VALID_ITEM || kind > NULL_AND_EMPTY_LIST) return "a page has a layer of a kind that is not supported";
            const unsigned numbers = kind == NULL_AND_EMPTY_LIST ? 2 : kind >= NULLABLE_ITEM ? 1 : 0;
            if (is_list(kind)) num_lists_++;
            for (unsigned i = 0; i < numbers; i++) lists_of_.push_back(static_cast<uint16_t>(num_lists_));
            if (!num_lists_) most_visible_ = static_cast<uint16_t>(lists_of_.size() - 1);
        }
        return nullptr;
    }
    const std::vector<int> &kinds() const { return kinds_; }
    uint16_t num_lists() const { return static_cast<uint16_t>(num_lists_); }
    // The highest level of an item that has a value.
    uint16_t most_visible() const { return most_visible_; }
    uint16_t most_level() const { return static_cast<uint16_t>(lists_of_.size() - 1); }
    // The list layers up to and with the one that a level belongs to.
    uint16_t lists_of(uint16_t level) const { return lists_of_[level]; }

   private:
    std::vector<int> kinds_;
    std::vector<uint16_t> lists_of_;
    unsigned num_lists_ = 0;
    uint16_t most_visible_ = 0;
};

// One layer of a column: the validity of its entries, and of lists their offsets.
struct LayerOut {
    bool is_list = false, is_wide = false;
    Bits valid;
    Block offsets;
    uint64_t items = 0;  // where the last list ends

    void put_offset(uint64_t at) {
        if (is_wide) *reinterpret_cast<int64_t *>(offsets.end()) = static_cast<int64_t>(at), offsets.add_size(8);
        else *reinterpret_cast<int32_t *>(offsets.end()) = static_cast<int32_t>(at), offsets.add_size(4);
    }
    Error add_offsets(uint64_t n) {
        if (!offsets.size() && !offsets.append_zeros(is_wide ? 8 : 4)) return NO_MEMORY;
        return offsets.reserve_more(n * (is_wide ? 8 : 4)) ? nullptr : NO_MEMORY;
    }
};

// Levels of the requested rows of a page; a vector is empty if the page does not store it.
struct Levels {
    std::vector<uint16_t> rep, def, scratch;
    uint64_t count = 0;
    bool has_rep = false, has_def = false;
    void clear() {
        rep.clear();
        def.clear();
        count = 0;
    }
};

inline uint16_t most_of(const uint16_t *levels, uint64_t n) {
    uint16_t most = 0;
    for (uint64_t i = 0; i < n; i++) most = levels[i] > most ? levels[i] : most;
    return most;
}

// The levels of a list layer: those of null and of empty lists (0 = there is none), the highest one of the layer, and that of
// the items around it before the next list.
struct ListLevels {
    uint16_t null, empty, upper, most;
};

inline constexpr char NO_LIST[] = "an item belongs to no list";

// Append lists. Levels of the entries that begin one are moved to the front, for the layers around this one.
inline Error append_lists(const ListLevels &of, Levels &levels, uint64_t n, LayerOut &to, uint64_t &kept, uint64_t &end) {
    uint16_t *const rep = levels.rep.data(), *const def = levels.def.data();
    std::vector<uint16_t> &nulls = levels.scratch;
    nulls.resize(n);
    uint64_t count = 0;
    bool is_open = false;
    for (uint64_t i = 0; i < n; i++) {
        const uint16_t level = def[i];
        if (!rep[i]) {
            if (!is_open) return NO_LIST;
            end++;
            continue;
        }
        is_open = false;
        if (level <= of.most) {
            if (count) to.put_offset(end);
            const bool is_null = (of.null && level == of.null) || level > of.upper;
            is_open = !is_null && !(of.empty && level == of.empty);
            end += is_open;
            nulls[count++] = is_null;
        }
        rep[kept] = static_cast<uint16_t>(rep[i] - 1);
        def[kept] = level;
        kept++;
    }
    if (count) to.put_offset(end);
    return to.valid.append_levels(nulls.data(), count, 0) ? nullptr : NO_MEMORY;
}

// Append lists that are neither null nor empty.
template <class T>
inline Error append_whole_lists(uint16_t *rep, uint64_t n, LayerOut &to, uint64_t &kept, uint64_t &end) {
    if (!n) return nullptr;
    if (!rep[0]) return NO_LIST;
    // where a list begins, the one before it ends; the first one begins where the last one before ended
    T *const ends = reinterpret_cast<T *>(to.offsets.end()) - 1;
    const T base = static_cast<T>(end), before = ends[0];
    for (uint64_t i = 0; i < n; i++) {
        const uint16_t level = rep[i];
        ends[kept] = static_cast<T>(base + static_cast<T>(i));
        rep[kept] = static_cast<uint16_t>(level - 1);
        kept += level != 0;
    }
    ends[0] = before;
    end += n;
    ends[kept] = static_cast<T>(end);
    to.offsets.add_size(kept * sizeof(T));
    return to.valid.append_ones(kept) ? nullptr : NO_MEMORY;
}

// Append the entries of a page's levels, which are changed, to each layer. `num_values` is how many values the page stores
// for them, and `num_rows` how many rows they have.
inline Error append_layers(const Layers &layers, Levels &levels, uint64_t num_values, uint64_t num_rows, std::vector<LayerOut> &out) {
    static constexpr char UNEQUAL[] = "levels describe another number of values than are stored";
    if (levels.has_def && most_of(levels.def.data(), levels.count) > layers.most_level()) return "a definition level is too high";
    if (levels.has_rep && most_of(levels.rep.data(), levels.count) > layers.num_lists()) return "a repetition level is too high";
    if (layers.num_lists() && levels.count && !levels.has_rep) return "a page of lists has no repetition levels";
    uint64_t n = levels.count;
    uint16_t used = 0;
    unsigned lists = 0;
    uint64_t items = num_values;  // entries of the layer below
    uint16_t *const rep = levels.rep.data(), *const def = levels.def.data();
    for (size_t k = 0; k < layers.kinds().size(); k++) {
        const int kind = layers.kinds()[k];
        LayerOut &to = out[k];
        const uint64_t before = to.valid.size();
        if (!is_list(kind)) {
            if (!levels.has_def) {
                if (!to.valid.append_ones(n)) return NO_MEMORY;
            } else if (!layers.num_lists()) {
                if (!to.valid.append_levels(def, n, used)) return NO_MEMORY;
            } else {
                // levels of lists around this layer are no items of it
                std::vector<uint16_t> &items_of = levels.scratch;
                items_of.resize(n);
                uint64_t count = 0;
                for (uint64_t i = 0; i < n; i++) {
                    items_of[count] = def[i];
                    count += layers.lists_of(def[i]) <= lists;
                }
                if (!to.valid.append_levels(items_of.data(), count, used)) return NO_MEMORY;
            }
            if (kind == NULLABLE_ITEM) used++;
            if (k && to.valid.size() - before != items) return UNEQUAL;
            if (!k && to.valid.size() - before != num_values) return UNEQUAL;
            items = to.valid.size() - before;
            continue;
        }
        const uint16_t null = kind == NULLABLE_LIST || kind == NULL_AND_EMPTY_LIST ? used + 1 : 0;
        const uint16_t empty = kind == EMPTYABLE_LIST ? used + 1 : kind == NULL_AND_EMPTY_LIST ? used + 2 : 0;
        const uint16_t upper = empty > null ? empty : null > 0 ? null : used;
        uint16_t most = upper;
        for (size_t m = k + 1; m < layers.kinds().size() && !is_list(layers.kinds()[m]); m++) most += layers.kinds()[m] == NULLABLE_ITEM;
        if (Error e = to.add_offsets(n + 1)) return e;
        const uint64_t limit = to.is_wide ? INT64_MAX : INT32_MAX;
        if (n > limit - to.items) return TOO_LONG;
        uint64_t kept = 0, end = to.items;
        if (levels.has_def) {
            if (Error e = append_lists({null, empty, upper, most}, levels, n, to, kept, end)) return e;
        } else if (Error e = to.is_wide ? append_whole_lists<int64_t>(rep, n, to, kept, end) : append_whole_lists<int32_t>(rep, n, to, kept, end)) {
            return e;
        }
        if (end - to.items != items) return UNEQUAL;
        to.items = end;
        n = kept;
        lists++;
        used = upper;
        items = to.valid.size() - before;
    }
    if (items != num_rows || n != num_rows) return "levels describe another number of rows than the page has";
    return nullptr;
}

}  // namespace delta_lance
