// Bloom filters of blocks of 256 bits (BloomFilter.md of apache/parquet-format): the hash of a value selects one block and 8
// bits in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "memory/byte_copies.h"

namespace delta_parquet {

// --- xxHash of 64 bits, seed 0 (xxhash_spec.md of Cyan4973/xxHash) ---

namespace xxhash {
constexpr uint64_t P1 = UINT64_C(0x9e3779b185ebca87), P2 = UINT64_C(0xc2b2ae3d27d4eb4f), P3 = UINT64_C(0x165667b19e3779f9),
                   P4 = UINT64_C(0x85ebca77c2b2ae63), P5 = UINT64_C(0x27d4eb2f165667c5);
inline uint64_t rotated(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }
inline uint64_t lane(uint64_t sum, uint64_t word) { return rotated(sum + word * P2, 31) * P1; }
}  // namespace xxhash

inline uint64_t xxhash64(const uint8_t *in, size_t size) {
    using namespace xxhash;
    size_t left = size;
    uint64_t hash = P5;
    if (left >= 32) {
        uint64_t sums[4] = {P1 + P2, P2, 0, 0 - P1};
        for (; left >= 32; in += 32, left -= 32)
            for (int i = 0; i < 4; i++) sums[i] = lane(sums[i], load<uint64_t>(in + 8 * i));
        hash = rotated(sums[0], 1) + rotated(sums[1], 7) + rotated(sums[2], 12) + rotated(sums[3], 18);
        for (const uint64_t sum : sums) hash = (hash ^ lane(0, sum)) * P1 + P4;
    }
    hash += size;
    for (; left >= 8; in += 8, left -= 8) hash = rotated(hash ^ lane(0, load<uint64_t>(in)), 27) * P1 + P4;
    if (left >= 4) {
        hash = rotated(hash ^ load<uint32_t>(in) * P1, 23) * P2 + P3;
        in += 4, left -= 4;
    }
    for (; left; in++, left--) hash = rotated(hash ^ *in * P5, 11) * P1;
    hash = (hash ^ hash >> 33) * P2;
    hash = (hash ^ hash >> 29) * P3;
    return hash ^ hash >> 32;
}

// --- blocks ---

constexpr size_t BLOCK_BYTES = 32;

// Return the number of the block that a hash selects.
inline size_t block_of(uint64_t hash, uint64_t num_blocks) { return static_cast<size_t>((hash >> 32) * num_blocks >> 32); }

// Return whether the value with a hash may be in the filter with this block.
inline bool block_may_have(const uint8_t *block, uint64_t hash) {
    static constexpr uint32_t SALT[8] = {0x47b6137bu, 0x44974d91u, 0x8824ad5bu, 0xa2b7289du,
                                         0x705495c7u, 0x2df1424bu, 0x9efc4947u, 0x5c6bfb31u};
    for (int i = 0; i < 8; i++) {
        const uint32_t bit = static_cast<uint32_t>(hash) * SALT[i] >> 27;
        if (!(load<uint32_t>(block + 4 * i) >> bit & 1)) return false;
    }
    return true;
}

}  // namespace delta_parquet
