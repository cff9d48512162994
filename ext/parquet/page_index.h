// The page index of Parquet column chunks (PageIndex.md of apache/parquet-format): the pages whose rows may pass a test.
//
// An index with unexpected content, or one that is too large, is not used; every row may then pass. No Python.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "memory/byte_copies.h"
#include "thrift.h"
#include "value_tests.h"

namespace delta_parquet {

// The facts of each page; bounds are encoded as PLAIN.
struct PageIndex {
    std::vector<uint8_t> is_null;
    std::vector<std::string_view> least, most;
    std::vector<int64_t> null_counts, first_rows;

    // Return whether both parts have the same number of pages, and fit a chunk of this number of rows.
    bool fits(int64_t num_rows) const {
        const size_t pages = first_rows.size();
        if (!pages || is_null.size() != pages || least.size() != pages || most.size() != pages) return false;
        if (!null_counts.empty() && null_counts.size() != pages) return false;
        for (size_t i = 0; i < pages; i++) {
            const int64_t next = i + 1 < pages ? first_rows[i + 1] : num_rows;
            if (first_rows[i] < 0 || first_rows[i] > next) return false;
            // parts that contradict each other are damaged
            const int64_t rows = next - first_rows[i], nulls = null_counts.empty() ? 0 : null_counts[i];
            if (nulls < 0 || nulls > rows) return false;
            if (is_null[i] && (!least[i].empty() || !most[i].empty() || (!null_counts.empty() && nulls != rows))) return false;
        }
        return first_rows[0] == 0;
    }
};

class PageIndexReader : public ThriftReader {
   public:
    using ThriftReader::ThriftReader;

    bool column_index(PageIndex &out) {
        return each_field([&](int16_t id, int type) {
            if (type != LIST || id > 5) return skip(type);
            if (id == 1) return each_item(TRUE, FALSE, [&] { return out.is_null.push_back(in_ < end_ && *in_ == TRUE), pass(1); });
            if (id == 2 || id == 3) {
                auto &bounds = id == 2 ? out.least : out.most;
                return each_item(BINARY, BINARY, [&] { return binary(bounds.emplace_back()); });
            }
            if (id == 5) return each_item(I64, I64, [&] { return number(out.null_counts.emplace_back()); });
            return skip(type);
        });
    }

    bool offset_index(PageIndex &out) {
        return each_field([&](int16_t id, int type) {
            if (id != 1 || type != LIST) return skip(type);
            return each_struct([&] {
                int64_t &row = out.first_rows.emplace_back(-1);
                return each_field([&](int16_t inner, int kind) { return inner == 3 && kind == I64 ? number(row) : skip(kind); });
            });
        });
    }

