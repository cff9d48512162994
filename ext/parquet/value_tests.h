// Tests of values: their kinds and keys, and the test of one string.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "find_bytes.h"
#include "memory/byte_copies.h"
#include "value_layout.h"

namespace delta_parquet {

enum Kind { IN_RANGE = 0, IN_SET = 1, LIKE_PATTERN = 2, IS_NULL = 3, HAS_VALUE = 4, IS_BELOW = 5, ANY_OF = 6, ALL_OF = 7 };

// A test of rows. IN_RANGE: the number is in [`least`, `most`] (of floats in [`low`, `high`]; `with_nan`: or NaN). IN_SET:
// the value is a key. LIKE_PATTERN: the string starts with the first key and ends with the last, with the others in between
// in order; wildcards match any character. IS_NULL, HAS_VALUE: the row is null, or not. IS_BELOW: the string is below the
// first key (`with_key`: or equal to it). ANY_OF, ALL_OF: any, or all, of `parts`, which are tests of values, pass.
// `is_negated` inverts a test of values. Null passes such a test only if `with_null`.
struct Test {
    // Sizes of tables in bits: of hashes, for each key and at least; of a range of numbers, for each key; and at most.
    enum : int64_t { HASH_BITS = 16, LEAST_BITS = 4096, RANGE_BITS = 128, MOST_BITS = int64_t{1} << 26 };

    // In the keys of a pattern, matches one character; the byte does not occur in UTF-8.
    enum : uint8_t { WILDCARD = 0xff };

    int kind = IN_RANGE;
    bool has_wildcard = false;
    bool is_float = false, with_nan = false, with_key = false, is_negated = false, with_null = false;
    std::vector<const Test *> parts;
    int64_t least = 0, most = 0;
    double low = 0, high = 0;
    // For numbers of 16 bytes; `least` and `most` are then the bounds among numbers of 8 bytes.
    bool is_wide = false;
    Wide wide_least, wide_most;
    // Keys in ascending order: numbers of 8 bytes each (of floats without NaN), or consecutive strings that end at `ends[1
    // ...]`.
    const uint8_t *keys = reinterpret_cast<const uint8_t *>("");
    const int32_t *ends = nullptr;
    int64_t num_keys = 0;
    // For each hash, whether a key has it; if `is_exact`, for each number from the first key on, whether it is a key. For
    // strings below a key, `first` is the head of the key.
    std::vector<uint64_t> bits;
    bool is_exact = false;
    uint64_t first = 0, range = 0;
    int shift = 52;

    bool is_of_levels() const { return kind == IS_NULL || kind == HAS_VALUE; }
    bool is_joined() const { return kind == ANY_OF || kind == ALL_OF; }

    // Precondition: the keys of the set are complete.
    void hash_keys() {
        if (!ends && !is_float && num_keys && index_range()) return;
        int64_t size = LEAST_BITS;
        for (shift = 52; size < HASH_BITS * num_keys && size < MOST_BITS; shift--) size *= 2;
        bits.assign(size / 64, 0);
        for (int64_t k = 0; k < num_keys; k++) {
            if (ends) {
                const size_t length = ends[k + 1] - ends[k];
                uint8_t head[8] = {};  // bytes after a key are not readable
                if (length) std::memcpy(head, keys + ends[k], length < 8 ? length : 8);
                set_bit(hash_of(head, length));
            } else if (is_float) {
                set_bit(hash_of(load<double>(keys + 8 * k)));
            } else {
                set_bit(hash_of(load<int64_t>(keys + 8 * k)));
            }
        }
    }

    // Set a bit for each key instead of its hash, if the range of the keys is short.
    bool index_range() {
        first = load<uint64_t>(keys);
        range = load<uint64_t>(keys + 8 * (num_keys - 1)) - first + 1;  // 0: all numbers
        if (range - 1 >= static_cast<uint64_t>(std::min<int64_t>(RANGE_BITS * num_keys, MOST_BITS))) return false;
        bits.assign((range + 63) / 64, 0);
        for (int64_t k = 0; k < num_keys; k++) set_bit(load<uint64_t>(keys + 8 * k) - first);
        return is_exact = true;
    }

    void set_bit(uint64_t place) { bits[place / 64] |= UINT64_C(1) << (place % 64); }
    bool has_bit(uint64_t place) const { return bits[place / 64] >> (place % 64) & 1; }

    uint64_t hash_of(int64_t value) const { return static_cast<uint64_t>(value) * UINT64_C(0x9e3779b97f4a7c15) >> shift; }
    uint64_t hash_of(double value) const {
        value += 0.0;  // -0.0 equals 0.0
        return hash_of(load<int64_t>(reinterpret_cast<const uint8_t *>(&value)));
    }
    // Precondition: 8 bytes of the string are readable.
    uint64_t hash_of(const uint8_t *text, size_t size) const {
        const uint64_t head = load<uint64_t>(text);
        return hash_of(static_cast<int64_t>((size < 8 ? head & ((UINT64_C(1) << 8 * size) - 1) : head) ^ size << 56));
    }

    // Return the last key that is at most `value`, or the first one. Precondition: there is a key.
    template <class T>
    T key_below(T value) const {
        int64_t at = 0;
        for (int64_t n = num_keys; n > 1;) {
            const int64_t half = n / 2;
            at = load<T>(keys + 8 * (at + half)) <= value ? at + half : at;
            n -= half;
        }
        return load<T>(keys + 8 * at);
    }

