// FastLanes: 1,024 values of T bits are packed to W bits each, so that neighbouring words of the processor unpack side by side.
//
// There are 1024 / T lanes. Word c of lane l is word c * lanes + l; the value of row r of a lane begins at bit r * W of the
// lane, and has the index ORDER[r / 8] * 16 + r % 8 * 128 + l.
#pragma once

#include <cstdint>
#include <cstring>

namespace delta_lance {

enum { FASTLANES_VALUES = 1024 };

// Unpack 1,024 values from W * 128 bytes. `width` is at most the bits of T.
template <class T>
inline void unpack_fastlanes(unsigned width, const uint8_t *in, T *__restrict out) {
    constexpr unsigned BITS = sizeof(T) * 8, LANES = FASTLANES_VALUES / BITS;
    static constexpr unsigned ORDER[8] = {0, 4, 2, 6, 1, 5, 3, 7};
    if (width == 0) {
        std::memset(out, 0, FASTLANES_VALUES * sizeof(T));
        return;
    }
    const T mask = width == BITS ? static_cast<T>(~T(0)) : static_cast<T>((T(1) << (width % BITS)) - 1);
    for (unsigned row = 0; row < BITS; row++) {
        const unsigned bit = row * width, word = bit / BITS, shift = bit % BITS;
        T *const to = out + ORDER[row / 8] * 16 + row % 8 * 128;
        T low[LANES];
        std::memcpy(low, in + word * sizeof(low), sizeof(low));
        if (shift + width <= BITS) {
            for (unsigned lane = 0; lane < LANES; lane++) to[lane] = static_cast<T>(static_cast<T>(low[lane] >> shift) & mask);
        } else {
            T high[LANES];
            std::memcpy(high, in + (word + 1) * sizeof(high), sizeof(high));
            for (unsigned lane = 0; lane < LANES; lane++)
                to[lane] = static_cast<T>((static_cast<T>(low[lane] >> shift) | static_cast<T>(high[lane] << (BITS - shift))) & mask);
        }
    }
}

// Pack 1,024 values into W * 128 bytes; bits above the width are dropped.
template <class T>
inline void pack_fastlanes(unsigned width, const T *in, uint8_t *out) {
    constexpr unsigned BITS = sizeof(T) * 8, LANES = FASTLANES_VALUES / BITS;
    static constexpr unsigned ORDER[8] = {0, 4, 2, 6, 1, 5, 3, 7};
    if (width == 0) return;
    const T mask = width == BITS ? static_cast<T>(~T(0)) : static_cast<T>((T(1) << (width % BITS)) - 1);
    T word_of[LANES] = {};
    for (unsigned row = 0; row < BITS; row++) {
        const unsigned bit = row * width, shift = bit % BITS;
        const T *const from = in + ORDER[row / 8] * 16 + row % 8 * 128;
        for (unsigned lane = 0; lane < LANES; lane++)
            word_of[lane] = static_cast<T>(word_of[lane] | static_cast<T>(static_cast<T>(from[lane] & mask) << shift));
        if (shift + width < BITS) continue;
        std::memcpy(out + bit / BITS * sizeof(word_of), word_of, sizeof(word_of));
        const unsigned used = BITS - shift;
        for (unsigned lane = 0; lane < LANES; lane++)
            word_of[lane] = used >= width ? T(0) : static_cast<T>(static_cast<T>(from[lane] & mask) >> used);
    }
}

}  // namespace delta_lance
