// Values selected by a mask, in order. No allocation, no Python. A mask consists of 64-bit words: bit i of word w belongs to
// value 64 w + i; bits after the last value are ignored.
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define COMPACT_AVX2 1
#endif

static inline uint64_t mask_word(const uint64_t *keep, int64_t w, int64_t n) {
    int64_t left = n - 64 * w;
    return left >= 64 ? keep[w] : keep[w] & ((UINT64_C(1) << left) - 1);
}

#define COUNT_BITS { int64_t total = 0; for (int64_t w = 0; 64 * w < n; w++) total += __builtin_popcountll(mask_word(keep, w, n)); \
                     return total; }

static inline int64_t mask_count_plain(const uint64_t *keep, int64_t n) COUNT_BITS

#ifdef COMPACT_AVX2
__attribute__((target("popcnt")))
static inline int64_t mask_count_hardware(const uint64_t *keep, int64_t n) COUNT_BITS
#endif

// Return the number of bits that are set among the first n of the mask.
static inline int64_t mask_count(const uint64_t *keep, int64_t n) {
#ifdef COMPACT_AVX2
    if (__builtin_cpu_supports("popcnt")) return mask_count_hardware(keep, n);
#endif
    return mask_count_plain(keep, n);
}

/* ---- indices ------------------------------------------------------------------------------------------------- */

// Write the indices of the selected values. `out` has room for one more.
static inline void mask_indices(const uint64_t *keep, int64_t n, int32_t *out) {
    int64_t k = 0;
    for (int64_t w = 0; 64 * w < n; w++) {
        uint64_t word = mask_word(keep, w, n);
        int64_t bits = n - 64 * w < 64 ? n - 64 * w : 64;
        if (!word) continue;
        for (int64_t i = 0; i < bits; i++) {  // without a branch, which would be mispredicted
            out[k] = (int32_t)(64 * w + i);
            k += word >> i & 1;
        }
    }
}

/* ---- values of fixed width ------------------------------------------------------------------------------------ */

typedef struct { uint64_t low, high; } wide_value;

// Values may be unaligned, as those of a page are.
#define COMPACT(T) \
    { const uint8_t *from = source + 64 * w * (int64_t)sizeof(T); \
      if (!~word) { memcpy(out + k * (int64_t)sizeof(T), from, 64 * sizeof(T)); k += 64; } \
      else if (word) for (int64_t i = 0; i < bits; i++) { \
          T value; memcpy(&value, from + i * (int64_t)sizeof(T), sizeof(T)); \
          memcpy(out + k * (int64_t)sizeof(T), &value, sizeof(T)); k += word >> i & 1; } }

static inline int64_t compact_word(const uint8_t *source, int width, uint64_t word, int64_t w, int64_t bits, int64_t k,
                                   uint8_t *out) {
    switch (width) {
        case 1: COMPACT(uint8_t) break;
        case 2: COMPACT(uint16_t) break;
        case 4: COMPACT(uint32_t) break;
        case 8: COMPACT(uint64_t) break;
        case 16: COMPACT(wide_value) break;
    }
    return k;
}

static inline void compact_plain(const uint8_t *source, int width, const uint64_t *keep, int64_t n, uint8_t *out) {
    int64_t k = 0;
    for (int64_t w = 0; 64 * w < n; w++) {
        int64_t bits = n - 64 * w < 64 ? n - 64 * w : 64;
        k = compact_word(source, width, mask_word(keep, w, n), w, bits, k, out);
    }
}

#ifdef COMPACT_AVX2
// For each byte of a mask: the indices of its set bits, followed by undefined ones; and pairs of indices for each half of a
// byte.
static uint8_t lanes_of_32[256][8], lanes_of_64[16][8];

