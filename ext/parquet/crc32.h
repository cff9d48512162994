// CRC-32 of pages of Parquet files, as in gzip (polynomial 0x04c11db7, reflected). No allocation, no Python.
//
// With carry-less multiplication a core takes less time for a block than for loading it from memory. The method and the
// derivation of its constants are described in "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction"
// (Intel, 2009).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define CRC32_PCLMUL 1
#endif

namespace delta_parquet {

// Tables for 8 bytes at a time.
struct Crc32Tables {
    uint32_t of[8][256];
    constexpr Crc32Tables() : of() {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t sum = byte;
            for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
            of[0][byte] = sum;
        }
        for (int table = 1; table < 8; table++)
            for (int byte = 0; byte < 256; byte++) of[table][byte] = of[table - 1][byte] >> 8 ^ of[0][of[table - 1][byte] & 0xff];
    }
};
inline constexpr Crc32Tables CRC32_TABLES{};

// Continue a sum that is not inverted.
inline uint32_t crc32_by_tables(uint32_t sum, const uint8_t *in, size_t n) {
    const auto &of = CRC32_TABLES.of;
    for (; n >= 8; n -= 8, in += 8) {
        uint32_t low, high;
        std::memcpy(&low, in, 4);
        std::memcpy(&high, in + 4, 4);
        low ^= sum;
        sum = of[7][low & 0xff] ^ of[6][low >> 8 & 0xff] ^ of[5][low >> 16 & 0xff] ^ of[4][low >> 24] ^ of[3][high & 0xff] ^
              of[2][high >> 8 & 0xff] ^ of[1][high >> 16 & 0xff] ^ of[0][high >> 24];
    }
    for (; n; n--) sum = sum >> 8 ^ of[0][(sum ^ *in++) & 0xff];
    return sum;
}

#ifdef CRC32_PCLMUL
// Multiply both halves of a block by powers of the polynomial, and add the next block.
__attribute__((target("pclmul,sse4.1"), always_inline)) inline __m128i crc32_fold(__m128i block, __m128i powers, __m128i next) {
    const __m128i low = _mm_clmulepi64_si128(block, powers, 0x00), high = _mm_clmulepi64_si128(block, powers, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// The same for a multiple of 16 bytes, at least 64.
__attribute__((target("pclmul,sse4.1"))) inline uint32_t crc32_by_multiplication(uint32_t sum, const uint8_t *in, size_t n) {
    const auto block = [](const uint8_t *at) __attribute__((target("pclmul,sse4.1"))) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i *>(at));
    };
    const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4), by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    __m128i a = _mm_xor_si128(block(in), _mm_cvtsi32_si128(static_cast<int>(sum))), b = block(in + 16), c = block(in + 32), d = block(in + 48);
    for (in += 64, n -= 64; n >= 64; in += 64, n -= 64) {
        a = crc32_fold(a, by_64, block(in));
        b = crc32_fold(b, by_64, block(in + 16));
        c = crc32_fold(c, by_64, block(in + 32));
        d = crc32_fold(d, by_64, block(in + 48));
    }
    a = crc32_fold(a, by_16, b);
    a = crc32_fold(a, by_16, c);
    a = crc32_fold(a, by_16, d);
    for (; n >= 16; in += 16, n -= 16) a = crc32_fold(a, by_16, block(in));
    // 128 bits to 64, to 32 (Barrett's reduction)
    const __m128i lower = _mm_setr_epi32(~0, 0, ~0, 0), by_4 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i polynomial = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_16, 0x10));
    a = _mm_xor_si128(_mm_srli_si128(a, 4), _mm_clmulepi64_si128(_mm_and_si128(a, lower), by_4, 0x00));
    __m128i quotient = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(a, lower), polynomial, 0x10), lower);
    return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(a, _mm_clmulepi64_si128(quotient, polynomial, 0x00)), 1));
}
#endif

inline uint32_t crc32_of_page(const uint8_t *in, size_t n) {
    uint32_t sum = ~UINT32_C(0);
#ifdef CRC32_PCLMUL
    if (n >= 64 && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")) {
        const size_t blocks = n / 16 * 16;
        sum = crc32_by_multiplication(sum, in, blocks);
        in += blocks;
        n -= blocks;
    }
#endif
    return ~crc32_by_tables(sum, in, n);
}

}  // namespace delta_parquet
