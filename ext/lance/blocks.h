// Memory that kernels fill and Arrow arrays keep: blocks that grow, of the store of kept_memory.h if they are large.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "memory/kept_memory.h"

namespace delta_lance {

using delta_memory::ArrowArray;
using delta_memory::KeptBlocks;

// An error is its text; nullptr means that there is none. These two have meanings of their own.
using Error = const char *;
inline constexpr char NO_MEMORY[] = "there is not enough memory";
// Offsets of 32 bits can not represent the values of the requested rows: the caller reads fewer.
inline constexpr char TOO_LONG[] = "values take more than 2 GiB";

template <class T>
inline T load(const uint8_t *in) {
    T value;
    std::memcpy(&value, in, sizeof(T));
    return value;
}

// Read-only bytes of a file.
struct Bytes {
    const uint8_t *data = nullptr;
    uint64_t size = 0;

    // Cut the next `n` bytes off; false if there are fewer.
    bool cut(uint64_t n, Bytes &part) {
        if (n > size) return false;
        part = {data, n};
        data += n;
        size -= n;
        return true;
    }
};

// Bytes that grow. SLACK bytes after the size may be written and read.
class Block {
   public:
    static constexpr uint64_t SLACK = 64, LEAST_KEPT = 48 << 10, MOST = UINT64_C(1) << 46;

    Block() = default;
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;
    Block(Block &&other) noexcept { swap(other); }
    Block &operator=(Block &&other) noexcept {
        swap(other);
        return *this;
    }
    ~Block() { drop(); }

    void swap(Block &other) noexcept {
        std::swap(data_, other.data_);
        std::swap(room_, other.room_);
        std::swap(size_, other.size_);
        std::swap(lender_, other.lender_);
        std::swap(source_, other.source_);
    }

    // Large blocks come from there; nullptr: from the C library.
    void lend_from(KeptBlocks *source) { source_ = source; }

    uint8_t *data() { return data_; }
    const uint8_t *data() const { return data_; }
    uint8_t *end() { return data_ + size_; }
    uint64_t size() const { return size_; }
    uint64_t room() const { return room_; }
    template <class T>
    T *as() {
        return reinterpret_cast<T *>(data_);
    }
    template <class T>
    const T *as() const {
        return reinterpret_cast<const T *>(data_);
    }

    // Have room for `room` bytes in all.
    bool reserve(uint64_t room) { return room <= room_ || move_to(room); }

    // Have room for `n` bytes after those that are there; grows by half at least.
    bool reserve_more(uint64_t n) {
        if (n > MOST || size_ > MOST - n) return false;
        return size_ + n <= room_ || move_to(std::max(size_ + n, room_ + room_ / 2));
    }

    // Change the size; the room has to be there.
    void set_size(uint64_t size) { size_ = size; }
    void add_size(uint64_t n) { size_ += n; }

    // Add `n` zero bytes.
    bool append_zeros(uint64_t n) {
        if (!reserve_more(n)) return false;
        if (n) std::memset(end(), 0, n);
        size_ += n;
        return true;
    }

    bool append(const uint8_t *from, uint64_t n) {
        if (!reserve_more(n)) return false;
        if (n) std::memcpy(end(), from, n);
        size_ += n;
        return true;
    }

    template <class T>
    bool append_value(T value) {
        return append(reinterpret_cast<const uint8_t *>(&value), sizeof(T));
    }

    void clear() { size_ = 0; }

    // Hand the bytes to an Arrow array of bytes, which frees them.
    bool export_to(ArrowArray *array) {
        if (!data_ && !move_to(0)) return false;
        auto *const owner = static_cast<Owner *>(std::malloc(sizeof(Owner)));
        if (!owner) return false;
        *owner = {data_, room_ + SLACK, lender_, {nullptr, data_}};
        *array = {static_cast<int64_t>(size_), 0, 0, 2, 0, owner->buffers, nullptr, nullptr, release, owner};
        data_ = nullptr;
        lender_ = nullptr;
        room_ = size_ = 0;
        return true;
    }

   private:
    struct Owner {
        uint8_t *data;
        uint64_t size;
        KeptBlocks *lender;
        const void *buffers[2];
    };

    static void free_bytes(uint8_t *data, uint64_t size, KeptBlocks *lender) {
        if (lender) lender->give(data, size);
        else std::free(data);
    }

    static void release(ArrowArray *array) {
        auto *const owner = static_cast<Owner *>(array->private_data);
        free_bytes(owner->data, owner->size, owner->lender);
        std::free(owner);
        array->release = nullptr;
    }

    bool move_to(uint64_t room) {
        if (room > MOST) return false;
        size_t bytes = room + SLACK;
        KeptBlocks *lender = bytes >= LEAST_KEPT ? source_ : nullptr;
        void *fresh = lender ? lender->take(bytes) : nullptr;
        if (!fresh) {
            lender = nullptr;
            bytes = room + SLACK;
            fresh = std::malloc(bytes);
        }
        if (!fresh) return false;
        if (size_) std::memcpy(fresh, data_, size_);
        drop();
        data_ = static_cast<uint8_t *>(fresh);
        room_ = bytes - SLACK;
        lender_ = lender;
        return true;
    }

    void drop() {
        if (data_) free_bytes(data_, room_ + SLACK, lender_);
        data_ = nullptr;
    }