// Initialised when a module that includes this header is loaded, because values would be wrong in a module without the
// tables.
__attribute__((constructor))
static void compact_prepare(void) {
    for (int m = 0; m < 256; m++)
        for (int i = 0, k = 0; i < 8; i++)
            if (m >> i & 1) lanes_of_32[m][k++] = (uint8_t)i;
    for (int m = 0; m < 16; m++)
        for (int i = 0, k = 0; i < 4; i++)
            if (m >> i & 1) { lanes_of_64[m][k++] = (uint8_t)(2 * i); lanes_of_64[m][k++] = (uint8_t)(2 * i + 1); }
}

__attribute__((target("avx2,popcnt")))
static inline __m256i permuted(const uint8_t *from, const uint8_t *lanes) {
    __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)lanes));
    return _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)from), order);
}

// Select values of whole words only: 32 bytes are read and written at once. Returns the number of selected values. `width`, a
// constant in each caller, is 4 or 8, and `lanes` is its table.
__attribute__((target("avx2,popcnt"), always_inline))
static inline int64_t compact_words(const uint8_t *source, int width, const uint8_t (*lanes)[8], const uint64_t *keep,
                                    int64_t words, uint8_t *out) {
    const int step = 32 / width;
    int64_t k = 0;
    for (int64_t w = 0; w < words; w++) {
        uint64_t word = keep[w];
        const uint8_t *from = source + 64 * w * width;
        if (!~word) { memcpy(out + k * width, from, (size_t)(64 * width)); k += 64; continue; }
        if (__builtin_popcountll(word) <= 4) {  // one by one, if few are selected
            for (; word; word &= word - 1, k++) memcpy(out + k * width, from + __builtin_ctzll(word) * width, (size_t)width);
            continue;
        }
        for (int i = 0; i < 64; i += step) {
            unsigned m = word >> i & ((1u << step) - 1);
            _mm256_storeu_si256((__m256i *)(out + k * width), permuted(from + i * width, lanes[m]));
            k += __builtin_popcount(m);
        }
    }
    return k;
}

__attribute__((target("avx2,popcnt")))
static inline int64_t compact_words_32(const uint8_t *source, const uint64_t *keep, int64_t words, uint8_t *out) {
    return compact_words(source, 4, (const uint8_t (*)[8])lanes_of_32, keep, words, out);
}

__attribute__((target("avx2,popcnt")))
static inline int64_t compact_words_64(const uint8_t *source, const uint64_t *keep, int64_t words, uint8_t *out) {
    return compact_words(source, 8, (const uint8_t (*)[8])lanes_of_64, keep, words, out);
}
#endif

// Select values of 1, 2, 4, 8 or 16 bytes. Up to 32 bytes after the selected ones are overwritten, never those after place n.
static inline int compact_fixed(const uint8_t *source, int width, const uint64_t *keep, int64_t n, uint8_t *out) {
    if (width != 1 && width != 2 && width != 4 && width != 8 && width != 16) return 0;
#ifdef COMPACT_AVX2
    if ((width == 4 || width == 8) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt")) {
        int64_t words = n / 64, k;
        k = width == 4 ? compact_words_32(source, keep, words, out) : compact_words_64(source, keep, words, out);
        compact_plain(source + 64 * words * width, width, keep + words, n - 64 * words, out + k * width);
        return 1;
    }
#endif
    compact_plain(source, width, keep, n, out);
    return 1;
}

/* ---- bits ----------------------------------------------------------------------------------------------------- */

// Return 64 bits from bit `at` on; those from `end` on are zero.
static inline uint64_t bits_from(const uint8_t *bits, int64_t at, int64_t end) {
    int64_t first = at >> 3, have = ((end + 7) >> 3) - first;
    uint8_t room[9] = {0};
    uint64_t word;
    memcpy(room, bits + first, (size_t)(have < 9 ? have : 9));
    memcpy(&word, room, 8);
    if (at & 7) word = word >> (at & 7) | (uint64_t)room[8] << (64 - (at & 7));
    return end - at < 64 ? word & ((UINT64_C(1) << (end - at)) - 1) : word;
}

