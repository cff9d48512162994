// Search for a short sequence of bytes in a text.
#pragma once

#include <cstdint>
#include <cstring>

#include "platform/find.h"
#include "rows/compact.h"

namespace delta_parquet {

// Return the first occurrence of `part` in [at, stop), nullptr if there is none. Bytes after `stop` may be read, within
// SLACK. Candidates are places where the first and the last byte match; after too many of them, `find_part` continues, whose time
// is linear.
inline const uint8_t *find_bytes(const uint8_t *at, const uint8_t *stop, const uint8_t *part, size_t size) {
#ifdef COMPACT_AVX2
    enum : int64_t { BLOCK = 16, FREE_TRIALS = 64, BLOCKS_PER_TRIAL = 2 };
    if (size >= 2 && stop - at >= static_cast<int64_t>(size)) {
        const __m128i first = _mm_set1_epi8(static_cast<char>(part[0])), last = _mm_set1_epi8(static_cast<char>(part[size - 1]));
        const uint8_t *const end = stop - size + 1;
        int64_t trials = FREE_TRIALS * BLOCKS_PER_TRIAL;
        for (; at < end && trials > 0; at += BLOCK, trials++) {
            const __m128i begins = _mm_loadu_si128(reinterpret_cast<const __m128i *>(at));
            const __m128i ends = _mm_loadu_si128(reinterpret_cast<const __m128i *>(at + size - 1));
            uint32_t found = _mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(begins, first), _mm_cmpeq_epi8(ends, last)));
            for (; found; found &= found - 1, trials -= BLOCKS_PER_TRIAL) {
                const uint8_t *const place = at + __builtin_ctz(found);
                if (place >= end) return nullptr;
                if (!std::memcmp(place + 1, part + 1, size - 2)) return place;
            }
        }
        if (at >= end) return nullptr;
    }
#endif
    return find_part(at, stop, part, size);
}

}  // namespace delta_parquet
