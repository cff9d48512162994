// Bitmaps of rows.
#pragma once

#include <cstdint>
#include <cstring>

#include "memory/byte_copies.h"
#include "rows/compact.h"

namespace delta_parquet {

// Set the bits from `first` on that are set in `word`. Up to 16 bytes from there on are accessed.
inline void or_word(uint8_t *bits, int64_t first, uint64_t word) {
    uint8_t *const out = bits + (first >> 3);
    const int shift = first & 7;
    const uint64_t low = load<uint64_t>(out) | word << shift;
    std::memcpy(out, &low, 8);
    if (shift) out[8] |= static_cast<uint8_t>(word >> (64 - shift));
}

// Set `n` bits from `first` on to those of a mask. Precondition: the bits were zero.
inline void or_bits(uint8_t *bits, int64_t first, const uint64_t *mask, int64_t n) {
    for (int64_t w = 0; 64 * w < n; w++) or_word(bits, first + 64 * w, mask_word(mask, w, n));
}

// The same in whole words; no word after the last bit is accessed.
inline void or_bits(uint64_t *out, int64_t first, const uint64_t *mask, int64_t n) {
    const int shift = first % 64;
    out += first / 64;
    for (int64_t w = 0; 64 * w < n; w++) {
        const uint64_t word = mask_word(mask, w, n);
        out[w] |= word << shift;
        if (shift && word >> (64 - shift)) out[w + 1] |= word >> (64 - shift);
    }
}

inline void set_bits(uint8_t *bits, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; i += 64) or_word(bits, first + i, n - i >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (n - i)) - 1);
}

// Write a value for each of `n` rows; rows without a value become 0.
template <class T>
inline void spread(const uint8_t *values, const uint64_t *valid, int64_t n, uint8_t *out) {
    for (int64_t w = 0; 64 * w < n; w++, out += 64 * sizeof(T)) {
        uint64_t word = mask_word(valid, w, n);
        if (!~word) {
            std::memcpy(out, values, 64 * sizeof(T));
            values += 64 * sizeof(T);
            continue;
        }
        const int64_t rows = n - 64 * w < 64 ? n - 64 * w : 64;
        std::memset(out, 0, rows * sizeof(T));
        for (; word; word &= word - 1, values += sizeof(T)) std::memcpy(out + __builtin_ctzll(word) * sizeof(T), values, sizeof(T));
    }
}

}  // namespace delta_parquet
