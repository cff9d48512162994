// Runs of small numbers (RLE/bit-packing hybrid of Encodings.md): definition levels and dictionary codes.
#pragma once

#include <cstdint>
#include <utility>

#include "memory/byte_copies.h"
#include "row_bits.h"
#include "thrift.h"

namespace delta_parquet {

inline int bit_width(uint64_t most) {
    int width = 0;
    for (; most; most >>= 1) width++;
    return width;
}

// Unpack groups of 8 numbers, `width` bytes each. Up to 7 bytes after the last are read.
template <int width>
inline void unpack(const uint8_t *in, int64_t groups, uint32_t *out) {
    constexpr uint32_t mask = width == 32 ? 0xffffffffu : (1u << (width % 32)) - 1;
    for (int64_t group = 0; group < groups; group++, in += width, out += 8)
        for (int i = 0; i < 8; i++)
            out[i] = static_cast<uint32_t>(load<uint64_t>(in + (i * width >> 3)) >> (i * width & 7)) & mask;
}

using Unpack = void (*)(const uint8_t *, int64_t, uint32_t *);

template <int... widths>
inline Unpack unpack_of(int width, std::integer_sequence<int, widths...>) {
    static constexpr Unpack of[] = {unpack<widths>...};
    return of[width];
}

// Decode `n` numbers; returns false if there are fewer. `out` has room for 7 more.
inline bool decode_runs(const uint8_t *in, const uint8_t *end, int width, int64_t n, uint32_t *out) {
    const int bytes = (width + 7) / 8;
    const Unpack unpack_groups = unpack_of(width, std::make_integer_sequence<int, 33>());
    int64_t done = 0;
    while (done < n) {
        uint64_t head;
        if (!read_varint(in, end, head)) return false;
        const uint64_t of_run = head >> 1;
        if (of_run > (1u << 30)) return false;
        if (head & 1) {
            const uint64_t size = of_run * width;
            if (size > static_cast<uint64_t>(end - in)) return false;
            int64_t groups = (n - done + 7) / 8;
            if (groups > static_cast<int64_t>(of_run)) groups = static_cast<int64_t>(of_run);
            unpack_groups(in, groups, out + done);
            in += size;
            done += 8 * groups;
        } else {
            if (end - in < bytes) return false;
            const uint32_t value = bytes ? load<uint32_t>(in) & (0xffffffffu >> (32 - 8 * bytes)) : 0;
            in += bytes;
            int64_t count = static_cast<int64_t>(of_run);
            if (count > n - done) count = n - done;
            for (int64_t i = 0; i < count; i++) out[done + i] = value;
            done += count;
        }
    }
    return true;
}

// Return whether one run contains all `n` numbers, and set `value` to their value.
inline bool is_one_run(const uint8_t *in, const uint8_t *end, int width, int64_t n, uint32_t &value) {
    uint64_t head;
    const int bytes = (width + 7) / 8;
    if (!read_varint(in, end, head) || head & 1 || static_cast<int64_t>(head >> 1) < n || end - in < bytes) return false;
    value = bytes ? load<uint32_t>(in) & (0xffffffffu >> (32 - 8 * bytes)) : 0;
    return true;
}

// Decode `n` levels of one bit each into bits of `out`, which are zero. Returns false if there are fewer, or greater ones.
inline bool decode_bits(const uint8_t *in, const uint8_t *end, int64_t n, uint8_t *out) {
    int64_t done = 0;
    while (done < n) {
        uint64_t head;
        if (!read_varint(in, end, head)) return false;
        const uint64_t of_run = head >> 1;
        if (of_run > (1u << 30)) return false;
        int64_t count = static_cast<int64_t>(of_run);
        if (head & 1) {
            if (of_run > static_cast<uint64_t>(end - in)) return false;
            count *= 8;
            if (count > n - done) count = n - done;
            for (int64_t i = 0; i < count; i += 64) or_word(out, done + i, bits_from(in, i, count));
            in += of_run;
        } else {
            if (in >= end || *in > 1) return false;
            if (count > n - done) count = n - done;
            if (*in++) set_bits(out, done, count);
        }
        done += count;
    }
    return true;
}

}  // namespace delta_parquet
