// Encodings of values other than PLAIN and dictionaries (Encodings.md of apache/parquet-format).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "memory/byte_copies.h"
#include "runs.h"
#include "thrift.h"

namespace delta_parquet {

// Return the number of `width` (up to 64) bits that begins at bit `bit`.
inline uint64_t bits_at(const uint8_t *in, uint64_t bit, int width) {
    const uint64_t low = load<uint64_t>(in + bit / 8) >> bit % 8;
    const uint64_t value = bit % 8 + width > 64 ? low | static_cast<uint64_t>(in[bit / 8 + 8]) << (64 - bit % 8) : low;
    return width < 64 ? value & ((UINT64_C(1) << width) - 1) : value;
}

// Decode `n` numbers of DELTA_BINARY_PACKED, and move `in` after them. Returns false if the page has another number of them.
// T is unsigned, so that deltas wrap around; DuckDB writes those of 32-bit numbers with more bits.
template <class T>
inline bool decode_deltas(const uint8_t *&in, const uint8_t *end, int64_t n, uint8_t *out) {
    enum : int64_t { STEP = 64, MOST_BLOCK = 1 << 16 };
    uint64_t block, parts, total, zigzag;
    if (!read_varint(in, end, block) || !read_varint(in, end, parts) || !read_varint(in, end, total) || !read_varint(in, end, zigzag)) return false;
    if (!parts || !block || block > MOST_BLOCK || block % parts || block / parts % 32 || total != static_cast<uint64_t>(n)) return false;
    const int64_t of_part = static_cast<int64_t>(block / parts);
    T value = static_cast<T>(zigzag >> 1 ^ -(zigzag & 1));
    if (!n) return true;
    std::memcpy(out, &value, sizeof(T));
    uint32_t some[STEP];
    for (int64_t done = 1; done < n;) {
        if (!read_varint(in, end, zigzag) || static_cast<uint64_t>(end - in) < parts) return false;
        const T least = static_cast<T>(zigzag >> 1 ^ -(zigzag & 1));
        const uint8_t *const widths = in;
        in += parts;
        for (uint64_t part = 0; part < parts && done < n; part++) {
            const int width = widths[part];
            if (width > 64 || end - in < of_part / 8 * width) return false;
            const Unpack unpack_groups = width <= 32 ? unpack_of(width, std::make_integer_sequence<int, 33>()) : nullptr;
            const int64_t stop = std::min(n, done + of_part);
            for (int64_t first = 0; done < stop; first += STEP) {
                const int64_t count = std::min<int64_t>(STEP, stop - done);
                T *const values = reinterpret_cast<T *>(out) + done;
                if (unpack_groups) {
                    // a part has at least 32 more numbers, or none
                    unpack_groups(in + first / 8 * width, (count + 7) / 8, some);
                    for (int64_t i = 0; i < count; i++) values[i] = value = static_cast<T>(value + least + some[i]);
                } else {
                    for (int64_t i = 0; i < count; i++) {
                        values[i] = value = static_cast<T>(value + least + bits_at(in, static_cast<uint64_t>((first + i) * width), width));
                    }
                }
                done += count;
            }
            in += of_part / 8 * width;
        }
    }
    return true;
}

// Write values of BYTE_STREAM_SPLIT, the first bytes of all values followed by the second bytes of all and so on, as PLAIN
// values.
inline void join_streams(const uint8_t *in, int64_t n, int bytes, uint8_t *out) {
    const auto join = [&](auto size) {
        for (int64_t i = 0; i < n; i++)
            for (int k = 0; k < size; k++) out[i * size + k] = in[k * n + i];
    };
    if (bytes == 4) join(std::integral_constant<int, 4>());
    else if (bytes == 8) join(std::integral_constant<int, 8>());
    else join(bytes);
}

}  // namespace delta_parquet
