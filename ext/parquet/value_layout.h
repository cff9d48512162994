// Layouts of values in pages and in memory, and the conversion of values whose layouts differ.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "memory/byte_copies.h"
#include "rows/compact.h"

namespace delta_parquet {

// The layout of values in memory and in pages.
struct ValueLayout {
    // Values of `stored`: the same layout in pages and in memory; one bit each in both (booleans); floats, the same in both;
    // integers of 4 or 8 bytes; INT96 timestamps, the nanoseconds of a Julian day and its number, which become microseconds
    // since 1970.
    enum : int { AS_IN_MEMORY = 0, BITS = 1, FLOATS = 2, INT_4 = 4, INT_8 = 8, INSTANTS = 12, MOST_BYTES = 16 };

    // Bytes of a value in memory: 0 for strings, 1 for bits, which are stored 8 to a byte.
    int width = 0;
    // One of these; or -1 to -16 for numbers of 1 to 16 bytes, most significant byte first.
    int stored = AS_IN_MEMORY;

    bool is_bits() const { return stored == BITS; }
    bool is_converted() const { return stored != AS_IN_MEMORY && stored != BITS && stored != FLOATS; }
    // Return whether pages contain integers, least significant byte first.
    bool is_integer() const { return stored == INT_4 || stored == INT_8 || (stored == AS_IN_MEMORY && width); }
    // Return the bytes of a value in pages.
    int page_bytes() const { return !is_converted() ? width : stored < 0 ? -stored : stored; }
    // Return the bytes of `n` values in memory.
    int64_t bytes_of(int64_t n) const { return is_bits() ? (n + 7) / 8 : n * width; }
    // Return whether this layout is supported.
    bool is_known() const {
        if (!is_converted()) return true;
        if (stored == INSTANTS) return width == 8;
        if (stored == INT_4) return width == 1 || width == 2 || width == 16;
        return width == 16 && (stored == INT_8 || (stored < 0 && stored >= -MOST_BYTES));
    }
};

// A number of 128 bits as in Arrow.
struct Wide {
    uint64_t low = 0, high = 0;
    Wide() = default;
    explicit Wide(int64_t value) : low(static_cast<uint64_t>(value)), high(static_cast<uint64_t>(value >> 63)) {}
    Wide(uint64_t low, uint64_t high) : low(low), high(high) {}
};

// Read a number of `bytes` bytes, most significant byte first. Up to 7 bytes after it are read.
template <int bytes>
inline int64_t load_highest_first(const uint8_t *in) {
    return static_cast<int64_t>(__builtin_bswap64(load<uint64_t>(in))) >> (64 - 8 * bytes);
}
template <int bytes>
inline Wide load_wide(const uint8_t *in) {
    if constexpr (bytes <= 8) return Wide(load_highest_first<bytes>(in));
    else return Wide(__builtin_bswap64(load<uint64_t>(in + bytes - 8)), static_cast<uint64_t>(load_highest_first<bytes - 8>(in)));
}

// Read an INT96 timestamp in microseconds; values out of range wrap around, as in PyArrow.
inline int64_t load_instant(const uint8_t *in) {
    const uint64_t days = load<uint32_t>(in + 8) - UINT64_C(2440588);
    return static_cast<int64_t>(days * UINT64_C(86400000000) + load<uint64_t>(in) / 1000);
}

// Write the result of `read` for all `n` values, or for those that a mask selects.
template <class T, class Read>
__attribute__((always_inline)) inline void convert(const uint8_t *in, int bytes, const uint64_t *keep, int64_t n, uint8_t *out, Read read) {
    const auto write = [&](int64_t i) {
        const T value = static_cast<T>(read(in + i * bytes));
        std::memcpy(out, &value, sizeof(T));
        out += sizeof(T);
    };
    if (!keep) {
        for (int64_t i = 0; i < n; i++) write(i);
        return;
    }
    for (int64_t w = 0; 64 * w < n; w++)
        for (uint64_t word = mask_word(keep, w, n); word; word &= word - 1) write(64 * w + __builtin_ctzll(word));
}

using Convert = void (*)(const uint8_t *in, const uint64_t *keep, int64_t n, uint8_t *out);

template <int bytes>
inline void convert_to_wide(const uint8_t *in, const uint64_t *keep, int64_t n, uint8_t *out) {
    convert<Wide>(in, bytes, keep, n, out, load_wide<bytes>);
}
template <int bytes>
inline void convert_to_long(const uint8_t *in, const uint64_t *keep, int64_t n, uint8_t *out) {
    convert<int64_t>(in, bytes, keep, n, out, load_highest_first<bytes>);
}
template <int... less>
inline Convert wide_converter(int bytes, std::integer_sequence<int, less...>) {
    static constexpr Convert of[] = {convert_to_wide<less + 1>...};
    return of[bytes - 1];
}
template <int... less>
inline Convert long_converter(int bytes, std::integer_sequence<int, less...>) {
    static constexpr Convert of[] = {convert_to_long<less + 1>...};
    return of[bytes - 1];
}

// Write values in their layout in memory, `layout.width` bytes each (8 if these suffice for a wider number): all `n`, or
// those that a mask selects.
inline void convert_values(const ValueLayout &layout, const uint8_t *in, const uint64_t *keep, int64_t n, uint8_t *out) {
    if (layout.stored == ValueLayout::INSTANTS) {
        convert<int64_t>(in, ValueLayout::INSTANTS, keep, n, out, load_instant);
    } else if (layout.stored < 0) {
        const Convert convert_all = layout.width == 8 ? long_converter(-layout.stored, std::make_integer_sequence<int, 8>())
                                                      : wide_converter(-layout.stored, std::make_integer_sequence<int, 16>());
        convert_all(in, keep, n, out);
    } else if (layout.stored == ValueLayout::INT_8) {
        if (layout.width == 8) convert<int64_t>(in, 8, keep, n, out, load<int64_t>);
        else convert<Wide>(in, 8, keep, n, out, load<int64_t>);
    } else if (layout.width == 1) {
        convert<int8_t>(in, 4, keep, n, out, load<int32_t>);
    } else if (layout.width == 2) {
        convert<int16_t>(in, 4, keep, n, out, load<int32_t>);
    } else if (layout.width == 8) {
        convert<int64_t>(in, 4, keep, n, out, load<int32_t>);
    } else {
        convert<Wide>(in, 4, keep, n, out, load<int32_t>);
    }
}

// Return whether numbers of 4 bytes fit into `width` bytes, 1 or 2.
inline bool fit_into(const uint8_t *in, int64_t n, int width) {
    const int32_t most = width == 1 ? INT8_MAX : INT16_MAX;
    int32_t beyond = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t value = load<int32_t>(in + 4 * i);
        beyond |= (value > most) | (value < -most - 1);
    }
    return !beyond;
}

}  // namespace delta_parquet
