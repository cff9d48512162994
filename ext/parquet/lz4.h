// LZ4 blocks (lz4_Block_format.md of lz4/lz4), without the frames of Hadoop.
#pragma once

#include <cstdint>
#include <cstring>

#include "memory/byte_copies.h"

namespace delta_parquet {

// Add the bytes that continue a length of 15; returns false if the input ends before.
inline bool lz4_length(const uint8_t *&in, const uint8_t *end, size_t &length) {
    uint8_t more;
    do {
        if (in >= end) return false;
        length += more = *in++;
    } while (more == 255);
    return true;
}

inline bool lz4_decompress(const uint8_t *in, size_t n, uint8_t *const out, size_t size) {
    const uint8_t *const end = in + n;
    uint8_t *o = out, *const stop = out + size;
    while (in < end) {
        const uint8_t tag = *in++;
        size_t count = tag >> 4;
        if (count < 15) {
            if (static_cast<size_t>(end - in) < count || static_cast<size_t>(stop - o) < count) return false;
            std::memcpy(o, in, 16);
        } else {
            if (!lz4_length(in, end, count) || static_cast<size_t>(end - in) < count || static_cast<size_t>(stop - o) < count) return false;
            copy_blocks(o, in, count);
        }
        in += count;
        o += count;
        if (in == end) return o == stop;  // the last literals are not followed by a copy
        if (end - in < 2) return false;
        const size_t distance = load<uint16_t>(in);
        in += 2;
        count = tag & 15;
        if (count == 15 && !lz4_length(in, end, count)) return false;
        count += 4;
        if (distance == 0 || distance > static_cast<size_t>(o - out) || static_cast<size_t>(stop - o) < count) return false;
        if (distance < count || distance < 32) copy_overlapping(o, distance, count);
        else copy_blocks(o, o - distance, count);
        o += count;
    }
    return false;
}

}  // namespace delta_parquet
