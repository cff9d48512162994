// Blocks of memory that are reused from page to page and from chunk to chunk.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "codecs.h"
#include "deflate_library.h"
#include "memory/byte_copies.h"
#include "platform/memory.h"
#include "zstd_library.h"

namespace delta_parquet {

// A block of memory that is reused, and grows if necessary.
class Scratch {
   public:
    Scratch() = default;
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    ~Scratch() { std::free(data_); }
    uint8_t *room(size_t size) {
        if (size + SLACK > size_ || !data_) {
            std::free(data_);
            size_ = size + SLACK;
            data_ = static_cast<uint8_t *>(size_ < HUGE_BLOCK ? std::malloc(size_) : delta_memory::huge_block(size_, HUGE_PAGE));
            if (!data_) size_ = 0;
        }
        return data_;
    }
    // The same, with a copy of `kept` bytes from `from`, which may be in the block, at the beginning.
    uint8_t *room(size_t size, const uint8_t *from, size_t kept) {
        if (!kept) return room(size);
        if (size + SLACK <= size_) {
            std::memmove(data_, from, kept);
            return data_;
        }
        uint8_t *const grown = static_cast<uint8_t *>(std::malloc(size + SLACK));
        if (!grown) return nullptr;
        std::memcpy(grown, from, kept);
        std::free(data_);
        size_ = size + SLACK;
        return data_ = grown;
    }
    size_t size() const { return size_; }
    void swap(Scratch &other) {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }
    void release() {
        std::free(data_);
        data_ = nullptr;
        size_ = 0;
    }

   private:
    // Blocks of at least HUGE_BLOCK bytes, for single large pages or dictionaries, use huge pages of memory where available:
    // filling them takes half as long.
    enum : size_t { HUGE_BLOCK = 32 << 20, HUGE_PAGE = 2 << 20 };

    uint8_t *data_ = nullptr;
    size_t size_ = 0;
};

// The data pages of a chunk, and those whose values were decoded, or the levels if only these are tested.
struct PageCounts {
    int64_t met = 0, decoded = 0;
};

// Contexts of the system's libraries.
struct Decompressors {
    ZstdContext zstd;
    GzipContext gzip;
};

// The memory in which chunks are decoded, one at a time.
struct Workspace {
    Decompress decompress = nullptr;  // for pages of a FOREIGN codec, with its first argument
    void *codec = nullptr;
    Decompressors own_decompressors, *decompressors = &own_decompressors;
    PageCounts own_pages, *pages = &own_pages;
    Scratch dictionary, dictionary_ends, matches;
    // used while a page is decoded
    Scratch chunk, page, dictionary_page, codes, levels, valid, mask, inner, spread, looked_up, passing;

    size_t dictionary_size() const { return dictionary.size() + dictionary_ends.size() + matches.size(); }
    size_t page_size() const {
        return chunk.size() + page.size() + dictionary_page.size() + codes.size() + levels.size() + valid.size() + mask.size() +
               inner.size() + spread.size() + looked_up.size() + passing.size();
    }
    size_t size() const { return dictionary_size() + page_size(); }
    void swap_page(Workspace &other) {
        Scratch *const mine[] = {&chunk, &page, &dictionary_page, &codes, &levels, &valid, &mask, &inner, &spread, &looked_up, &passing};
        Scratch *const others[] = {&other.chunk, &other.page, &other.dictionary_page, &other.codes, &other.levels, &other.valid,
                                   &other.mask, &other.inner, &other.spread, &other.looked_up, &other.passing};
        for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) mine[i]->swap(*others[i]);
    }
};

}  // namespace delta_parquet
