// Tests of many values at once, a flag for each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "memory/byte_copies.h"
#include "rows/compact.h"
#include "value_tests.h"

namespace delta_parquet {

template <class T, class Bound>
__attribute__((always_inline)) inline void mark(const uint8_t *values, int64_t n, Bound low, Bound high, bool nan, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        const T value = load<T>(values + i * sizeof(T));
        out[i] = static_cast<uint8_t>((value >= low) & (value <= high)) | static_cast<uint8_t>(nan & (value != value));
    }
}

template <class T>
__attribute__((always_inline)) inline void mark(const uint8_t *values, int64_t n, const Test &test, uint8_t *out) {
    if constexpr (std::is_floating_point_v<T>) {
        mark<T, T>(values, n, static_cast<T>(test.low), static_cast<T>(test.high), test.with_nan, out);
    } else {
        // precondition, checked by `read_passing`: the type contains the bounds
        mark<T, T>(values, n, static_cast<T>(test.least), static_cast<T>(test.most), false, out);
    }
}

template <class T>
inline void mark_plain(const uint8_t *values, int64_t n, const Test &test, uint8_t *out) { mark<T>(values, n, test, out); }

#ifdef COMPACT_AVX2
template <class T>
__attribute__((target("avx2"))) inline void mark_avx2(const uint8_t *values, int64_t n, const Test &test, uint8_t *out) {
    mark<T>(values, n, test, out);
}
#endif

inline __int128 number_of(const Wide &value) {
    return static_cast<__int128>(static_cast<unsigned __int128>(value.high) << 64 | value.low);
}

inline void mark_wide(const uint8_t *values, int64_t n, const Test &test, uint8_t *out) {
    const __int128 least = number_of(test.wide_least), most = number_of(test.wide_most);
    for (int64_t i = 0; i < n; i++) {
        const __int128 value = number_of(load<Wide>(values + i * sizeof(Wide)));
        out[i] = static_cast<uint8_t>((value >= least) & (value <= most));
    }
}

template <class T>
inline void mark_keys(const uint8_t *values, int64_t n, const Test &test, uint8_t *out) {
    using Key = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
    for (int64_t i = 0; test.is_exact && i < n; i++) {
        const uint64_t place = static_cast<uint64_t>(static_cast<int64_t>(load<T>(values + i * sizeof(T)))) - test.first;
        out[i] = place < test.range && test.has_bit(place);
    }
    for (int64_t i = 0; !test.is_exact && i < n; i++) {
        const Key value = load<T>(values + i * sizeof(T));
        out[i] = test.has_bit(test.hash_of(value)) && test.has_key<Key>(value);
    }
}

// Write 1 for each value that passes, else 0. The values may be unaligned.
template <class T>
inline void mark_values(const uint8_t *values, int64_t n, const Test &test, uint8_t *out) {
    if (test.kind == IN_SET) return mark_keys<T>(values, n, test, out);
#ifdef COMPACT_AVX2
    if (__builtin_cpu_supports("avx2")) return mark_avx2<T>(values, n, test, out);
#endif
    mark_plain<T>(values, n, test, out);
}

inline void mark_alone(const uint8_t *values, int64_t n, int width, const Test &test, uint8_t *out) {
    if (test.is_float) return width == 4 ? mark_values<float>(values, n, test, out) : mark_values<double>(values, n, test, out);
    switch (width) {
        case 1: return mark_values<int8_t>(values, n, test, out);
        case 2: return mark_values<int16_t>(values, n, test, out);
        case 4: return mark_values<int32_t>(values, n, test, out);
        case 8: return mark_values<int64_t>(values, n, test, out);
        default: return mark_wide(values, n, test, out);
    }
}

inline void mark_values(const uint8_t *values, int64_t n, int width, const Test &test, uint8_t *out);

// The same for a joined test, whose parts are evaluated block by block.
inline void mark_parts(const uint8_t *values, int64_t n, int width, const Test &test, uint8_t *out) {
    enum : int64_t { BLOCK = 1024 };
    uint8_t block[BLOCK];
    const bool is_any = test.kind == ANY_OF;
    if (test.parts.empty()) std::memset(out, !is_any, n);
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t count = std::min<int64_t>(BLOCK, n - i);
        uint8_t *const flags = out + i;
        for (size_t k = 0; k < test.parts.size(); k++) {
            mark_values(values + i * width, count, width, *test.parts[k], k ? block : flags);
            for (int64_t j = 0; k && is_any && j < count; j++) flags[j] |= block[j];
            for (int64_t j = 0; k && !is_any && j < count; j++) flags[j] &= block[j];
        }
    }
}

inline void mark_values(const uint8_t *values, int64_t n, int width, const Test &test, uint8_t *out) {
    if (test.is_joined()) mark_parts(values, n, width, test, out);
    else mark_alone(values, n, width, test, out);
    for (int64_t i = 0; test.is_negated && i < n; i++) out[i] ^= 1;
}

// The same for PLAIN strings; returns false if the last one does not end where the page does.
inline bool mark_texts(const uint8_t *in, const uint8_t *end, int64_t n, const Test &test, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        if (end - in < 4) return false;
        const uint32_t size = load<uint32_t>(in);
        in += 4;
        if (size > static_cast<uint64_t>(end - in)) return false;
        out[i] = test.passes(in, size);
        in += size;
    }
    return in == end;
}

}  // namespace delta_parquet