   private:
    template <class Read>
    bool each_item(int type, int other, Read read) {
        uint64_t count;
        int found;
        if (!list(count, found) || count > static_cast<uint64_t>(end_ - in_)) return false;
        if (count && found != type && found != other) return false;
        for (; count; count--) if (!read()) return false;
        return true;
    }
};

// --- pages that may pass ---

// Return whether a number between two bounds may pass; true if a bound is NaN.
template <class T>
inline bool may_pass(const Test &test, T least, T most, T low, T high) {
    if (!(least <= most)) return true;  // no bounds
    if (test.kind == IN_RANGE) return most >= low && least <= high;
    if (!test.num_keys) return false;
    const T key = test.key_below<T>(most);
    return least <= key && key <= most;
}

// The same for values outside of a range; of floats, NaN may be one of them.
inline bool may_fail(const Test &test, int64_t least, int64_t most) { return !(least <= most) || least < test.least || most > test.most; }

template <class T>
inline T bound_of(std::string_view bound) { return load<T>(reinterpret_cast<const uint8_t *>(bound.data())); }

// Return whether a value between the bounds of a page may pass a test of values, or, if `negated`, may fail it. `width` is
// the bytes of a value, 0 for strings.
inline bool may_pass(const Test &test, int width, std::string_view least, std::string_view most, bool negated = false) {
    negated = negated != test.is_negated;
    if (test.is_joined()) {
        const bool is_any = (test.kind == ANY_OF) != negated;
        for (const Test *part : test.parts)
            if (may_pass(*part, width, least, most, negated) == is_any) return is_any;
        return !is_any;
    }
    if (width) {
        if ((width != 4 && width != 8) || least.size() != static_cast<size_t>(width) || most.size() != least.size()) return true;
        if (negated && (test.is_float || test.kind != IN_RANGE)) return true;
        if (negated) {
            return width == 4 ? may_fail(test, bound_of<int32_t>(least), bound_of<int32_t>(most))
                              : may_fail(test, bound_of<int64_t>(least), bound_of<int64_t>(most));
        }
        if (!test.is_float) {
            return width == 4 ? may_pass<int64_t>(test, bound_of<int32_t>(least), bound_of<int32_t>(most), test.least, test.most)
                              : may_pass<int64_t>(test, bound_of<int64_t>(least), bound_of<int64_t>(most), test.least, test.most);
        }
        if (test.kind == IN_RANGE && test.with_nan) return true;  // bounds do not include NaN
        return width == 4 ? may_pass<double>(test, bound_of<float>(least), bound_of<float>(most), test.low, test.high)
                          : may_pass<double>(test, bound_of<double>(least), bound_of<double>(most), test.low, test.high);
    }
    if (least > most) return true;
    if (test.kind == IS_BELOW) {
        const std::string_view key(reinterpret_cast<const char *>(test.keys), test.ends[1]);
        return negated ? (test.with_key ? most > key : most >= key) : (test.with_key ? least <= key : least < key);
    }
    if (negated) return true;
    const bool is_pattern = test.kind == LIKE_PATTERN;
    // of a pattern only the first key is used: a string with that prefix is not below it, and its first bytes equal the
    // prefix
    for (int64_t k = 0; k < (is_pattern ? 1 : test.num_keys); k++) {
        std::string_view key(reinterpret_cast<const char *>(test.keys) + test.ends[k], test.ends[k + 1] - test.ends[k]);
        if (is_pattern && test.has_wildcard) key = key.substr(0, key.find(static_cast<char>(Test::WILDCARD)));
        if (most >= key && (is_pattern ? least.substr(0, key.size()) : least) <= key) return true;
    }
    return false;
}

inline bool may_pass(const Test &test, int width, const PageIndex &index, size_t page) {
    if (test.kind == HAS_VALUE) return !index.is_null[page];
    if (test.kind == IS_NULL) return index.is_null[page] || index.null_counts.empty() || index.null_counts[page] != 0;
    if (test.with_null && (index.is_null[page] || index.null_counts.empty() || index.null_counts[page] != 0)) return true;
    return !index.is_null[page] && may_pass(test, width, index.least[page], index.most[page]);
}

// Set `n` bits from `first` on. No word after them is accessed.
inline void set_bits(uint64_t *bits, int64_t first, int64_t n) {
    const int64_t stop = first + n;
    for (; first < stop && first % 64; first++) bits[first / 64] |= UINT64_C(1) << (first % 64);
    for (; first + 64 <= stop; first += 64) bits[first / 64] = ~UINT64_C(0);
    for (; first < stop; first++) bits[first / 64] |= UINT64_C(1) << (first % 64);
}

// Set the bits, which were zero, of the rows of pages that may pass. Returns false if the index can't be used; the bits are
// then undefined. Both parts are Thrift's bytes.
inline bool find_rows(const uint8_t *columns, int64_t columns_size, const uint8_t *offsets, int64_t offsets_size, const Test &test,
                      int width, int64_t num_rows, uint64_t *bits) {
    PageIndex index;
    if (!PageIndexReader(columns, columns + columns_size).column_index(index)) return false;
    if (!PageIndexReader(offsets, offsets + offsets_size).offset_index(index) || !index.fits(num_rows)) return false;
    for (size_t page = 0; page < index.first_rows.size(); page++) {
        const int64_t next = page + 1 < index.first_rows.size() ? index.first_rows[page + 1] : num_rows;
        if (may_pass(test, width, index, page)) set_bits(bits, index.first_rows[page], next - index.first_rows[page]);
    }
    return true;
}

}  // namespace delta_parquet
