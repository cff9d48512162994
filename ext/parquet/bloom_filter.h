// Bloom filters of Parquet column chunks (BloomFilter.md of apache/parquet-format): whether a chunk certainly lacks a key.
//
// A filter with another header than expected is not used; every key may then be in the chunk.
#pragma once

#include <cstdint>
#include <cstring>

#include "block_filter.h"
#include "source.h"
#include "thrift.h"
#include "value_tests.h"

namespace delta_parquet {

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
    enum { MOST_HEADER = 64 };

    // `size` is -1 if the footer does not contain it.
    BloomFilter(const Source &source, int64_t offset, int64_t size) : source_(source), offset_(offset), size_(size) {}

    // Read the header of the filter; returns false if the filter can't be used.
    bool open() {
        uint8_t head[MOST_HEADER];
        const int64_t there = size_ >= 0 && size_ < MOST_HEADER ? size_ : static_cast<int64_t>(MOST_HEADER);
        if (offset_ < 0 || !read(offset_, there, head)) return false;
        BloomHeaderReader thrift(head, head + there);
        int64_t bytes;
        if (!thrift.bloom_header(bytes) || bytes <= 0 || bytes % static_cast<int64_t>(BLOCK_BYTES) || bytes > INT32_MAX) return false;
        const int64_t used = thrift.position() - head;
        if (size_ >= 0 && bytes > size_ - used) return false;
        blocks_ = static_cast<uint64_t>(bytes) / BLOCK_BYTES;
        first_ = offset_ + used;
        return true;
    }

    // Return whether the value with these bytes may be in the chunk.
    bool may_have(const uint8_t *value, size_t size) const {
        const uint64_t hash = xxhash64(value, size);
        uint8_t block[BLOCK_BYTES];
        if (!read(first_ + static_cast<int64_t>(block_of(hash, blocks_) * BLOCK_BYTES), BLOCK_BYTES, block)) return true;
        return block_may_have(block, hash);
    }

   private:
    bool read(int64_t at, int64_t size, uint8_t *out) const {
        if (source_.bytes) {
            if (at > source_.size || size > source_.size - at) return false;
            std::memcpy(out, source_.bytes + at, size);
            return true;
        }
        for (int64_t done = 0; done < size;) {
            const int64_t got = file_read_at(source_.file, out + done, size - done, at + done);
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