static inline uint64_t extract_plain(uint64_t word, uint64_t mask) {
    uint64_t found = 0;
    for (int k = 0; mask; mask &= mask - 1, k++) found |= (word >> __builtin_ctzll(mask) & 1) << k;
    return found;
}

// EXTRACT is a function that gathers the bits of a word at the places of a mask.
#define COMPACT_BITS(EXTRACT) { \
    uint64_t pending = 0; \
    int64_t set = 0, filled = 0; \
    for (int64_t w = 0; 64 * w < n; w++) { \
        uint64_t mask = mask_word(keep, w, n), word = bits_from(bits, offset + 64 * w, offset + n); \
        uint64_t found = !~mask ? word : EXTRACT(word, mask); \
        int count = __builtin_popcountll(mask); \
        set += __builtin_popcountll(found); \
        pending |= found << filled; \
        if (filled + count >= 64) { \
            memcpy(out, &pending, 8); \
            out += 8; \
            pending = filled ? found >> (64 - filled) : 0; \
            filled -= 64; \
        } \
        filled += count; \
    } \
    memcpy(out, &pending, 8); \
    return set; }

static inline int64_t compact_bits_plain(const uint8_t *bits, int64_t offset, const uint64_t *keep, int64_t n, uint8_t *out)
    COMPACT_BITS(extract_plain)

#ifdef COMPACT_AVX2
__attribute__((target("bmi2,popcnt")))
static inline int64_t compact_bits_hardware(const uint8_t *bits, int64_t offset, const uint64_t *keep, int64_t n, uint8_t *out)
    COMPACT_BITS(_pext_u64)
#endif

// Return how many of the selected bits are set. `out` has 8 bytes more than the selected bits fill; bits after them are zero.
static inline int64_t compact_bits(const uint8_t *bits, int64_t offset, const uint64_t *keep, int64_t n, uint8_t *out) {
#ifdef COMPACT_AVX2
    if (__builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt")) return compact_bits_hardware(bits, offset, keep, n, out);
#endif
    return compact_bits_plain(bits, offset, keep, n, out);
}

static inline uint64_t deposit_plain(uint64_t word, uint64_t mask) {
    uint64_t out = 0;
    for (; mask; mask &= mask - 1, word >>= 1) if (word & 1) out |= mask & -mask;
    return out;
}

// DEPOSIT is a function that moves the lowest bits of a word to the places of a mask.
#define NARROW_MASK(DEPOSIT) { \
    int64_t at = 0, total = 0; \
    for (int64_t w = 0; 64 * w < n; w++) { \
        uint64_t mask = mask_word(keep, w, n), found = 0; \
        if (mask && at < count) found = DEPOSIT(bits_from((const uint8_t *)inner, at, count), mask); \
        at += __builtin_popcountll(mask); \
        total += __builtin_popcountll(found); \
        out[w] = found; \
    } \
    return total; }

static inline int64_t mask_narrow_plain(const uint64_t *keep, int64_t n, const uint64_t *inner, int64_t count, uint64_t *out)
    NARROW_MASK(deposit_plain)

#ifdef COMPACT_AVX2
__attribute__((target("bmi2,popcnt")))
static inline int64_t mask_narrow_hardware(const uint64_t *keep, int64_t n, const uint64_t *inner, int64_t count, uint64_t *out)
    NARROW_MASK(_pdep_u64)
#endif

// Narrow a mask of n values: its k-th set bit stays set if bit k of `inner`, which has `count` bits, is set. Returns the
// number of bits that remain set. `out`, of as many words as the mask, may be the mask itself.
static inline int64_t mask_narrow(const uint64_t *keep, int64_t n, const uint64_t *inner, int64_t count, uint64_t *out) {
#ifdef COMPACT_AVX2
    if (__builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt")) return mask_narrow_hardware(keep, n, inner, count, out);
#endif
    return mask_narrow_plain(keep, n, inner, count, out);
}
