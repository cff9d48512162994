// Blocks of memory that are reused from batch to batch. Fresh memory from the system, page by page, takes longer than
// decoding values into it; on a virtual machine several times as long.
//
// A block is exported as an array of Arrow's C data interface, whose release callback returns it, on any thread and without
// the interpreter's lock. PyArrow's allocators return large freed blocks to the system at once, or take memory in huge pages,
// which may block on a virtual machine.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "platform/memory.h"

namespace delta_memory {

// As the C data interface defines it.
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    ArrowArray **children;
    ArrowArray *dictionary;
    void (*release)(ArrowArray *);
    void *private_data;
};

// Blocks that are not in use. A process that was forked while another thread held the lock never obtains it, and works
// without these blocks.
//
// Together with the blocks in use they never exceed the largest number of bytes that was in use at once, or LEAST_LIMIT, so
// the peak memory of the process does not grow. Beyond a share of the memory, the system may reclaim them at any time.
class KeptBlocks {
   public:
    // Sizes of blocks are multiples of this.
    static constexpr size_t STEP = 64 << 10;
    // Blocks that were unused for this time are returned to the system when the next one arrives.
    static constexpr int64_t MOST_SECONDS = 10;

    static constexpr size_t LEAST_LIMIT = 64 << 20, MOST_FIRM = 256 << 20, MOST_LIMIT = 1 << 30;

    // Return a block of at least `size` bytes with undefined content, and set `size` to its bytes. Returns nullptr if there
    // is no memory, or if all blocks would exceed the limit: returning other blocks for each call takes longer than an
    // allocator. A new block is mapped for whether it is written whole.
    void *take(size_t &size, bool is_written_whole = false) {
        const size_t rounded = size = (size + STEP - 1) / STEP * STEP, used = used_ += rounded;
        void *const data = find_or_map(size, used, is_written_whole);
        if (!data) used_ -= rounded;
        else used_ += size - rounded;
        return data;
    }

    void give(void *data, size_t size) {
        used_ -= size;
        keep_or_unmap(data, size);
    }

    // Return all unused blocks to the system.
    void clear() {
        Block dropped[MOST_BLOCKS];
        size_t num_dropped = 0;
        if (!lock()) return;
        while (count_) dropped[num_dropped++] = remove(count_ - 1);
        most_used_ = used_.load();
        unlock();
        unmap(dropped, num_dropped);
    }

    // Return the most bytes of all blocks, used or not.
    size_t limit() { return std::min(std::max(memory() / 16, LEAST_LIMIT), MOST_LIMIT); }

    // Return how many bytes of the unused blocks the system can't reclaim.
    size_t firm_limit() { return std::min(std::max(memory() / 64, LEAST_LIMIT), MOST_FIRM); }

    // Return the bytes of the unused blocks.
    size_t kept_bytes() const { return bytes_; }

    // Return the bytes of the blocks in use.
    size_t used_bytes() const { return used_; }

   private:
    static constexpr size_t MOST_BLOCKS = 1024;
    static constexpr int MOST_TRIES = 1000;

    struct Block {
        void *data;
        size_t size;
        int64_t since;
    };

    void *find_or_map(size_t &size, size_t used, bool is_written_whole) {
        Block dropped[MOST_BLOCKS];
        size_t num_dropped = 0;
        const bool is_room = used <= LEAST_LIMIT || used <= limit();
        if (lock()) {
            Block found = {};
            size_t best = count_;
            for (size_t i = 0; i < count_; ++i) {
                // a small batch must not hold a block that is much larger
                bool fits = blocks_[i].size >= size && blocks_[i].size / 4 <= size;
                if (fits && (best == count_ || blocks_[i].size <= blocks_[best].size)) best = i;
            }
            if (best < count_) found = remove(best);
            if (is_room) most_used_ = std::max(most_used_, used);
            while (is_room && !found.data && count_ && is_beyond(0)) dropped[num_dropped++] = remove(0);
            unlock();
            if (found.data) {
                size = found.size;
                return found.data;
            }
        }
        unmap(dropped, num_dropped);
        if (!is_room) return nullptr;
        return map_pages(size, is_written_whole);
    }

    void keep_or_unmap(void *data, size_t size) {
        Block dropped[MOST_BLOCKS + 1];
        size_t num_dropped = 0;
        const int64_t now = seconds();
        const size_t kept = bytes_ + size;
        if (kept > LEAST_LIMIT && kept > firm_limit()) let_take_pages(data, size);
        if (lock()) {
            // the oldest are first
            while (count_ && (count_ == MOST_BLOCKS || is_beyond(size) || now - blocks_[0].since > MOST_SECONDS)) {
                dropped[num_dropped++] = remove(0);
            }
            if (!is_beyond(size)) {
                blocks_[count_++] = {data, size, now};
                bytes_ += size;
                data = nullptr;
            }
            unlock();
        }
        if (data) dropped[num_dropped++] = {data, size, now};
        unmap(dropped, num_dropped);
    }

    // Return whether all blocks and `size` more bytes exceed the most that was in use at once. Precondition: the lock is
    // held.
    bool is_beyond(size_t size) const { return used_ + bytes_ + size > std::max(most_used_, LEAST_LIMIT); }

    // Without a lock, which a forked process might wait for; several threads may compute it.
    size_t memory() {
        size_t found = memory_;
        if (!found) memory_ = found = std::max<size_t>(memory_of_process(), 1);
        return found;
    }

    // Precondition: the lock is not held, because this takes long.
    static void unmap(const Block *blocks, size_t count) {
        for (size_t i = 0; i < count; ++i) unmap_pages(blocks[i].data, blocks[i].size);
    }

    bool lock() {
        for (int i = 0; i < MOST_TRIES; ++i) {
            if (!busy_.test_and_set(std::memory_order_acquire)) return true;
        }
        return false;
    }

    void unlock() { busy_.clear(std::memory_order_release); }

    Block remove(size_t i) {
        const Block found = blocks_[i];
        for (--count_; i < count_; ++i) blocks_[i] = blocks_[i + 1];
        bytes_ -= found.size;
        return found;
    }

    static int64_t seconds() {
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        return std::chrono::duration_cast<std::chrono::seconds>(now).count();
    }

    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
    std::atomic<size_t> bytes_{0}, used_{0}, memory_{0};
    size_t count_ = 0, most_used_ = 0;
    Block blocks_[MOST_BLOCKS] = {};
};

// Return the blocks of the process.
inline KeptBlocks &kept_blocks() {
    static KeptBlocks *const blocks = new KeptBlocks();  // never deleted: arrays may outlive static objects
    return *blocks;
}

// The memory that an array owns until it is released.
struct Lent {
    void *data;
    size_t size;
    const void *buffers[2];
};

inline void release(ArrowArray *array) {
    Lent *lent = static_cast<Lent *>(array->private_data);
    kept_blocks().give(lent->data, lent->size);
    std::free(lent);
    array->release = nullptr;
}

// Export a block as an array of bytes whose release callback returns it. Returns false if there is no memory.
inline bool lend(size_t size, ArrowArray *array) {
    Lent *lent = static_cast<Lent *>(std::malloc(sizeof(Lent)));
    if (!lent) return false;
    lent->size = size;
    lent->data = kept_blocks().take(lent->size, true);
    if (!lent->data) {
        std::free(lent);
        return false;
    }
    lent->buffers[0] = nullptr;
    lent->buffers[1] = lent->data;
    *array = {static_cast<int64_t>(size), 0, 0, 2, 0, lent->buffers, nullptr, nullptr, release, lent};
    return true;
}

}  // namespace delta_memory
