// Sources of column chunks (files, buffers, functions), and a window of a chunk's bytes in memory.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "memory/byte_copies.h"
#include "platform/files.h"
#include "workspace.h"

namespace delta_parquet {

// Reads exactly `size` bytes with a function that this code is not linked to.
using ReadBytes = int (*)(void *reader, int64_t offset, int64_t size, uint8_t *out);

// A file, bytes that start where the file does, or a function that reads bytes.
struct Source {
    int file = -1;
    const uint8_t *bytes = nullptr;
    int64_t size = 0;
    ReadBytes read_bytes = nullptr;
    void *reader = nullptr;

    // Read `length` bytes; returns false if there are fewer.
    bool read(int64_t offset, int64_t length, uint8_t *out) const {
        if (offset < 0 || length < 0) return false;
        if (read_bytes) return read_bytes(reader, offset, length, out);
        if (bytes) {
            if (offset > size || length > size - offset) return false;
            if (length) std::memcpy(out, bytes + offset, length);
            return true;
        }
        for (int64_t done = 0; done < length;) {
            const int64_t got = file_read_at(file, out + done, length - done, offset + done);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return false;
            done += got;
        }
        return true;
    }
};

// Read bytes into the workspace; nullptr if there are fewer, or without memory.
inline const uint8_t *read_source(Workspace &space, const Source &source, int64_t offset, int64_t size) {
    uint8_t *const out = size < 0 ? nullptr : space.chunk.room(size);
    if (!out || !source.read(offset, size, out)) return nullptr;
    std::memset(out + size, 0, SLACK);
    return out;
}

// The bytes that are read for a header whose page may be skipped.
enum : int64_t { HEADER_WINDOW_BYTES = 4 << 10 };

// A window of the bytes of a chunk, followed by SLACK bytes.
class ChunkBytes {
   public:
    // All bytes are in memory.
    ChunkBytes(const uint8_t *data, int64_t size) : data_(data), held_(size), size_(size) {}
    // Windows are read into a block that has no other user.
    ChunkBytes(Scratch &block, const Source &source, int64_t offset, int64_t size, int64_t window)
        : block_(&block), source_(source), offset_(offset), window_(window), size_(size) {}

    int64_t size() const { return size_; }
    // Return how many bytes from `at` on are in memory.
    int64_t held(int64_t at) const { return first_ + held_ - at; }
    // Return at least `n` bytes from `at` on, nullptr if they can't be read. The result is valid until the next call.
    const uint8_t *from(int64_t at, int64_t n) { return from(at, n, window_); }
    // Return the bytes of a page's header. A page after a skipped one may be skipped too, so its body is not read with its
    // header, unless a function reads, whose calls may take long.
    const uint8_t *header(int64_t at, int64_t n, bool is_behind_passed) {
        const bool is_short = is_behind_passed && !source_.read_bytes;
        return from(at, n, is_short ? std::min<int64_t>(window_, HEADER_WINDOW_BYTES) : window_);
    }
    // Invalidate the window, because the block has changed.
    void forget() { held_ = 0; }

   private:
    const uint8_t *from(int64_t at, int64_t n, int64_t window) {
        if (n < 0 || at < 0 || n > size_ - at) return nullptr;
        if ((at < first_ || n > held(at)) && !move(at, n, window)) return nullptr;
        return data_ + (at - first_);
    }
    bool move(int64_t at, int64_t n, int64_t window) {
        if (!block_) return false;
        const int64_t length = std::min(std::max(n, window), size_ - at);
        const int64_t kept = at >= first_ && at < first_ + held_ ? held(at) : 0;
        uint8_t *const out = block_->room(length, data_ + (kept ? at - first_ : 0), kept);
        held_ = 0;
        if (!out || !source_.read(offset_ + at + kept, length - kept, out + kept)) return false;
        std::memset(out + length, 0, SLACK);
        data_ = out;
        first_ = at;
        held_ = length;
        return true;
    }

    Scratch *block_ = nullptr;
    Source source_;
    int64_t offset_ = 0, window_ = 0;
    const uint8_t *data_ = nullptr;
    int64_t first_ = 0, held_ = 0, size_;
};

}  // namespace delta_parquet