    template <class T>
    bool has_key(T value) const { return num_keys && key_below(value) == value; }

    bool has_key(const uint8_t *text, size_t size) const {
        int64_t first = 0, last = num_keys;
        while (first < last) {
            const int64_t middle = (first + last) / 2;
            const size_t other = ends[middle + 1] - ends[middle];
            int order = std::memcmp(text, keys + ends[middle], size < other ? size : other);
            if (!order) order = size < other ? -1 : size > other;
            if (!order) return true;
            if (order < 0) last = middle;
            else first = middle + 1;
        }
        return false;
    }

    // Return whether a string passes. Precondition: SLACK bytes after it are readable.
    bool passes(const uint8_t *text, size_t size) const { return accepts(text, size) != is_negated; }

    bool accepts(const uint8_t *text, size_t size) const {
        if (kind == IN_SET) return has_bit(hash_of(text, size)) && has_key(text, size);
        if (kind == IS_BELOW) return is_below(text, size);
        if (!is_joined()) return has_parts(text, size);
        for (const Test *part : parts)
            if (part->passes(text, size) == (kind == ANY_OF)) return kind == ANY_OF;
        return kind == ALL_OF;
    }

    // Return the first bytes of a string as a number, in the order of strings.
    static uint64_t head_of(const uint8_t *text, size_t size) {
        uint64_t head = 0;
        std::memcpy(&head, text, size < 8 ? size : 8);
        return __builtin_bswap64(head);
    }

    bool is_below(const uint8_t *text, size_t size) const {
        // most strings differ in their first bytes; the bytes after a shorter string are readable
        const uint64_t read = __builtin_bswap64(load<uint64_t>(text)), head = size < 8 ? read & ~(~UINT64_C(0) >> 8 * size) : read;
        if (head != first) return head < first;
        const size_t other = ends[1];
        const int order = std::memcmp(text, keys, size < other ? size : other);
        return order ? order < 0 : size < other || (with_key && size == other);
    }

    // Return whether a string begins with the first of at least two keys and ends with the last, with the others in between
    // in order.
    bool has_parts(const uint8_t *text, size_t size) const {
        if (has_wildcard) return has_wild_parts(text, size);
        const int64_t last = num_keys - 1;
        const size_t head = ends[1], tail = ends[last + 1] - ends[last];
        if (size < head + tail || std::memcmp(text, keys, head) || std::memcmp(text + size - tail, keys + ends[last], tail)) return false;
        const uint8_t *at = text + head, *const stop = text + size - tail;
        for (int64_t k = 1; k < last; k++) {
            const size_t part = ends[k + 1] - ends[k];
            at = find_bytes(at, stop, keys + ends[k], part);
            if (!at) return false;
            at += part;
        }
        return true;
    }

    // The same for keys with wildcards. A single key has to match the whole string.
    bool has_wild_parts(const uint8_t *text, size_t size) const {
        const int64_t last = num_keys - 1;
        const uint8_t *stop = text + size, *at = behind_key(text, stop, 0);
        if (!at || !last) return at && at == stop;
        stop = before_key(at, stop, last);
        for (int64_t k = 1; stop && at && k < last; k++) at = behind_next(at, stop, k);
        return stop && at;
    }

    static const uint8_t *behind_character(const uint8_t *at, const uint8_t *stop) {
        at++;
        while (at < stop && (*at & 0xc0) == 0x80) at++;
        return at;
    }

    // Return the end of a key that begins at `at`; nullptr if it does not match.
    const uint8_t *behind_key(const uint8_t *at, const uint8_t *stop, int64_t k) const {
        for (int32_t i = ends[k]; i < ends[k + 1]; i++) {
            if (at >= stop || (keys[i] != WILDCARD && keys[i] != *at)) return nullptr;
            at = keys[i] == WILDCARD ? behind_character(at, stop) : at + 1;
        }
        return at;
    }

    // Return the begin of a key that ends at `stop`; nullptr if it does not match.
    const uint8_t *before_key(const uint8_t *at, const uint8_t *stop, int64_t k) const {
        for (int32_t i = ends[k + 1]; i > ends[k]; i--) {
            if (stop <= at) return nullptr;
            stop--;
            if (keys[i - 1] == WILDCARD) while (stop > at && (*stop & 0xc0) == 0x80) stop--;
            else if (keys[i - 1] != *stop) return nullptr;
        }
        return stop;
    }

    // Return the end of the first match of a key from `at` on; nullptr if there is none.
    const uint8_t *behind_next(const uint8_t *at, const uint8_t *stop, int64_t k) const {
        const uint8_t *const key = keys + ends[k];
        const size_t size = ends[k + 1] - ends[k];
        const void *const wild = std::memchr(key, WILDCARD, size);
        const size_t head = wild ? static_cast<const uint8_t *>(wild) - key : size;
        while (true) {
            if (head) at = find_bytes(at, stop, key, head);
            if (!at) return nullptr;
            if (const uint8_t *const found = behind_key(at, stop, k)) return found;
            if (at >= stop) return nullptr;
            at = behind_character(at, stop);
        }
    }
};

}  // namespace delta_parquet
