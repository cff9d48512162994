// Bloom filters of Parquet column chunks (BloomFilter.md of apache/parquet-format): whether a chunk certainly lacks a key.
//
// A filter consists of blocks of 256 bits. The hash of a value selects one block and 8 bits in it. A filter with another
// header than expected is not used; every key may then be in the chunk.
#pragma once

#include <cstdint>
#include <cstring>

#include "source.h"
#include "thrift.h"
#include "value_tests.h"

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

// --- filters in files ---

// BloomFilterHeader.
class BloomHeaderReader : public ThriftReader {
   public:
    using ThriftReader::ThriftReader;

    // Read the size of the filter in bytes. Returns false unless it is a block filter by xxHash and uncompressed.
    bool bloom_header(int64_t &bytes) {
        bool is_first[5] = {};
        bytes = -1;
        const bool good = each_field([&](int16_t id, int type) {
            if (id == 1 && type == I32) return number(bytes);
            return id >= 2 && id <= 4 && type == STRUCT ? first_of_union(is_first[id]) : skip(type);
        });
        return good && is_first[2] && is_first[3] && is_first[4];
    }

   private:
    // Set `is_first` to whether a union has its first member and no other one.
    bool first_of_union(bool &is_first) {
        int chosen = 0;
        is_first = true;
        const bool good = each_field([&](int16_t id, int type) {
            is_first = is_first && id == 1 && type == STRUCT;
            chosen++;
            return skip(type);
        });
        is_first = is_first && chosen == 1;
        return good;
    }
};

class BloomFilter {
   public:
    enum { BLOCK = 32, MOST_HEADER = 64 };

    // `size` is -1 if the footer does not contain it.
    BloomFilter(const Source &source, int64_t offset, int64_t size) : source_(source), offset_(offset), size_(size) {}

    // Read the header of the filter; returns false if the filter can't be used.
    bool open() {
        uint8_t head[MOST_HEADER];
        const int64_t there = size_ >= 0 && size_ < MOST_HEADER ? size_ : static_cast<int64_t>(MOST_HEADER);
        if (offset_ < 0 || !read(offset_, there, head)) return false;
        BloomHeaderReader thrift(head, head + there);
        int64_t bytes;
        if (!thrift.bloom_header(bytes) || bytes <= 0 || bytes % BLOCK || bytes > INT32_MAX) return false;
        const int64_t used = thrift.position() - head;
        if (size_ >= 0 && bytes > size_ - used) return false;
        blocks_ = static_cast<uint64_t>(bytes) / BLOCK;
        first_ = offset_ + used;
        return true;
    }

    // Return whether the value with these bytes may be in the chunk.
    bool may_have(const uint8_t *value, size_t size) const {
        static constexpr uint32_t SALT[8] = {0x47b6137bu, 0x44974d91u, 0x8824ad5bu, 0xa2b7289du,
                                             0x705495c7u, 0x2df1424bu, 0x9efc4947u, 0x5c6bfb31u};
        const uint64_t hash = xxhash64(value, size);
        uint8_t block[BLOCK];
        if (!read(first_ + static_cast<int64_t>((hash >> 32) * blocks_ >> 32) * BLOCK, BLOCK, block)) return true;
        for (int i = 0; i < 8; i++) {
            const uint32_t bit = static_cast<uint32_t>(hash) * SALT[i] >> 27;
            if (!(load<uint32_t>(block + 4 * i) >> bit & 1)) return false;
        }
        return true;
    }

   private:
    bool read(int64_t at, int64_t size, uint8_t *out) const {
        if (source_.bytes) {
            if (at > source_.size || size > source_.size - at) return false;
            std::memcpy(out, source_.bytes + at, size);
            return true;
        }
        for (int64_t done = 0; done < size;) {
            const ssize_t got = pread(source_.file, out + done, size - done, at + done);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return false;
            done += got;
        }
        return true;
    }

    const Source &source_;
    const int64_t offset_, size_;
    int64_t first_ = 0;
    uint64_t blocks_ = 0;
};

// Return whether a number, stored in `width` bytes, may be in the chunk; false if it does not fit into them.
inline bool may_have_number(const BloomFilter &filter, int64_t value, int width) {
    if (width == 4 && (value < INT32_MIN || value > INT32_MAX)) return false;
    return filter.may_have(reinterpret_cast<const uint8_t *>(&value), width);  // its low bytes come first
}

// The same for a float, where 0.0 may be stored as -0.0.
inline bool may_have_number(const BloomFilter &filter, double value, int width) {
    const double both[2] = {value, -value};
    for (int i = 0; i < (value == 0 ? 2 : 1); i++) {
        const float narrow = static_cast<float>(both[i]);
        const bool fits = width == 8 || narrow == value;
        const uint8_t *const bytes = width == 8 ? reinterpret_cast<const uint8_t *>(&both[i]) : reinterpret_cast<const uint8_t *>(&narrow);
        if (fits && filter.may_have(bytes, width)) return true;
    }
    return false;
}

// Each key is looked up with a read of its own; most chunks contain one of more keys than this.
constexpr int64_t MOST_LOOKED_UP = 1000;

// Return whether a chunk certainly contains none of the values that pass a test of a few keys.
inline bool lacks_keys(BloomFilter &filter, const Test &test, int width) {
    if (test.is_negated || test.with_null) return false;
    const bool is_one = test.kind == IN_RANGE && !test.with_nan && (test.is_float ? test.low == test.high : test.least == test.most);
    if ((test.kind != IN_SET && !is_one) || test.num_keys > MOST_LOOKED_UP || !filter.open()) return false;
    if (is_one) return !(test.is_float ? may_have_number(filter, test.low, width) : may_have_number(filter, test.least, width));
    for (int64_t k = 0; k < test.num_keys; k++) {
        const uint8_t *const key = test.keys + 8 * k;
        const bool may = test.ends       ? filter.may_have(test.keys + test.ends[k], test.ends[k + 1] - test.ends[k])
                         : test.is_float ? may_have_number(filter, load<double>(key), width)
                                         : may_have_number(filter, load<int64_t>(key), width);
        if (may) return false;
    }
    return true;
}

}  // namespace delta_parquet