    uint8_t *data_ = nullptr;
    uint64_t room_ = 0, size_ = 0;
    KeptBlocks *lender_ = nullptr, *source_ = nullptr;
};

// --- bits, the lowest of a byte first ---

inline bool get_bit(const uint8_t *bits, uint64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

// Copy `n` bits; the places do not overlap. Bits after the last one of the last byte become 0.
inline void copy_bits(uint8_t *out, uint64_t at, const uint8_t *in, uint64_t from, uint64_t n) {
    if (!n) return;
    while (n && (at & 7)) {
        const uint8_t mask = static_cast<uint8_t>(1 << (at & 7));
        out[at >> 3] = static_cast<uint8_t>(get_bit(in, from) ? out[at >> 3] | mask : out[at >> 3] & ~mask);
        at++, from++, n--;
    }
    const uint64_t whole = n >> 3;
    const unsigned shift = from & 7;
    const uint8_t *const source = in + (from >> 3);
    uint8_t *const target = out + (at >> 3);
    if (!shift) std::memcpy(target, source, whole);
    else
        for (uint64_t i = 0; i < whole; i++) target[i] = static_cast<uint8_t>(source[i] >> shift | source[i + 1] << (8 - shift));
    if (n & 7) {
        uint8_t last = 0;
        for (uint64_t i = whole * 8; i < n; i++) last = static_cast<uint8_t>(last | get_bit(in, from + i) << (i & 7));
        target[whole] = last;
    }
}

// Bits that are appended; `size` counts them. None are stored as long as all are set.
class Bits {
   public:
    void lend_from(KeptBlocks *source) { block_.lend_from(source); }
    uint64_t size() const { return size_; }
    uint64_t zeros() const { return zeros_; }
    bool is_stored() const { return is_stored_; }
    Block &block() { return block_; }
    const Block &block() const { return block_; }

    bool append_ones(uint64_t n) {
        if (!is_stored_) {
            size_ += n;
            return true;
        }
        if (!grow(n)) return false;
        fill_ones(size_, n);
        size_ += n;
        return true;
    }

    bool append_zeros(uint64_t n) {
        if (!n) return true;
        if (!store() || !grow(n)) return false;
        size_ += n;
        zeros_ += n;
        return true;
    }

    bool append_bits(const uint8_t *bits, uint64_t from, uint64_t n) {
        if (!store() || !grow(n)) return false;
        copy_bits(block_.data(), size_, bits, from, n);
        uint64_t ones = 0;
        for (uint64_t i = size_; i < size_ + n; i++) ones += get_bit(block_.data(), i);
        zeros_ += n - ones;
        size_ += n;
        return true;
    }

    // Append for each of `n` levels whether it is at most `most`.
    bool append_levels(const uint16_t *levels, uint64_t n, uint16_t most) {
        if (!is_stored_) {
            uint16_t above = 0;
            for (uint64_t i = 0; i < n; i++) above = static_cast<uint16_t>(above | (levels[i] > most));
            if (!above) return append_ones(n);
        }
        if (!store() || !grow(n)) return false;
        uint8_t *const out = block_.data();
        uint64_t i = 0, ones = 0;
        for (; i < n && (size_ & 7); i++, size_++) {
            const unsigned one = levels[i] <= most;
            out[size_ >> 3] = static_cast<uint8_t>(out[size_ >> 3] | one << (size_ & 7));
            ones += one;
        }
        uint8_t *target = out + (size_ >> 3);
        for (; i + 8 <= n; i += 8, size_ += 8) {
            unsigned byte = 0;
            for (unsigned k = 0; k < 8; k++) byte |= static_cast<unsigned>(levels[i + k] <= most) << k;
            *target++ = static_cast<uint8_t>(byte);
            ones += static_cast<unsigned>(__builtin_popcount(byte));
        }
        for (; i < n; i++, size_++) {
            const unsigned one = levels[i] <= most;
            out[size_ >> 3] = static_cast<uint8_t>(out[size_ >> 3] | one << (size_ & 7));
            ones += one;
        }
        zeros_ += n - ones;
        return true;
    }

    bool append_bit(bool one) { return one ? append_ones(1) : append_zeros(1); }

   private:
    // Have a byte for each 8 bits, zero where no bit was appended.
    bool grow(uint64_t n) {
        const uint64_t bytes = (size_ + n + 7) / 8;
        return bytes <= block_.size() || block_.append_zeros(bytes - block_.size());
    }
    bool store() {
        if (is_stored_) return true;
        const uint64_t n = size_;
        size_ = 0;
        if (!grow(n)) return false;
        fill_ones(0, n);
        size_ = n;
        is_stored_ = true;
        return true;
    }
    void fill_ones(uint64_t at, uint64_t n) {
        uint8_t *const out = block_.data();
        while (n && (at & 7)) out[at >> 3] = static_cast<uint8_t>(out[at >> 3] | 1 << (at & 7)), at++, n--;
        if (n >> 3) std::memset(out + (at >> 3), 0xff, n >> 3);
        at += n & ~UINT64_C(7);
        n &= 7;
        if (n) out[at >> 3] = static_cast<uint8_t>(out[at >> 3] | ((1 << n) - 1));
    }

    Block block_;
    uint64_t size_ = 0, zeros_ = 0;
    bool is_stored_ = false;
};

}  // namespace delta_lance
