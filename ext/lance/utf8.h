// Whether texts are UTF-8: Arrow's strings have to be, and other libraries rely on it.
#pragma once

#include <cstdint>
#include <cstring>

#include "blocks.h"

namespace delta_lance {

inline bool is_ascii(const uint8_t *data, uint64_t n) {
    uint64_t all = 0, i = 0;
    for (; i + 32 <= n; i += 32)
        all |= load<uint64_t>(data + i) | load<uint64_t>(data + i + 8) | load<uint64_t>(data + i + 16) | load<uint64_t>(data + i + 24);
    for (; i < n; i++) all |= static_cast<uint64_t>(data[i]) << 56;
    return !(all & UINT64_C(0x8080808080808080));
}

// The length of the character that begins with a byte, 0 if there is none; `low` and `high` are the limits of its second byte
// (Unicode, table 3-7).
inline unsigned character_bytes(uint8_t first, uint8_t &low, uint8_t &high) {
    low = 0x80, high = 0xBF;
    if (first < 0x80) return 1;
    if (first < 0xC2) return 0;
    if (first < 0xE0) return 2;
    if (first < 0xF0) {
        if (first == 0xE0) low = 0xA0;
        if (first == 0xED) high = 0x9F;
        return 3;
    }
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    return first < 0xF5 ? 4 : 0;
}

inline bool is_utf8(const uint8_t *data, uint64_t n) {
    for (uint64_t i = 0; i < n;) {
        uint8_t low, high;
        const unsigned bytes = character_bytes(data[i], low, high);
        if (!bytes || bytes > n - i) return false;
        if (bytes > 1 && (data[i + 1] < low || data[i + 1] > high)) return false;
        for (unsigned k = 2; k < bytes; k++)
            if ((data[i + k] & 0xC0) != 0x80) return false;
        i += bytes;
    }
    return true;
}

// Whether each of n texts is UTF-8. Offsets rise and end within the bytes.
template <class T>
inline bool are_texts(const T *offsets, uint64_t n, const uint8_t *data) {
    const uint64_t first = static_cast<uint64_t>(offsets[0]), last = static_cast<uint64_t>(offsets[n]);
    if (first == last || is_ascii(data + first, last - first)) return true;
    if (!is_utf8(data + first, last - first)) return false;
    // a text that begins within a character ends the one before it there
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t at = static_cast<uint64_t>(offsets[i]);
        if (at < last && (data[at] & 0xC0) == 0x80) return false;
    }
    return true;
}

}  // namespace delta_lance
