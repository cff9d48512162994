// Loads and copies of few bytes. Every input buffer has SLACK readable bytes after its end, and every output buffer SLACK
// writable ones, so that short copies can be made in whole blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace delta_parquet {

enum { SLACK = 64 };

template <class T>
inline T load(const uint8_t *in) {
    T value;
    std::memcpy(&value, in, sizeof(T));
    return value;
}

// Copy 8 bytes; the places may overlap.
inline void copy_8(uint8_t *out, const uint8_t *in) {
    const uint64_t block = load<uint64_t>(in);
    std::memcpy(out, &block, 8);
}

// Copy `n` bytes in blocks. Up to SLACK - 1 bytes after either end are accessed.
inline void copy_blocks(uint8_t *out, const uint8_t *in, size_t n) {
    if (n > 256) {
        std::memcpy(out, in, n);
        return;
    }
    for (size_t i = 0; i < n; i += 32) std::memcpy(out + i, in + i, 32);
}

// Write `count` bytes that repeat those `distance` before `o`. Precondition: `distance` > 0. Up to 16 bytes after the last
// are written.
inline void copy_overlapping(uint8_t *o, size_t distance, size_t count) {
    const uint8_t *const from = o - distance;
    uint8_t *const next = o + count;
    if (distance >= 16) {
        for (size_t i = 0; i < count; i += 16) std::memcpy(o + i, from + i, 16);
        return;
    }
    // a shorter pattern is held in registers: bytes that were just written can't be loaded in other units before they have
    // left the processor's store buffer
    uint64_t low = load<uint64_t>(from);
    if (distance >= 8) {
        const unsigned bits = static_cast<unsigned>(8 * (distance - 8));
        const uint64_t high = (load<uint64_t>(from + 8) & ((UINT64_C(1) << bits) - 1)) | low << bits;
        for (; o < next; o += distance) {
            std::memcpy(o, &low, 8);
            std::memcpy(o + 8, &high, 8);
        }
        return;
    }
    low &= (UINT64_C(1) << 8 * distance) - 1;
    for (size_t bytes = distance; bytes < 8; bytes *= 2) low |= low << 8 * bytes;
    const size_t step = 8 / distance * distance;
    for (; o < next; o += step) std::memcpy(o, &low, 8);
}

}  // namespace delta_parquet
