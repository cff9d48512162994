// Pages of one Parquet column chunk that is not repeated: headers, Snappy, levels, PLAIN and dictionary values.
//
// Whatever is not exactly as expected (another encoding, a length that does not fit, a code outside the dictionary)
// ends in `unsupported`: the caller then reads the column by a complete reader, which specifies what is wrong, if anything.
// Every buffer that is read from has SLACK readable bytes behind its end, every one that is written to has SLACK
// writable ones, so that short copies may be made in blocks.
//
// A chunk may be read with a mask of its rows (rows/compact.h): those that are not kept are left out page by page, while a page
// is in a core's cache.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory/byte_copies.h"
#include "rows/compact.h"
#include "crc32.h"
#include "inflate.h"
#include "thrift.h"
#include "zstd_library.h"

namespace delta_parquet {

// DAMAGED: other rows than the footer specifies, where a complete reader may return a part of them without an error.
// BAD_CHECKSUM: a page whose bytes are not those that were written, which a complete reader may decode without an error.
enum Status { DONE = 0, PAGE = 1, UNSUPPORTED = 2, NO_MEMORY = 3, DAMAGED = 4, BAD_CHECKSUM = 5 };
enum Codec { UNCOMPRESSED = 0, SNAPPY = 1, FOREIGN = 2, ZSTD = 3, LZ4 = 4, GZIP = 5 };
// Decompresses exactly `size` bytes by a library that this code is not linked to.
using Decompress = int (*)(void *codec, const uint8_t *in, int64_t n, uint8_t *out, int64_t size);
enum PageType { DATA_PAGE = 0, DICTIONARY_PAGE = 2, DATA_PAGE_V2 = 3 };
enum Encoding {
    PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, DELTA_BINARY_PACKED = 5, DELTA_LENGTH_BYTE_ARRAY = 6, DELTA_BYTE_ARRAY = 7,
    RLE_DICTIONARY = 8, BYTE_STREAM_SPLIT = 9
};

// A block that keeps its size from page to page.
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
            data_ = size_ < HUGE_BLOCK ? static_cast<uint8_t *>(std::malloc(size_)) : huge_block(size_);
            if (!data_) size_ = 0;
        }
        return data_;
    }
    // The same; `kept` bytes from a place on in the block, or in one that it replaces, are moved to its beginning.
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
    // Blocks of at least so many bytes, of single pages or dictionaries, have huge pages of memory if there are any: to fill
    // them takes half as long.
    enum : size_t { HUGE_BLOCK = 32 << 20, HUGE_PAGE = 2 << 20 };

    static uint8_t *huge_block(size_t size) {
        void *data;
        if (posix_memalign(&data, HUGE_PAGE, size)) return nullptr;
#ifdef MADV_HUGEPAGE
        madvise(data, size, MADV_HUGEPAGE);
#endif
        return static_cast<uint8_t *>(data);
    }

    uint8_t *data_ = nullptr;
    size_t size_ = 0;
};

// Data pages that were met, and those whose values, or levels if these are all that is tested, were decoded.
struct PageCounts {
    int64_t met = 0, decoded = 0;
};

// What one chunk after the other is read in.
struct Workspace {
    Decompress decompress = nullptr;  // for pages of a FOREIGN codec, with what it is called with
    void *codec = nullptr;
    ZstdContext own_zstd, *zstd = &own_zstd;
    PageCounts own_pages, *pages = &own_pages;
    Scratch dictionary, dictionary_ends, matches;
    // what is needed while a page is at hand
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

// --- where chunks are read from ---

// Reads exactly `size` bytes by code that this one is not linked to.
using ReadBytes = int (*)(void *reader, int64_t offset, int64_t size, uint8_t *out);

// A file, bytes that start where the file does, or what a function reads.
struct Source {
    int file = -1;
    const uint8_t *bytes = nullptr;
    int64_t size = 0;
    ReadBytes read_bytes = nullptr;
    void *reader = nullptr;

    // Read bytes; false if there are fewer.
    bool read(int64_t offset, int64_t length, uint8_t *out) const {
        if (offset < 0 || length < 0) return false;
        if (read_bytes) return read_bytes(reader, offset, length, out);
        if (bytes) {
            if (offset > size || length > size - offset) return false;
            if (length) std::memcpy(out, bytes + offset, length);
            return true;
        }
        for (int64_t done = 0; done < length;) {
            const ssize_t got = pread(file, out + done, length - done, offset + done);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return false;
            done += got;
        }
        return true;
    }
};

// Read bytes into the workspace; nullptr if there are fewer, or no memory.
inline const uint8_t *read_source(Workspace &space, const Source &source, int64_t offset, int64_t size) {
    uint8_t *const out = size < 0 ? nullptr : space.chunk.room(size);
    if (!out || !source.read(offset, size, out)) return nullptr;
    std::memset(out + size, 0, SLACK);
    return out;
}

// A header is read with so many bytes where its page's body may not be needed.
enum : int64_t { HEADER_WINDOW_BYTES = 4 << 10 };

// The bytes of a chunk: a window of them is in memory, with SLACK bytes behind it.
class ChunkBytes {
   public:
    // All of them.
    ChunkBytes(const uint8_t *data, int64_t size) : data_(data), held_(size), size_(size) {}
    // Windows in a block that nobody else uses.
    ChunkBytes(Scratch &block, const Source &source, int64_t offset, int64_t size, int64_t window)
        : block_(&block), source_(source), offset_(offset), window_(window), size_(size) {}

    int64_t size() const { return size_; }
    // How many bytes from a place on are in memory.
    int64_t held(int64_t at) const { return first_ + held_ - at; }
    // Return the bytes from a place on, at least `n`, nullptr if they can't be had. Those that were returned before are gone.
    const uint8_t *from(int64_t at, int64_t n) { return from(at, n, window_); }
    // Return the bytes of a page's header. Behind a page that was passed over the next one may be passed over too: then its
    // body is not read, but by a function, whose calls may take long.
    const uint8_t *header(int64_t at, int64_t n, bool is_behind_passed) {
        const bool is_short = is_behind_passed && !source_.read_bytes;
        return from(at, n, is_short ? std::min<int64_t>(window_, HEADER_WINDOW_BYTES) : window_);
    }
    // The block's memory is no longer there.
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

// --- bytes ---

// --- Snappy (format_description.txt of google/snappy) ---

// What a tag byte specifies: bits 0 to 6 how many bytes to write (0: more bytes follow that specify it, or it is a copy
// from far away), bits 8 to 10 the high bits of a short copy's distance. And how many bytes are between it and the next tag.
struct SnappyTags {
    uint16_t of[256];
    uint8_t behind[256];
    constexpr SnappyTags() : of(), behind() {
        for (int tag = 0; tag < 256; tag++) {
            const int kind = tag & 3, size = (tag >> 2) + 1;
            of[tag] = static_cast<uint16_t>(kind == 0   ? (size <= 60 ? size : 0)
                                            : kind == 1 ? (((tag >> 2) & 7) + 4) | (tag >> 5) << 8
                                            : kind == 2 ? size
                                                        : 0);
            behind[tag] = static_cast<uint8_t>(kind ? kind : size);
        }
    }
};
inline constexpr SnappyTags SNAPPY_TAGS{};

// Bytes that one step of `repeat_8` may read or write, at most; after how many written ones it and `repeat_pairs` are tried
// again, and how many they have to write to be tried again at once.
constexpr int64_t MOST_STEP = 16, LOOK_AGAIN = 1024, WORTH_IT = 64;

// Set a number to a value that it nearly always has already: what depends on it needn't wait until the value is loaded.
inline void expect(unsigned &guess, unsigned value) {
    if (guess != value) {
        guess = value;
        asm volatile("" : "+r"(guess));  // or the compiler would leave out the branch
    }
}

inline uint64_t rotate_right(uint64_t value, unsigned bits) { return value >> (bits & 63) | value << (-bits & 63); }

// Decompress units of one literal of `count` bytes and one copy of the bytes 8 before that fills it up to 8, as long as they
// follow each other: numbers whose upper bytes stay. `last` are the 8 bytes before `o`; nothing else is read back.
template <int count>
inline void repeat_units(const uint8_t *&in, const uint8_t *end, uint8_t *&o, const uint8_t *stop, uint64_t &last) {
    constexpr int size = 3 + count;
    constexpr uint64_t low = (UINT64_C(1) << 8 * count) - 1, tags = ~(low << 8) & ((UINT64_C(1) << 8 * size) - 1);
    constexpr uint64_t copy = UINT64_C(8) << 8 | (4 - count) << 2 | 1, expected = copy << 8 * (count + 1) | (count - 1) << 2;
    const uint64_t upper = last & ~low;
    const uint8_t *from = in;
    uint8_t *to = o;
    while (end - from >= MOST_STEP && stop - to >= MOST_STEP) {
        const uint64_t first = load<uint64_t>(from), second = load<uint64_t>(from + size);
        if (((first & tags) ^ expected) | ((second & tags) ^ expected)) break;
        const uint64_t pair[2] = {upper | (first >> 8 & low), upper | (second >> 8 & low)};
        std::memcpy(to, pair, sizeof pair);
        last = pair[1];
        from += 2 * size;
        to += sizeof pair;
    }
    in = from;
    o = to;
}

// Decompress literals and copies in turn while each has up to 8 bytes and each copy repeats the bytes 8 before: columns of
// numbers that resemble their neighbours. Those 8 bytes are in a register: what was just written in parts can't be loaded
// until it has left the processor's store buffer. `o` is behind at least 8 bytes.
inline void repeat_8(const uint8_t *&in, const uint8_t *end, uint8_t *&o, const uint8_t *stop) {
    uint64_t last = load<uint64_t>(o - 8);
    unsigned kind = 0, repeated = 0, count = 0;
    for (bool at_copy = *in & 3; end - in >= MOST_STEP && stop - o >= MOST_STEP; at_copy = true) {
        if (at_copy) {
            const uint32_t copy = load<uint32_t>(in);
            expect(kind, copy & 3);
            expect(repeated, SNAPPY_TAGS.of[copy & 0xff] & 127);
            // the distance's high bits of a short copy are those of its tag
            const bool is_8 = kind == 1 ? (copy & 0xffe0) == 0x0800 : kind == 2 && (copy >> 8 & 0xffff) == 8;
            if (!is_8 || repeated > 8) return;
            in += 1 + kind;
            std::memcpy(o, &last, 8);
            o += repeated;
            last = rotate_right(last, 8 * repeated);
            switch (*in) {
                case 0 << 2: repeat_units<1>(in, end, o, stop, last); break;
                case 1 << 2: repeat_units<2>(in, end, o, stop, last); break;
                case 2 << 2: repeat_units<3>(in, end, o, stop, last); break;
                case 3 << 2: repeat_units<4>(in, end, o, stop, last); break;
            }
            if (end - in < MOST_STEP || stop - o < MOST_STEP) return;
        }
        const unsigned tag = *in;
        if (tag & 3 || tag >= 8 << 2) return;
        expect(count, (tag >> 2) + 1);
        const uint64_t literal = load<uint64_t>(in + 1);
        in += 1 + count;
        std::memcpy(o, &literal, 8);
        o += count;
        last = count == 8 ? literal : last >> 8 * count | literal << (64 - 8 * count);
    }
}

// Decompress literals and copies in turn, each of up to 16 bytes, the copies from anywhere: numbers whose upper bytes
// occurred before. How long they are is guessed, so that where the next ones begin needn't wait for what is loaded.
inline void repeat_pairs(const uint8_t *&in, const uint8_t *end, const uint8_t *out, uint8_t *&o, const uint8_t *stop) {
    unsigned count = 0, copied = 0;
    while (end - in >= 2 * MOST_STEP && stop - o >= 2 * MOST_STEP) {
        const unsigned tag = *in;
        if (tag & 3 || tag >= 16 << 2) return;
        expect(count, (tag >> 2) + 1);
        const uint32_t copy = load<uint32_t>(in + 1 + count);
        const unsigned kind = copy & 3;
        expect(copied, SNAPPY_TAGS.of[copy & 0xff] & 127);
        // without a branch: whether a copy is near is what a processor can't predict
        const uint32_t is_far = -(kind >> 1), is_near = is_far ^ ~0u;
        const size_t distance = (copy >> 8 & (0xff | (0xff00 & is_far))) | ((copy & 0xe0) << 3 & is_near);
        if (kind == 0 || kind == 3 || copied > 16 || distance < copied || distance > static_cast<size_t>(o - out) + count) return;
        if (distance == 8) return;  // `repeat_8` needn't read back what was just written
        std::memcpy(o, in + 1, 16);
        in += 2 + count + kind;
        o += count;
        if (copied <= 8) copy_8(o, o - distance);
        else std::memcpy(o, o - distance, 16);
        o += copied;
    }
}

struct Places {
    const uint8_t *in;
    uint8_t *o;
};

// Try both. A function of its own, so that the loop that calls it keeps its registers.
__attribute__((noinline)) static Places repeat(const uint8_t *in, const uint8_t *end, const uint8_t *out, uint8_t *o,
                                               const uint8_t *stop) {
    const uint8_t *const before = o;
    if (!(*in & 3)) repeat_pairs(in, end, out, o, stop);
    if (o - before < WORTH_IT && o - out >= 8 && in < end) repeat_8(in, end, o, stop);
    return {in, o};
}

// Decompress texts (`is_text`) or what has a pattern that a processor predicts, such as numbers: either of both in either way.
template <bool is_text>
inline bool snappy_decompress(const uint8_t *in, size_t n, uint8_t *const out, size_t size) {
    const uint8_t *const end = in + n;
    uint64_t length;
    if (!read_varint(in, end, length) || length != size) return false;
    uint8_t *o = out, *const stop = out + size, *looked = out;
    constexpr int64_t look_again = is_text ? 4 * LOOK_AGAIN : LOOK_AGAIN;
    bool waited = false;
    while (in < end) {
        if (o >= looked) {
            const bool at_copy = *in & 3;
            const Places after = repeat(in, end, out, o, stop);
            // a literal may follow a copy: that is tried once
            waited = at_copy && !waited;
            looked = after.o + (waited || after.o - o >= WORTH_IT ? 1 : look_again);
            in = after.in;
            o = after.o;
            if (in >= end) break;
        }
        const uint8_t tag = *in++;
        const unsigned kind = tag & 3, entry = SNAPPY_TAGS.of[tag];
        size_t count = entry & 127;
        if (count) {
            const size_t distance = (load<uint32_t>(in) & ((1u << 8 * kind) - 1)) | (entry & 0x700);
            const size_t taken = is_text ? SNAPPY_TAGS.behind[tag] : kind ? kind : count;
            if (static_cast<size_t>(end - in) < taken || static_cast<size_t>(stop - o) < count) return false;
            const uint8_t *from = kind ? o - distance : in;
            bool is_bad = kind && (distance < count || distance > static_cast<size_t>(o - out));
            if (is_text) {
                // which of literals and copies follows is what a processor can't predict: no branch
                uint64_t copied = -static_cast<uint64_t>(kind != 0);
                asm("" : "+r"(copied));  // or compilers make it one
                const uint64_t literal = reinterpret_cast<uintptr_t>(in), repeated = reinterpret_cast<uintptr_t>(o) - distance;
                from = reinterpret_cast<const uint8_t *>(static_cast<uintptr_t>((repeated & copied) | (literal & ~copied)));
                is_bad = ((distance < count) | (distance > static_cast<size_t>(o - out))) & copied;
            }
            in += taken;
            if (is_bad) {
                if (distance == 0 || distance > static_cast<size_t>(o - out)) return false;
                copy_overlapping(o, distance, count);
            } else {
                std::memcpy(o, from, 16);
                if (is_text || count > 16) std::memcpy(o + 16, from + 16, 16);
                if (count > 32) std::memcpy(o + 32, from + 32, 32);
            }
            o += count;
            continue;
        }
        if (kind == 0) {
            const size_t extra = (tag >> 2) - 59;
            if (static_cast<size_t>(end - in) < extra) return false;
            count = (static_cast<size_t>(load<uint32_t>(in)) & (0xffffffffu >> (32 - 8 * extra))) + 1;
            in += extra;
            if (static_cast<size_t>(end - in) < count || static_cast<size_t>(stop - o) < count) return false;
            copy_blocks(o, in, count);
            in += count;
        } else {
            if (end - in < 4) return false;
            count = (tag >> 2) + 1;
            const size_t distance = load<uint32_t>(in);
            in += 4;
            if (distance == 0 || distance > static_cast<size_t>(o - out) || static_cast<size_t>(stop - o) < count) return false;
            copy_overlapping(o, distance, count);
        }
        o += count;
    }
    return o == stop;
}

// Decompress the first `enough` of `size` bytes; false if they can't be had. Of levels only, which are few: it copies byte by
// byte.
inline bool snappy_prefix(const uint8_t *in, size_t n, uint8_t *const out, size_t size, size_t enough) {
    const uint8_t *const end = in + n;
    uint64_t length;
    if (!read_varint(in, end, length) || length != size || enough > size) return false;
    size_t done = 0;
    while (done < enough) {
        if (in >= end) return false;
        const uint8_t tag = *in++;
        const size_t kind = tag & 3, extra = kind == 3 ? 4 : kind ? kind : tag >> 2 >= 60 ? (tag >> 2) - 59 : 0;
        if (static_cast<size_t>(end - in) < extra) return false;
        uint64_t number = 0;
        for (size_t i = 0; i < extra; i++) number |= static_cast<uint64_t>(in[i]) << 8 * i;
        in += extra;
        size_t count = (kind == 0 && extra ? number : kind == 1 ? (tag >> 2 & 7) + 3 : tag >> 2) + 1;
        if (count > size - done) return false;
        if (count > enough - done) count = enough - done;
        if (kind == 0) {
            if (static_cast<size_t>(end - in) < count) return false;
            std::memcpy(out + done, in, count);
            in += count;
            done += count;
        } else {
            const uint64_t distance = kind == 1 ? number | static_cast<uint64_t>(tag >> 5) << 8 : number;
            if (distance == 0 || distance > done) return false;
            for (const size_t stop = done + count; done < stop; done++) out[done] = out[done - distance];
        }
    }
    return true;
}

// --- LZ4 (lz4_Block_format.md of lz4/lz4), without the frames that Hadoop has around blocks ---

// Add the bytes that continue a length of 15; false if they don't end.
inline bool lz4_length(const uint8_t *&in, const uint8_t *end, size_t &length) {
    uint8_t more;
    do {
        if (in >= end) return false;
        length += more = *in++;
    } while (more == 255);
    return true;
}

inline bool lz4_decompress(const uint8_t *in, size_t n, uint8_t *const out, size_t size) {
    const uint8_t *const end = in + n;
    uint8_t *o = out, *const stop = out + size;
    while (in < end) {
        const uint8_t tag = *in++;
        size_t count = tag >> 4;
        if (count < 15) {
            if (static_cast<size_t>(end - in) < count || static_cast<size_t>(stop - o) < count) return false;
            std::memcpy(o, in, 16);
        } else {
            if (!lz4_length(in, end, count) || static_cast<size_t>(end - in) < count || static_cast<size_t>(stop - o) < count) return false;
            copy_blocks(o, in, count);
        }
        in += count;
        o += count;
        if (in == end) return o == stop;  // the last literals have no copy behind them
        if (end - in < 2) return false;
        const size_t distance = load<uint16_t>(in);
        in += 2;
        count = tag & 15;
        if (count == 15 && !lz4_length(in, end, count)) return false;
        count += 4;
        if (distance == 0 || distance > static_cast<size_t>(o - out) || static_cast<size_t>(stop - o) < count) return false;
        if (distance < count || distance < 32) copy_overlapping(o, distance, count);
        else copy_blocks(o, o - distance, count);
        o += count;
    }
    return false;
}

// --- page headers (parquet.thrift) ---

// Whether the checksums of pages that have one are compared.
inline bool checks_pages() {
    static const bool found = [] {
        const char *const given = std::getenv("DELTA_CORE_PAGE_CHECKSUMS");
        return !given || std::strcmp(given, "ignore");
    }();
    return found;
}

struct PageHeader {
    int64_t type = -1, uncompressed = -1, compressed = -1;
    int64_t num_values = -1, encoding = -1, level_encoding = RLE, repetition_encoding = RLE;
    int64_t definition_bytes = 0, repetition_bytes = 0;
    int64_t checksum = 0;
    bool is_compressed = true, has_checksum = false;
};

class PageHeaderReader : public ThriftReader {
   public:
    using ThriftReader::ThriftReader;

    bool page_header(PageHeader &page) {
        const bool good = each_field([&](int16_t id, int type) {
            if (id == 1 && type == I32) return number(page.type);
            if (id == 2 && type == I32) return number(page.uncompressed);
            if (id == 3 && type == I32) return number(page.compressed);
            if (id == 4 && type == I32) return page.has_checksum = number(page.checksum);
            if ((id == 5 || id == 7 || id == 8) && type == STRUCT) return values_header(page, id);
            return skip(type);
        });
        return good && page.type >= 0 && page.uncompressed >= 0 && page.compressed >= 0;
    }

   private:
    // DataPageHeader (field 5), DictionaryPageHeader (7) or DataPageHeaderV2 (8).
    bool values_header(PageHeader &page, int16_t kind) {
        const bool good = each_field([&](int16_t id, int type) {
            if (id == 1 && type == I32) return number(page.num_values);
            if (id == (kind == 8 ? 4 : 2) && type == I32) return number(page.encoding);
            if (kind == 5 && id == 3 && type == I32) return number(page.level_encoding);
            if (kind == 5 && id == 4 && type == I32) return number(page.repetition_encoding);
            if (kind == 8 && id == 5 && type == I32) return number(page.definition_bytes);
            if (kind == 8 && id == 6 && type == I32) return number(page.repetition_bytes);
            if (kind == 8 && id == 7 && (type == TRUE || type == FALSE)) return (page.is_compressed = type == TRUE), true;
            return skip(type);
        });
        return good && page.num_values >= 0 && page.encoding >= 0;
    }
};

// --- values that lie in memory otherwise than in pages ---

// How values lie in memory and in pages.
struct ValueLayout {
    // Of `stored`: as in memory; a bit each, in memory too (booleans); floats, as in memory; whole numbers of 4 or 8 bytes;
    // instants of INT96, the nanoseconds of a Julian day and its number, which are microseconds since 1970 in memory.
    enum : int { AS_IN_MEMORY = 0, BITS = 1, FLOATS = 2, INT_4 = 4, INT_8 = 8, INSTANTS = 12, MOST_BYTES = 16 };

    // Bytes of a value in memory, 0 for strings; 1 for bits, 8 to a byte.
    int width = 0;
    // One of these; or that it has -1 to -16 bytes, the highest one first.
    int stored = AS_IN_MEMORY;

    bool is_bits() const { return stored == BITS; }
    bool is_converted() const { return stored != AS_IN_MEMORY && stored != BITS && stored != FLOATS; }
    // Whether pages have whole numbers, the lowest byte first.
    bool is_integer() const { return stored == INT_4 || stored == INT_8 || (stored == AS_IN_MEMORY && width); }
    // Bytes of a value in pages.
    int page_bytes() const { return !is_converted() ? width : stored < 0 ? -stored : stored; }
    // Bytes of so many values in memory.
    int64_t bytes_of(int64_t n) const { return is_bits() ? (n + 7) / 8 : n * width; }
    // Whether values of this kind are converted.
    bool is_known() const {
        if (!is_converted()) return true;
        if (stored == INSTANTS) return width == 8;
        if (stored == INT_4) return width == 1 || width == 2 || width == 16;
        return width == 16 && (stored == INT_8 || (stored < 0 && stored >= -MOST_BYTES));
    }
};

// A number of 128 bits as Arrow has it.
struct Wide {
    uint64_t low = 0, high = 0;
    Wide() = default;
    explicit Wide(int64_t value) : low(static_cast<uint64_t>(value)), high(static_cast<uint64_t>(value >> 63)) {}
    Wide(uint64_t low, uint64_t high) : low(low), high(high) {}
};

// Read a number of so many bytes, the highest one first; up to 7 bytes behind it are read too.
template <int bytes>
inline int64_t load_highest_first(const uint8_t *in) {
    return static_cast<int64_t>(__builtin_bswap64(load<uint64_t>(in))) >> (64 - 8 * bytes);
}
template <int bytes>
inline Wide load_wide(const uint8_t *in) {
    if constexpr (bytes <= 8) return Wide(load_highest_first<bytes>(in));
    else return Wide(__builtin_bswap64(load<uint64_t>(in + bytes - 8)), static_cast<uint64_t>(load_highest_first<bytes - 8>(in)));
}

// Read an instant of INT96 in microseconds; what is out of range wraps around, as PyArrow does it.
inline int64_t load_instant(const uint8_t *in) {
    const uint64_t days = load<uint32_t>(in + 8) - UINT64_C(2440588);
    return static_cast<int64_t>(days * UINT64_C(86400000000) + load<uint64_t>(in) / 1000);
}

// Write what `read` returns of all `n` values of so many bytes, or of those that a mask keeps.
template <class T, class Read>
__attribute__((always_inline)) inline void convert(const uint8_t *in, int bytes, const uint64_t *keep, int64_t n, uint8_t *out, Read read) {
    const auto write = [&](int64_t i) {
        const T value = static_cast<T>(read(in + i * bytes));
        std::memcpy(out, &value, sizeof(T));
        out += sizeof(T);
    };
    if (!keep) {
        for (int64_t i = 0; i < n; i++) write(i);
        return;
    }
    for (int64_t w = 0; 64 * w < n; w++)
        for (uint64_t word = mask_word(keep, w, n); word; word &= word - 1) write(64 * w + __builtin_ctzll(word));
}

using Convert = void (*)(const uint8_t *in, const uint64_t *keep, int64_t n, uint8_t *out);

template <int bytes>
inline void convert_to_wide(const uint8_t *in, const uint64_t *keep, int64_t n, uint8_t *out) {
    convert<Wide>(in, bytes, keep, n, out, load_wide<bytes>);
}
template <int bytes>
inline void convert_to_long(const uint8_t *in, const uint64_t *keep, int64_t n, uint8_t *out) {
    convert<int64_t>(in, bytes, keep, n, out, load_highest_first<bytes>);
}
template <int... less>
inline Convert wide_converter(int bytes, std::integer_sequence<int, less...>) {
    static constexpr Convert of[] = {convert_to_wide<less + 1>...};
    return of[bytes - 1];
}
template <int... less>
inline Convert long_converter(int bytes, std::integer_sequence<int, less...>) {
    static constexpr Convert of[] = {convert_to_long<less + 1>...};
    return of[bytes - 1];
}

// Write values as they lie in memory, in `layout.width` bytes each, or in 8 if they fit: all `n`, or those that a mask keeps.
inline void convert_values(const ValueLayout &layout, const uint8_t *in, const uint64_t *keep, int64_t n, uint8_t *out) {
    if (layout.stored == ValueLayout::INSTANTS) {
        convert<int64_t>(in, ValueLayout::INSTANTS, keep, n, out, load_instant);
    } else if (layout.stored < 0) {
        const Convert convert_all = layout.width == 8 ? long_converter(-layout.stored, std::make_integer_sequence<int, 8>())
                                                      : wide_converter(-layout.stored, std::make_integer_sequence<int, 16>());
        convert_all(in, keep, n, out);
    } else if (layout.stored == ValueLayout::INT_8) {
        if (layout.width == 8) convert<int64_t>(in, 8, keep, n, out, load<int64_t>);
        else convert<Wide>(in, 8, keep, n, out, load<int64_t>);
    } else if (layout.width == 1) {
        convert<int8_t>(in, 4, keep, n, out, load<int32_t>);
    } else if (layout.width == 2) {
        convert<int16_t>(in, 4, keep, n, out, load<int32_t>);
    } else if (layout.width == 8) {
        convert<int64_t>(in, 4, keep, n, out, load<int32_t>);
    } else {
        convert<Wide>(in, 4, keep, n, out, load<int32_t>);
    }
}

// Whether numbers of 4 bytes fit into 1 or 2.
inline bool fit_into(const uint8_t *in, int64_t n, int width) {
    const int32_t most = width == 1 ? INT8_MAX : INT16_MAX;
    int32_t beyond = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t value = load<int32_t>(in + 4 * i);
        beyond |= (value > most) | (value < -most - 1);
    }
    return !beyond;
}

// --- runs of small numbers: definition levels, dictionary codes ---

inline int bit_width(uint64_t most) {
    int width = 0;
    for (; most; most >>= 1) width++;
    return width;
}

// Unpack groups of 8 numbers, `width` bytes each; reads up to 7 bytes behind the last.
template <int width>
inline void unpack(const uint8_t *in, int64_t groups, uint32_t *out) {
    constexpr uint32_t mask = width == 32 ? 0xffffffffu : (1u << (width % 32)) - 1;
    for (int64_t group = 0; group < groups; group++, in += width, out += 8)
        for (int i = 0; i < 8; i++)
            out[i] = static_cast<uint32_t>(load<uint64_t>(in + (i * width >> 3)) >> (i * width & 7)) & mask;
}

using Unpack = void (*)(const uint8_t *, int64_t, uint32_t *);

template <int... widths>
inline Unpack unpack_of(int width, std::integer_sequence<int, widths...>) {
    static constexpr Unpack of[] = {unpack<widths>...};
    return of[width];
}

// Decode `n` numbers; false if there are fewer. `out` has room for 7 more.
inline bool decode_runs(const uint8_t *in, const uint8_t *end, int width, int64_t n, uint32_t *out) {
    const int bytes = (width + 7) / 8;
    const Unpack unpack_groups = unpack_of(width, std::make_integer_sequence<int, 33>());
    int64_t done = 0;
    while (done < n) {
        uint64_t head;
        if (!read_varint(in, end, head)) return false;
        const uint64_t of_run = head >> 1;
        if (of_run > (1u << 30)) return false;
        if (head & 1) {
            const uint64_t size = of_run * width;
            if (size > static_cast<uint64_t>(end - in)) return false;
            int64_t groups = (n - done + 7) / 8;
            if (groups > static_cast<int64_t>(of_run)) groups = static_cast<int64_t>(of_run);
            unpack_groups(in, groups, out + done);
            in += size;
            done += 8 * groups;
        } else {
            if (end - in < bytes) return false;
            const uint32_t value = bytes ? load<uint32_t>(in) & (0xffffffffu >> (32 - 8 * bytes)) : 0;
            in += bytes;
            int64_t count = static_cast<int64_t>(of_run);
            if (count > n - done) count = n - done;
            for (int64_t i = 0; i < count; i++) out[done + i] = value;
            done += count;
        }
    }
    return true;
}

// --- further encodings (Encodings.md of apache/parquet-format) ---

// Return a number of up to 64 bits that begins at a bit.
inline uint64_t bits_at(const uint8_t *in, uint64_t bit, int width) {
    const uint64_t low = load<uint64_t>(in + bit / 8) >> bit % 8;
    const uint64_t value = bit % 8 + width > 64 ? low | static_cast<uint64_t>(in[bit / 8 + 8]) << (64 - bit % 8) : low;
    return width < 64 ? value & ((UINT64_C(1) << width) - 1) : value;
}

// Decode `n` numbers of DELTA_BINARY_PACKED and pass them; false if there are not as many. T is unsigned: deltas wrap around,
// and DuckDB writes those of 32-bit numbers in more bits.
template <class T>
inline bool decode_deltas(const uint8_t *&in, const uint8_t *end, int64_t n, uint8_t *out) {
    enum : int64_t { STEP = 64, MOST_BLOCK = 1 << 16 };
    uint64_t block, parts, total, zigzag;
    if (!read_varint(in, end, block) || !read_varint(in, end, parts) || !read_varint(in, end, total) || !read_varint(in, end, zigzag)) return false;
    if (!parts || !block || block > MOST_BLOCK || block % parts || block / parts % 32 || total != static_cast<uint64_t>(n)) return false;
    const int64_t of_part = static_cast<int64_t>(block / parts);
    T value = static_cast<T>(zigzag >> 1 ^ -(zigzag & 1));
    if (!n) return true;
    std::memcpy(out, &value, sizeof(T));
    uint32_t some[STEP];
    for (int64_t done = 1; done < n;) {
        if (!read_varint(in, end, zigzag) || static_cast<uint64_t>(end - in) < parts) return false;
        const T least = static_cast<T>(zigzag >> 1 ^ -(zigzag & 1));
        const uint8_t *const widths = in;
        in += parts;
        for (uint64_t part = 0; part < parts && done < n; part++) {
            const int width = widths[part];
            if (width > 64 || end - in < of_part / 8 * width) return false;
            const Unpack unpack_groups = width <= 32 ? unpack_of(width, std::make_integer_sequence<int, 33>()) : nullptr;
            const int64_t stop = std::min(n, done + of_part);
            for (int64_t first = 0; done < stop; first += STEP) {
                const int64_t count = std::min<int64_t>(STEP, stop - done);
                T *const values = reinterpret_cast<T *>(out) + done;
                if (unpack_groups) {
                    // of a part at least 32 numbers are left, or none
                    unpack_groups(in + first / 8 * width, (count + 7) / 8, some);
                    for (int64_t i = 0; i < count; i++) values[i] = value = static_cast<T>(value + least + some[i]);
                } else {
                    for (int64_t i = 0; i < count; i++) {
                        values[i] = value = static_cast<T>(value + least + bits_at(in, static_cast<uint64_t>((first + i) * width), width));
                    }
                }
                done += count;
            }
            in += of_part / 8 * width;
        }
    }
    return true;
}

// Write values of BYTE_STREAM_SPLIT as PLAIN has them: first come the first bytes of all, then the second ones, and so on.
inline void join_streams(const uint8_t *in, int64_t n, int bytes, uint8_t *out) {
    const auto join = [&](auto size) {
        for (int64_t i = 0; i < n; i++)
            for (int k = 0; k < size; k++) out[i * size + k] = in[k * n + i];
    };
    if (bytes == 4) join(std::integral_constant<int, 4>());
    else if (bytes == 8) join(std::integral_constant<int, 8>());
    else join(bytes);
}

// Whether one run holds all `n` numbers; then `value` is their value.
inline bool is_one_run(const uint8_t *in, const uint8_t *end, int width, int64_t n, uint32_t &value) {
    uint64_t head;
    const int bytes = (width + 7) / 8;
    if (!read_varint(in, end, head) || head & 1 || static_cast<int64_t>(head >> 1) < n || end - in < bytes) return false;
    value = bytes ? load<uint32_t>(in) & (0xffffffffu >> (32 - 8 * bytes)) : 0;
    return true;
}

// --- bits of rows ---

// Set those bits from `first` on that `word` has; up to 16 bytes from there on are touched.
inline void or_word(uint8_t *bits, int64_t first, uint64_t word) {
    uint8_t *const out = bits + (first >> 3);
    const int shift = first & 7;
    const uint64_t low = load<uint64_t>(out) | word << shift;
    std::memcpy(out, &low, 8);
    if (shift) out[8] |= static_cast<uint8_t>(word >> (64 - shift));
}

// Set `n` bits from `first` on to those of a mask; the bits there were zero.
inline void or_bits(uint8_t *bits, int64_t first, const uint64_t *mask, int64_t n) {
    for (int64_t w = 0; 64 * w < n; w++) or_word(bits, first + 64 * w, mask_word(mask, w, n));
}

// The same in whole words; none is touched behind the last bit.
inline void or_bits(uint64_t *out, int64_t first, const uint64_t *mask, int64_t n) {
    const int shift = first % 64;
    out += first / 64;
    for (int64_t w = 0; 64 * w < n; w++) {
        const uint64_t word = mask_word(mask, w, n);
        out[w] |= word << shift;
        if (shift && word >> (64 - shift)) out[w + 1] |= word >> (64 - shift);
    }
}

inline void set_bits(uint8_t *bits, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; i += 64) or_word(bits, first + i, n - i >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (n - i)) - 1);
}

// Decode `n` levels of one bit each, as the bits of `out`, which are zero; false if there are fewer, or greater ones.
inline bool decode_bits(const uint8_t *in, const uint8_t *end, int64_t n, uint8_t *out) {
    int64_t done = 0;
    while (done < n) {
        uint64_t head;
        if (!read_varint(in, end, head)) return false;
        const uint64_t of_run = head >> 1;
        if (of_run > (1u << 30)) return false;
        int64_t count = static_cast<int64_t>(of_run);
        if (head & 1) {
            if (of_run > static_cast<uint64_t>(end - in)) return false;
            count *= 8;
            if (count > n - done) count = n - done;
            for (int64_t i = 0; i < count; i += 64) or_word(out, done + i, bits_from(in, i, count));
            in += of_run;
        } else {
            if (in >= end || *in > 1) return false;
            if (count > n - done) count = n - done;
            if (*in++) set_bits(out, done, count);
        }
        done += count;
    }
    return true;
}

// Write a value for each of `n` rows: those without one become 0.
template <class T>
inline void spread(const uint8_t *values, const uint64_t *valid, int64_t n, uint8_t *out) {
    for (int64_t w = 0; 64 * w < n; w++, out += 64 * sizeof(T)) {
        uint64_t word = mask_word(valid, w, n);
        if (!~word) {
            std::memcpy(out, values, 64 * sizeof(T));
            values += 64 * sizeof(T);
            continue;
        }
        const int64_t rows = n - 64 * w < 64 ? n - 64 * w : 64;
        std::memset(out, 0, rows * sizeof(T));
        for (; word; word &= word - 1, values += sizeof(T)) std::memcpy(out + __builtin_ctzll(word) * sizeof(T), values, sizeof(T));
    }
}

// --- search ---

// Return where a part first begins in the bytes up to `stop`, nullptr if it does not. Some bytes behind `stop` may be read,
// within SLACK. Parts are tried where both their first and their last byte are; that these are frequent in a long text must
// not take its length times that of the part, as memmem does not.
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
    return static_cast<const uint8_t *>(memmem(at, stop - at, part, size));
}

// --- tests of values ---

enum Kind { IN_RANGE = 0, IN_SET = 1, LIKE_PATTERN = 2, IS_NULL = 3, HAS_VALUE = 4, IS_BELOW = 5, ANY_OF = 6, ALL_OF = 7 };

// Which rows pass: those whose number is from `least` to `most`, both included (of floats from `low` to `high`, and NaN or
// not); those whose value is a key; whose string starts with the first key and ends with the last, with the others in between
// in order, wildcards being any character; that are null; that are not; whose string is below the first key, or equal to it if `with_key`; whose value
// passes any, or all, of `parts`, which are tests of values. `is_negated` inverts this for values. Null passes a test of
// values only if `with_null`.
struct Test {
    // Bits for each key, and at least, in a table of hashes; and for each key, and at most, in one of a range of numbers.
    enum : int64_t { HASH_BITS = 16, LEAST_BITS = 4096, RANGE_BITS = 128, MOST_BITS = int64_t{1} << 26 };

    // In the keys of a pattern it matches one character; UTF-8 does not have it.
    enum : uint8_t { WILDCARD = 0xff };

    int kind = IN_RANGE;
    bool has_wildcard = false;
    bool is_float = false, with_nan = false, with_key = false, is_negated = false, with_null = false;
    std::vector<const Test *> parts;
    int64_t least = 0, most = 0;
    double low = 0, high = 0;
    // Of numbers of 16 bytes; then `least` and `most` are the bounds of those that 8 bytes hold.
    bool is_wide = false;
    Wide wide_least, wide_most;
    // Keys ascend: numbers of 8 bytes each (of floats without NaN), or strings one behind the other, which end at `ends[1 ...]`.
    const uint8_t *keys = reinterpret_cast<const uint8_t *>("");
    const int32_t *ends = nullptr;
    int64_t num_keys = 0;
    // For each hash whether a key has it, or, `is_exact`, for each number from the first key on whether it is one. Of strings
    // below a key `first` is its head.
    std::vector<uint64_t> bits;
    bool is_exact = false;
    uint64_t first = 0, range = 0;
    int shift = 52;

    bool is_of_levels() const { return kind == IS_NULL || kind == HAS_VALUE; }
    bool is_joined() const { return kind == ANY_OF || kind == ALL_OF; }

    // To be called once the keys of a set are there.
    void hash_keys() {
        if (!ends && !is_float && num_keys && index_range()) return;
        int64_t size = LEAST_BITS;
        for (shift = 52; size < HASH_BITS * num_keys && size < MOST_BITS; shift--) size *= 2;
        bits.assign(size / 64, 0);
        for (int64_t k = 0; k < num_keys; k++) {
            if (ends) {
                const size_t length = ends[k + 1] - ends[k];
                uint8_t head[8] = {};  // behind a key nothing may be read
                if (length) std::memcpy(head, keys + ends[k], length < 8 ? length : 8);
                set_bit(hash_of(head, length));
            } else if (is_float) {
                set_bit(hash_of(load<double>(keys + 8 * k)));
            } else {
                set_bit(hash_of(load<int64_t>(keys + 8 * k)));
            }
        }
    }

    // Set a bit for each key in place of its hash, if the range of them is short.
    bool index_range() {
        first = load<uint64_t>(keys);
        range = load<uint64_t>(keys + 8 * (num_keys - 1)) - first + 1;  // 0: all numbers
        if (range - 1 >= static_cast<uint64_t>(std::min<int64_t>(RANGE_BITS * num_keys, MOST_BITS))) return false;
        bits.assign((range + 63) / 64, 0);
        for (int64_t k = 0; k < num_keys; k++) set_bit(load<uint64_t>(keys + 8 * k) - first);
        return is_exact = true;
    }

    void set_bit(uint64_t place) { bits[place / 64] |= UINT64_C(1) << (place % 64); }
    bool has_bit(uint64_t place) const { return bits[place / 64] >> (place % 64) & 1; }

    uint64_t hash_of(int64_t value) const { return static_cast<uint64_t>(value) * UINT64_C(0x9e3779b97f4a7c15) >> shift; }
    uint64_t hash_of(double value) const {
        value += 0.0;  // -0.0 equals 0.0
        return hash_of(load<int64_t>(reinterpret_cast<const uint8_t *>(&value)));
    }
    // Of a string with 8 readable bytes.
    uint64_t hash_of(const uint8_t *text, size_t size) const {
        const uint64_t head = load<uint64_t>(text);
        return hash_of(static_cast<int64_t>((size < 8 ? head & ((UINT64_C(1) << 8 * size) - 1) : head) ^ size << 56));
    }

    // Return the last key that is not above a value, or the first one; there is one.
    template <class T>
    T key_below(T value) const {
        int64_t at = 0;
        for (int64_t n = num_keys; n > 1;) {
            const int64_t half = n / 2;
            at = load<T>(keys + 8 * (at + half)) <= value ? at + half : at;
            n -= half;
        }
        return load<T>(keys + 8 * at);
    }

    template <class T>
    bool has_key(T value) const { return num_keys && key_below(value) == value; }

    bool has_key(const uint8_t *text, size_t size) const {
        int64_t first = 0, last = num_keys;
        while (first < last) {
            const int64_t middle = (first + last) / 2;
            const size_t other = ends[middle + 1] - ends[middle];
            int order = std::memcmp(text, keys + ends[middle], size < other ? size : other);
            if (!order) order = size < other ? -1 : size > other;
            if (!order) return true;
            if (order < 0) last = middle;
            else first = middle + 1;
        }
        return false;
    }

    // Whether a string passes that has SLACK readable bytes behind it.
    bool passes(const uint8_t *text, size_t size) const { return accepts(text, size) != is_negated; }

    bool accepts(const uint8_t *text, size_t size) const {
        if (kind == IN_SET) return has_bit(hash_of(text, size)) && has_key(text, size);
        if (kind == IS_BELOW) return is_below(text, size);
        if (!is_joined()) return has_parts(text, size);
        for (const Test *part : parts)
            if (part->passes(text, size) == (kind == ANY_OF)) return kind == ANY_OF;
        return kind == ALL_OF;
    }

    // Return the first bytes of a string as a number that orders strings as these do.
    static uint64_t head_of(const uint8_t *text, size_t size) {
        uint64_t head = 0;
        std::memcpy(&head, text, size < 8 ? size : 8);
        return __builtin_bswap64(head);
    }

    bool is_below(const uint8_t *text, size_t size) const {
        // most strings differ in their first bytes; behind the string some are readable
        const uint64_t read = __builtin_bswap64(load<uint64_t>(text)), head = size < 8 ? read & ~(~UINT64_C(0) >> 8 * size) : read;
        if (head != first) return head < first;
        const size_t other = ends[1];
        const int order = std::memcmp(text, keys, size < other ? size : other);
        return order ? order < 0 : size < other || (with_key && size == other);
    }

    // Whether a string begins with the first of at least two keys and ends with the last, with the others in between in order.
    bool has_parts(const uint8_t *text, size_t size) const {
        if (has_wildcard) return has_wild_parts(text, size);
        const int64_t last = num_keys - 1;
        const size_t head = ends[1], tail = ends[last + 1] - ends[last];
        if (size < head + tail || std::memcmp(text, keys, head) || std::memcmp(text + size - tail, keys + ends[last], tail)) return false;
        const uint8_t *at = text + head, *const stop = text + size - tail;
        for (int64_t k = 1; k < last; k++) {
            const size_t part = ends[k + 1] - ends[k];
            at = find_bytes(at, stop, keys + ends[k], part);
            if (!at) return false;
            at += part;
        }
        return true;
    }

    // The same of keys with wildcards. A single key describes the whole string.
    bool has_wild_parts(const uint8_t *text, size_t size) const {
        const int64_t last = num_keys - 1;
        const uint8_t *stop = text + size, *at = behind_key(text, stop, 0);
        if (!at || !last) return at && at == stop;
        stop = before_key(at, stop, last);
        for (int64_t k = 1; stop && at && k < last; k++) at = behind_next(at, stop, k);
        return stop && at;
    }

    static const uint8_t *behind_character(const uint8_t *at, const uint8_t *stop) {
        at++;
        while (at < stop && (*at & 0xc0) == 0x80) at++;
        return at;
    }

    // Where a key ends that begins at a place; nullptr if it is not there.
    const uint8_t *behind_key(const uint8_t *at, const uint8_t *stop, int64_t k) const {
        for (int32_t i = ends[k]; i < ends[k + 1]; i++) {
            if (at >= stop || (keys[i] != WILDCARD && keys[i] != *at)) return nullptr;
            at = keys[i] == WILDCARD ? behind_character(at, stop) : at + 1;
        }
        return at;
    }

    // Where a key begins that ends at a place; nullptr if it is not there.
    const uint8_t *before_key(const uint8_t *at, const uint8_t *stop, int64_t k) const {
        for (int32_t i = ends[k + 1]; i > ends[k]; i--) {
            if (stop <= at) return nullptr;
            stop--;
            if (keys[i - 1] == WILDCARD) while (stop > at && (*stop & 0xc0) == 0x80) stop--;
            else if (keys[i - 1] != *stop) return nullptr;
        }
        return stop;
    }

    // Where a key ends that is the first from a place on; nullptr if there is none.
    const uint8_t *behind_next(const uint8_t *at, const uint8_t *stop, int64_t k) const {
        const uint8_t *const key = keys + ends[k];
        const size_t size = ends[k + 1] - ends[k];
        const void *const wild = std::memchr(key, WILDCARD, size);
        const size_t head = wild ? static_cast<const uint8_t *>(wild) - key : size;
        while (true) {
            if (head) at = find_bytes(at, stop, key, head);
            if (!at) return nullptr;
            if (const uint8_t *const found = behind_key(at, stop, k)) return found;
            if (at >= stop) return nullptr;
            at = behind_character(at, stop);
        }
    }
};

template <class T, class Bound>
__attribute__((always_inline)) inline void mark(const uint8_t *values, int64_t n, Bound low, Bound high, bool nan, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        const T value = load<T>(values + i * sizeof(T));
        out[i] = static_cast<uint8_t>((value >= low) & (value <= high)) | static_cast<uint8_t>(nan & (value != value));
    }
}

template <class T>
__attribute__((always_inline)) inline void mark(const uint8_t *values, int64_t n, const Test &test, uint8_t *out) {
    if constexpr (std::is_floating_point_v<T>) {
        mark<T, T>(values, n, static_cast<T>(test.low), static_cast<T>(test.high), test.with_nan, out);
    } else {
        // beyond what the type holds nothing passes: `read_passing` checks that
        mark<T, T>(values, n, static_cast<T>(test.least), static_cast<T>(test.most), false, out);
    }
}

template <class T>
inline void mark_plain(const uint8_t *values, int64_t n, const Test &test, uint8_t *out) { mark<T>(values, n, test, out); }

#ifdef COMPACT_AVX2
template <class T>
__attribute__((target("avx2"))) inline void mark_avx2(const uint8_t *values, int64_t n, const Test &test, uint8_t *out) {
    mark<T>(values, n, test, out);
}
#endif

inline __int128 number_of(const Wide &value) {
    return static_cast<__int128>(static_cast<unsigned __int128>(value.high) << 64 | value.low);
}

inline void mark_wide(const uint8_t *values, int64_t n, const Test &test, uint8_t *out) {
    const __int128 least = number_of(test.wide_least), most = number_of(test.wide_most);
    for (int64_t i = 0; i < n; i++) {
        const __int128 value = number_of(load<Wide>(values + i * sizeof(Wide)));
        out[i] = static_cast<uint8_t>((value >= least) & (value <= most));
    }
}

template <class T>
inline void mark_keys(const uint8_t *values, int64_t n, const Test &test, uint8_t *out) {
    using Key = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
    for (int64_t i = 0; test.is_exact && i < n; i++) {
        const uint64_t place = static_cast<uint64_t>(static_cast<int64_t>(load<T>(values + i * sizeof(T)))) - test.first;
        out[i] = place < test.range && test.has_bit(place);
    }
    for (int64_t i = 0; !test.is_exact && i < n; i++) {
        const Key value = load<T>(values + i * sizeof(T));
        out[i] = test.has_bit(test.hash_of(value)) && test.has_key<Key>(value);
    }
}

// Write 1 for each value that passes, else 0; the values may lie anywhere.
template <class T>
inline void mark_values(const uint8_t *values, int64_t n, const Test &test, uint8_t *out) {
    if (test.kind == IN_SET) return mark_keys<T>(values, n, test, out);
#ifdef COMPACT_AVX2
    if (__builtin_cpu_supports("avx2")) return mark_avx2<T>(values, n, test, out);
#endif
    mark_plain<T>(values, n, test, out);
}

inline void mark_alone(const uint8_t *values, int64_t n, int width, const Test &test, uint8_t *out) {
    if (test.is_float) return width == 4 ? mark_values<float>(values, n, test, out) : mark_values<double>(values, n, test, out);
    switch (width) {
        case 1: return mark_values<int8_t>(values, n, test, out);
        case 2: return mark_values<int16_t>(values, n, test, out);
        case 4: return mark_values<int32_t>(values, n, test, out);
        case 8: return mark_values<int64_t>(values, n, test, out);
        default: return mark_wide(values, n, test, out);
    }
}

inline void mark_values(const uint8_t *values, int64_t n, int width, const Test &test, uint8_t *out);

// The same for a test of several ones, which flags of few values are combined for at a time.
inline void mark_parts(const uint8_t *values, int64_t n, int width, const Test &test, uint8_t *out) {
    enum : int64_t { BLOCK = 1024 };
    uint8_t block[BLOCK];
    const bool is_any = test.kind == ANY_OF;
    if (test.parts.empty()) std::memset(out, !is_any, n);
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t count = std::min<int64_t>(BLOCK, n - i);
        uint8_t *const flags = out + i;
        for (size_t k = 0; k < test.parts.size(); k++) {
            mark_values(values + i * width, count, width, *test.parts[k], k ? block : flags);
            for (int64_t j = 0; k && is_any && j < count; j++) flags[j] |= block[j];
            for (int64_t j = 0; k && !is_any && j < count; j++) flags[j] &= block[j];
        }
    }
}

inline void mark_values(const uint8_t *values, int64_t n, int width, const Test &test, uint8_t *out) {
    if (test.is_joined()) mark_parts(values, n, width, test, out);
    else mark_alone(values, n, width, test, out);
    for (int64_t i = 0; test.is_negated && i < n; i++) out[i] ^= 1;
}

// The same of PLAIN strings; false if they don't end where the page does.
inline bool mark_texts(const uint8_t *in, const uint8_t *end, int64_t n, const Test &test, uint8_t *out) {
    for (int64_t i = 0; i < n; i++) {
        if (end - in < 4) return false;
        const uint32_t size = load<uint32_t>(in);
        in += 4;
        if (size > static_cast<uint64_t>(end - in)) return false;
        out[i] = test.passes(in, size);
        in += size;
    }
    return in == end;
}

// --- one column chunk ---

// A file is read in windows of so many bytes, or pages if they are longer.
enum : int64_t { WINDOW_BYTES = 256 << 10 };

// Whether all codes are below a length. The highest bit of `last - code` is set if one is not, unless that of the code is.
inline bool are_below(const uint32_t *codes, int64_t n, int64_t length) {
    if (length <= 0 || length > INT32_MAX) return n == 0;
    const uint32_t last = static_cast<uint32_t>(length - 1);
    uint32_t bits = 0;
    for (int64_t i = 0; i < n; i++) bits |= (last - codes[i]) | codes[i];
    return !(bits >> 31);
}

// Reads pages one by one: `next_page` decodes what needs no output, then `append` writes the page's rows.
class ChunkReader {
   public:
    // `keep` is nullptr or a mask of the chunk's rows that keeps `num_kept`.
    // With a test only rows that pass are kept, and their bits of `passed`, which were zero, are set; without values to be
    // appended a test of nulls reads the levels alone.
    ChunkReader(Workspace &space, const ChunkBytes &bytes, int codec, const ValueLayout &layout, int most_level, int64_t num_rows,
                const uint64_t *keep, int64_t num_kept, const Test *test = nullptr, uint64_t *passed = nullptr, bool appends = true)
        : space_(space), bytes_(bytes), codec_(codec == ZSTD && !ZstdLibrary::loaded() ? FOREIGN : codec), layout_(layout),
          width_(layout.width), most_(most_level),
          num_rows_(num_rows), test_(test), passed_(passed),
          has_value_test_(test && !test->is_of_levels()), is_of_levels_(test && test->is_of_levels() && !appends),
          keep_(keep), stop_(num_rows), kept_left_(num_kept) {}

    // Go on with the rows from `first`, behind those before, up to `stop`; the mask's first bit is that of `first`.
    Status begin(int64_t first, int64_t stop, const uint64_t *keep, int64_t num_kept) {
        first_ = first;
        stop_ = stop;
        keep_ = keep;
        kept_left_ = num_kept;
        is_again_ = done_ > first;
        if (dictionary_ || dictionary_at_ < 0) return PAGE;
        // it was dropped
        const int64_t at = at_, body_at = body_at_;
        PageHeader page;
        at_ = dictionary_at_;
        const Status status = next_header(page) && page.type == DICTIONARY_PAGE ? read_dictionary(page) : UNSUPPORTED;
        at_ = at;
        body_at_ = body_at;
        return status;
    }

    Status next_page() {
        for (;;) {
            if (is_again_) {  // the page at hand has rows of this stretch too
                is_again_ = false;
            } else {
                if (done_ >= stop_) return DONE;
                page_at_ = at_;
                page_ = PageHeader();
                if (!next_header(page_)) return UNSUPPORTED;
                if (page_.type == DICTIONARY_PAGE) {
                    dictionary_at_ = page_at_;
                    const Status status = is_of_levels_ ? PAGE : read_dictionary(page_);
                    if (status != PAGE) return status;
                    continue;
                }
                // pages of other types hold no rows
                if ((page_.type != DATA_PAGE && page_.type != DATA_PAGE_V2) || page_.num_values == 0) continue;
                if (page_.num_values < 0 || page_.num_values > num_rows_ - done_) return UNSUPPORTED;
                rows_ = page_.num_values;
                done_ += rows_;
                is_decoded_ = false;
                count_met();
            }
            Status status = find_kept();
            if (status != PAGE) return status;
            if (kept_ && has_value_test_ && !test_->with_null && is_coded(page_) && dictionary_ && !has_match_) kept_ = 0;
            // a page without a kept row is not even decompressed
            pass_over(!kept_);
            if (!kept_) continue;
            if (!is_decoded_) {
                const uint8_t *const body = body_of(page_, status);
                if (!body) return status;
                count_decoded();
                if ((status = data_page(page_, body)) != PAGE) return status;
                is_decoded_ = true;
            }
            if (test_ && (status = narrow()) != PAGE) return status;
            if (kept_) return PAGE;
        }
    }

    // Drop the page at hand, and what was read of it: if it has rows of a next stretch, it is read again.
    void drop_page() {
        if (done_ > stop_) {
            at_ = page_at_;
            done_ -= rows_;
        }
        bytes_.forget();
    }
    void drop_dictionary() { dictionary_ = nullptr; }
    bool has_more_of_page() const { return done_ > stop_; }

    int64_t rows() const { return rows_; }
    // How many rows of the chunk are passed, the page's own included.
    int64_t done() const { return done_; }
    int64_t nulls() const { return rows_ - values_; }
    // How many of the page's rows are kept.
    int64_t kept() const { return kept_; }
    // Whether the page's values are codes of the dictionary.
    bool is_coded() const { return codes_; }
    int64_t dictionary_length() const { return dictionary_length_; }
    int64_t dictionary_bytes() const { return dictionary_bytes_; }
    const int32_t *dictionary_offsets() const { return dictionary_offsets_; }
    const uint8_t *dictionary_data() const { return dictionary_; }

    // Bytes of the page's strings, those that are not kept included.
    int64_t text_bytes() {
        if (!codes_) return end_of_values_ - values_at_ - 4 * values_;
        const uint32_t *const code = codes();
        int64_t total = 0;
        for (int64_t i = 0; i < values_; i++) total += dictionary_offsets_[code[i] + 1] - dictionary_offsets_[code[i]];
        return total;
    }

    // The same of the kept rows alone, -1 if the page is damaged; that takes a look at each string.
    int64_t kept_text_bytes() { return codes_ ? count_kept_text(coded_texts()) : count_kept_text(plain_texts()); }

    // Write the page's values behind `first` others; rows without one are 0. Bits there were zero.
    bool append_fixed(uint8_t *out, int64_t first) {
        if (layout_.is_bits()) return append_booleans(out, first);
        out += first * width_;
        switch (width_) {
            case 1: return append_numbers<uint8_t>(out);
            case 2: return append_numbers<uint16_t>(out);
            case 4: return append_numbers<uint32_t>(out);
            case 8: return append_numbers<uint64_t>(out);
            default: return append_numbers<Wide>(out);
        }
    }

    // Write the page's codes.
    bool append_codes(uint8_t *out) { return append_rows<uint32_t>(code_scratch_, out); }

    // Write the page's strings to `data + used`, and the end of each row's to `offsets[1 ...]`; return where the last one
    // ends, -1 if the page is damaged.
    int64_t append_text(int32_t *offsets, uint8_t *data, int64_t used) {
        uint8_t *const end = codes_ ? coded_text(offsets + 1, data, data + used) : plain_text(offsets + 1, data, data + used);
        return end ? end - data : -1;
    }

    // Set the bits of the page's kept rows in a bitmap of `num_rows`, after `first` rows with `nulls` nulls, which are counted
    // up; before the first null nothing is written to it. False if there is no memory.
    bool append_validity(uint8_t *bits, int64_t first, int64_t &nulls, int64_t num_rows) {
        const uint64_t *valid = valid_;
        int64_t found = 0;
        if (values_ < rows_ && kept_ == rows_) {
            found = rows_ - values_;
        } else if (values_ < rows_) {
            uint64_t *const inner = reinterpret_cast<uint64_t *>(space_.inner.room((rows_ + 63) / 64 * 8 + 8));
            if (!inner) return false;
            found = kept_ - compact_bits(reinterpret_cast<const uint8_t *>(valid_), 0, mask_, rows_, reinterpret_cast<uint8_t *>(inner));
            valid = inner;
        }
        if (!nulls) {
            if (!found) return true;
            std::memset(bits, 0, (num_rows + 7) / 8);
            std::memset(bits, 0xff, first / 8);
            for (int64_t i = first / 8 * 8; i < first; i++) bits[i >> 3] |= static_cast<uint8_t>(1 << (i & 7));
        }
        if (!found) set_bits(bits, first, kept_);
        else or_bits(bits, first, valid, kept_);
        nulls += found;
        return true;
    }

   protected:
    // Remember whether the page at hand is passed over; what lies behind a short one costs less than one more call.
    void pass_over(bool is_passed) { is_passed_ = is_passed && page_.compressed > 4 * HEADER_WINDOW_BYTES; }

    // Count the page at hand: once, if it is read again for the rows of a next stretch.
    void count_met() {
        space_.pages->met += page_at_ >= met_end_;
        met_end_ = std::max(met_end_, page_at_ + 1);
    }
    void count_decoded() {
        space_.pages->decoded += page_at_ >= decoded_end_;
        decoded_end_ = std::max(decoded_end_, page_at_ + 1);
    }

    static bool is_coded(const PageHeader &page) { return page.encoding == RLE_DICTIONARY || page.encoding == PLAIN_DICTIONARY; }
    uint32_t *codes() { return reinterpret_cast<uint32_t *>(code_scratch_); }

    // Write a number for each kept row, from one for each value; they may lie anywhere.
    template <class T>
    bool append_rows(const uint8_t *values, uint8_t *out) {
        const bool all = kept_ == rows_;
        if (values_ == rows_) {
            if (all) std::memcpy(out, values, rows_ * sizeof(T));
            else compact_fixed(values, sizeof(T), mask_, rows_, out);
            return true;
        }
        if (all) {
            spread<T>(values, valid_, rows_, out);
            return true;
        }
        // the mask of the values, then that of the kept rows
        const size_t words = (rows_ + 63) / 64 + 1;
        uint64_t *const inner = reinterpret_cast<uint64_t *>(space_.inner.room(2 * words * sizeof(uint64_t)));
        if (!inner) return false;
        const int64_t count = compact_bits(reinterpret_cast<const uint8_t *>(mask_), 0, valid_, rows_, reinterpret_cast<uint8_t *>(inner));
        uint8_t *const found = count == kept_ ? out : space_.spread.room(count * sizeof(T));
        if (!found) return false;
        compact_fixed(values, sizeof(T), inner, values_, found);
        if (count == kept_) return true;
        compact_bits(reinterpret_cast<const uint8_t *>(valid_), 0, mask_, rows_, reinterpret_cast<uint8_t *>(inner + words));
        spread<T>(found, inner + words, kept_, out);
        return true;
    }

    // Write a bit for each kept row.
    bool append_booleans(uint8_t *out, int64_t first) {
        const size_t words = (rows_ + 63) / 64 + 1;
        uint64_t *const inner = reinterpret_cast<uint64_t *>(space_.inner.room(2 * words * sizeof(uint64_t)));
        if (!inner) return false;
        const uint64_t *bits = reinterpret_cast<const uint64_t *>(values_at_);
        if (values_ < rows_) {
            mask_narrow(valid_, rows_, bits, values_, inner);
            bits = inner;
        }
        if (kept_ < rows_) {
            compact_bits(reinterpret_cast<const uint8_t *>(bits), 0, mask_, rows_, reinterpret_cast<uint8_t *>(inner + words));
            bits = inner + words;
        }
        or_bits(out, first, bits, kept_);
        return true;
    }

    // Write numbers that are not stored as they lie in memory.
    template <class T>
    bool append_converted(uint8_t *out) {
        if (values_ == rows_) {
            convert_values(layout_, values_at_, kept_ == rows_ ? nullptr : mask_, rows_, out);
            return true;
        }
        uint8_t *const values = space_.looked_up.room(values_ * sizeof(T));
        if (!values) return false;
        convert_values(layout_, values_at_, nullptr, values_, values);
        return append_rows<T>(values, out);
    }

    template <class T>
    bool append_numbers(uint8_t *out) {
        if (!codes_ && layout_.is_converted()) return append_converted<T>(out);
        if (!codes_) return end_of_values_ - values_at_ == values_ * static_cast<int64_t>(sizeof(T)) && append_rows<T>(values_at_, out);
        if (kept_ < rows_ && values_ == rows_) {  // looked up for those that are kept
            uint8_t *const kept = space_.spread.room(kept_ * sizeof(uint32_t));
            if (!kept) return false;
            compact_fixed(code_scratch_, sizeof(uint32_t), mask_, rows_, kept);
            look_up<T>(kept, kept_, out);
            return true;
        }
        if (values_ == rows_) {
            look_up<T>(code_scratch_, values_, out);
            return true;
        }
        uint8_t *const values = space_.looked_up.room(values_ * sizeof(T));
        if (!values) return false;
        look_up<T>(code_scratch_, values_, values);
        return append_rows<T>(values, out);
    }

    template <class T>
    void look_up(const uint8_t *codes, int64_t n, uint8_t *out) {
        const uint32_t *const code = reinterpret_cast<const uint32_t *>(codes);
        const T *const dictionary = reinterpret_cast<const T *>(dictionary_);
        T *const values = reinterpret_cast<T *>(out);
        for (int64_t i = 0; i < n; i++) values[i] = dictionary[code[i]];
    }

    // Write the strings of the kept rows; `next(text, size)` returns one value after the other, nullptr if it fails.
    template <class Next>
    uint8_t *append_strings(Next &next, int32_t *ends, uint8_t *data, uint8_t *out) {
        const bool all = kept_ == rows_;
        if (values_ == rows_) {
            return all ? append_strings<false, false>(next, ends, data, out) : append_strings<false, true>(next, ends, data, out);
        }
        return all ? append_strings<true, false>(next, ends, data, out) : append_strings<true, true>(next, ends, data, out);
    }

    template <bool nulls, bool masked, class Next>
    uint8_t *append_strings(Next &next, int32_t *ends, uint8_t *data, uint8_t *out) {
        for (int64_t i = 0, k = 0; i < rows_; i++) {
            const bool keep = !masked || (mask_[i >> 6] >> (i & 63) & 1);
            if (!nulls || (valid_[i >> 6] >> (i & 63) & 1)) {
                const uint8_t *text;
                size_t size;
                if (!next(text, size)) return nullptr;
                if (keep) {
                    copy_blocks(out, text, size);
                    out += size;
                }
            }
            ends[k] = static_cast<int32_t>(out - data);
            k += keep;
        }
        return out;
    }

    // The page's strings, one after the other; false for what is none.
    struct CodedTexts {
        const uint32_t *code;
        const int32_t *ends;
        const uint8_t *dictionary;
        bool operator()(const uint8_t *&text, size_t &size) {
            const int32_t start = ends[*code];
            text = dictionary + start;
            size = ends[*code + 1] - start;
            code++;
            return true;
        }
    };
    struct PlainTexts {
        const uint8_t *in, *const end;
        int64_t left;
        bool operator()(const uint8_t *&text, size_t &size) {
            if (end - in < 4) return false;
            size = load<uint32_t>(in);
            text = in += 4;
            left--;
            // as many bytes are left as all strings that follow have, or fewer
            if (size > static_cast<uint64_t>(end - in) - 4 * static_cast<uint64_t>(left)) return false;
            in += size;
            return true;
        }
    };
    CodedTexts coded_texts() { return {codes(), dictionary_offsets_, dictionary_}; }
    PlainTexts plain_texts() const { return {values_at_, end_of_values_, values_}; }

    uint8_t *coded_text(int32_t *ends, uint8_t *data, uint8_t *out) {
        CodedTexts next = coded_texts();
        return append_strings(next, ends, data, out);
    }

    uint8_t *plain_text(int32_t *ends, uint8_t *data, uint8_t *out) {
        PlainTexts next = plain_texts();
        out = append_strings(next, ends, data, out);
        return next.in == end_of_values_ ? out : nullptr;
    }

    // Return the bytes of the strings of the kept rows, -1 if the page is damaged.
    template <class Next>
    int64_t count_kept_text(Next next) const {
        int64_t total = 0;
        for (int64_t i = 0; i < rows_; i++) {
            if (values_ < rows_ && !(valid_[i >> 6] >> (i & 63) & 1)) continue;
            const uint8_t *text;
            size_t size;
            if (!next(text, size)) return -1;
            if (kept_ == rows_ || (mask_[i >> 6] >> (i & 63) & 1)) total += size;
        }
        return total;
    }

    // Read the header of a page, and pass the page.
    bool next_header(PageHeader &page) {
        for (int64_t n = HEADER_BYTES;; n *= 16) {
            const uint8_t *const in = bytes_.header(at_, std::min(n, bytes_.size() - at_), is_passed_);
            if (!in) return false;
            const int64_t held = bytes_.held(at_);
            PageHeaderReader thrift(in, in + held);
            if (thrift.page_header(page)) {
                body_at_ = at_ + (thrift.position() - in);
                if (page.compressed > bytes_.size() - body_at_ || page.uncompressed > INT32_MAX) return false;
                at_ = body_at_ + page.compressed;
                return true;
            }
            // it may be longer
            if (held >= bytes_.size() - at_ || n >= MOST_HEADER_BYTES) return false;
            page = PageHeader();
        }
    }

    // Return the bytes of the page that the header at hand specifies, nullptr, with the reason, if they can't be used.
    const uint8_t *body_of(const PageHeader &page, Status &reason) {
        const uint8_t *const body = bytes_.from(body_at_, page.compressed);
        reason = UNSUPPORTED;
        if (!body || !page.has_checksum || !checks_pages()) return body;
        if (crc32_of_page(body, page.compressed) == static_cast<uint32_t>(page.checksum)) return body;
        reason = BAD_CHECKSUM;
        return nullptr;
    }

    Status read_dictionary(const PageHeader &page) {
        Status reason;
        const uint8_t *const body = body_of(page, reason);
        return body ? dictionary_page(page, body) : reason;
    }

    // Find which of the page's rows are kept.
    Status find_kept() {
        kept_ = rows_;
        const int64_t first = done_ - rows_ - first_, end = stop_ - first_;
        const bool is_within = first >= 0 && first + rows_ <= end;
        if (!keep_ && is_within) return PAGE;
        if (is_within && first % 64 == 0) {
            mask_ = keep_ + first / 64;
        } else {
            uint64_t *const words = reinterpret_cast<uint64_t *>(space_.mask.room((rows_ + 63) / 64 * 8));
            if (!words) return NO_MEMORY;
            // rows of a long page that are before or behind the stretch are not looked at one word after the other
            const int64_t begin = first < 0 ? -first / 64 * 64 : 0, stop = std::min(rows_, end - first);
            std::memset(words, 0, (rows_ + 63) / 64 * 8);
            for (int64_t i = begin; i < stop; i += 64) words[i / 64] = kept_from(first + i, end);
            mask_ = words;
        }
        kept_ = mask_count(mask_, rows_);
        // room was made for so many: a mask that somebody writes to meanwhile must not lead beyond it
        if (kept_ > kept_left_) return UNSUPPORTED;
        kept_left_ -= kept_;
        return PAGE;
    }

    // Return which of the 64 rows from one of the stretch's on are kept; those before and behind the stretch are not.
    uint64_t kept_from(int64_t first, int64_t end) const {
        if (first >= end || first <= -64) return 0;
        const int64_t left_out = first < 0 ? -first : 0, at = first + left_out;
        const uint64_t all = end - at < 64 ? (UINT64_C(1) << (end - at)) - 1 : ~UINT64_C(0);
        return (keep_ ? bits_from(reinterpret_cast<const uint8_t *>(keep_), at, end) : all) << left_out;
    }

    // Return the plain bytes of (a part of) a page's body, nullptr if they can't be had.
    const uint8_t *plain(const uint8_t *body, int64_t size, int64_t uncompressed, bool compressed, Scratch &scratch) {
        if (!compressed || codec_ == UNCOMPRESSED) return size == uncompressed ? body : nullptr;
        if (!size && !uncompressed) return body;  // a page of nulls alone
        uint8_t *const out = scratch.room(uncompressed);
        if (!out) return nullptr;
        const bool good = codec_ == SNAPPY ? (width_ ? snappy_decompress<false>(body, size, out, uncompressed)
                                                     : snappy_decompress<true>(body, size, out, uncompressed))
                          : codec_ == ZSTD ? space_.zstd->decompress(body, size, out, uncompressed)
                          : codec_ == LZ4  ? lz4_decompress(body, size, out, uncompressed)
                          // of other forms than writers use, and damaged, by a complete reader
                          : codec_ == GZIP ? gunzip(body, size, out, uncompressed) || decompress_foreign(body, size, out, uncompressed)
                                           : decompress_foreign(body, size, out, uncompressed);
        return good ? out : nullptr;
    }

    bool decompress_foreign(const uint8_t *body, int64_t size, uint8_t *out, int64_t uncompressed) {
        return space_.decompress && space_.decompress(space_.codec, body, size, out, uncompressed);
    }

    enum : int64_t { BIG_DICTIONARY = 1 << 20 };

    Status dictionary_page(const PageHeader &page, const uint8_t *body) {
        if (dictionary_ || (page.encoding != PLAIN && page.encoding != PLAIN_DICTIONARY)) return UNSUPPORTED;
        const int64_t count = page.num_values;
        // strings are moved to where they begin in turn: within their block, if a second one would take long to fill
        const bool is_moved = !width_ && page.uncompressed >= BIG_DICTIONARY;
        Scratch &block = is_moved ? space_.dictionary : space_.dictionary_page;
        const uint8_t *const in = plain(body, page.compressed, page.uncompressed, true, block);
        if (count < 0 || count > INT32_MAX / 8 || !in) return UNSUPPORTED;
        if (width_) {
            if (layout_.is_bits() || page.uncompressed != count * layout_.page_bytes() || !are_in_range(in, count)) return UNSUPPORTED;
            // values are read as numbers: where they lie has to be aligned
            uint8_t *const aligned = space_.dictionary.room(count * width_);
            if (!aligned) return NO_MEMORY;
            if (layout_.is_converted()) convert_values(layout_, in, nullptr, count, aligned);
            else std::memcpy(aligned, in, page.uncompressed);
            dictionary_ = aligned;
        } else {
            if (page.uncompressed < 4 * count) return UNSUPPORTED;
            uint8_t *const text = space_.dictionary.room(page.uncompressed);
            int32_t *const ends = reinterpret_cast<int32_t *>(space_.dictionary_ends.room((count + 1) * sizeof(int32_t)));
            if (!text || !ends) return NO_MEMORY;
            const uint8_t *p = in, *const end = in + page.uncompressed;
            int64_t used = 0;
            ends[0] = 0;
            for (int64_t i = 0; i < count; i++) {
                if (end - p < 4) return UNSUPPORTED;
                const uint32_t size = load<uint32_t>(p);
                p += 4;
                if (size > static_cast<uint64_t>(end - p)) return UNSUPPORTED;
                if (is_moved) std::memmove(text + used, p, size);
                else copy_blocks(text + used, p, size);
                p += size;
                used += size;
                ends[i + 1] = static_cast<int32_t>(used);
            }
            dictionary_ = text;
            dictionary_offsets_ = ends;
            dictionary_bytes_ = used;
        }
        dictionary_length_ = count;
        return has_value_test_ ? match_dictionary() : PAGE;
    }

    // Test each distinct value once.
    Status match_dictionary() {
        matches_ = space_.matches.room(dictionary_length_);
        if (!matches_) return NO_MEMORY;
        if (width_) {
            mark_values(dictionary_, dictionary_length_, width_, *test_, matches_);
        } else {
            for (int64_t i = 0; i < dictionary_length_; i++) {
                const int32_t start = dictionary_offsets_[i];
                matches_[i] = test_->passes(dictionary_ + start, dictionary_offsets_[i + 1] - start);
            }
        }
        const void *const first = std::memchr(matches_, 1, dictionary_length_);
        has_match_ = first != nullptr;
        only_match_ = NO_CODE;
        if (first) {
            const int64_t at = static_cast<const uint8_t *>(first) - matches_;
            if (!std::memchr(matches_ + at + 1, 1, dictionary_length_ - at - 1)) only_match_ = static_cast<uint32_t>(at);
        }
        return PAGE;
    }

    // Keep those of the page's rows that pass.
    Status narrow() {
        const int64_t words = (rows_ + 63) / 64;
        // bits for the rows and for the values, and a flag for each value, in whole words
        uint8_t *const room = space_.passing.room(2 * 8 * words + 64 * words);
        if (!room) return NO_MEMORY;
        uint64_t *const bits = reinterpret_cast<uint64_t *>(room), *const dense = bits + words;
        if (!has_value_test_) {
            const uint64_t flipped = test_->kind == HAS_VALUE ? 0 : ~UINT64_C(0);
            for (int64_t w = 0; w < words; w++) bits[w] = (values_ == rows_ ? ~UINT64_C(0) : valid_[w]) ^ flipped;
        } else {
            const bool has_nulls = values_ < rows_;
            if (!mark_page(room + 2 * 8 * words, has_nulls ? dense : bits)) return UNSUPPORTED;
            if (has_nulls) mask_narrow(valid_, rows_, dense, values_, bits);
            for (int64_t w = 0; has_nulls && test_->with_null && w < words; w++) bits[w] |= ~valid_[w];
        }
        for (int64_t w = 0; w < words; w++) bits[w] &= mask_of(w);
        mask_ = bits;
        kept_ = mask_count(bits, rows_);
        or_bits(passed_, done_ - rows_, bits, rows_);
        return PAGE;
    }

    // Set a bit for each of the page's values that passes; false if the page is damaged. `flags` has a byte for each.
    bool mark_page(uint8_t *flags, uint64_t *bits) {
        if (codes_) {
            const uint32_t *const code = codes(), only = only_match_;
            // of a single value that passes codes are compared, many at a time
            if (only != NO_CODE) {
                for (int64_t i = 0; i < values_; i++) flags[i] = code[i] == only;
            } else {
                for (int64_t i = 0; i < values_; i++) flags[i] = matches_[code[i]];
            }
        } else if (layout_.is_bits()) {
            mark_booleans(bits);
            return true;
        } else if (layout_.is_converted()) {
            mark_converted(flags);
        } else if (width_) {
            if (end_of_values_ - values_at_ != values_ * width_) return false;
            mark_values(values_at_, values_, width_, *test_, flags);
        } else if (!mark_texts(values_at_, end_of_values_, values_, *test_, flags)) {
            return false;
        }
        const int64_t words = (values_ + 63) / 64;
        std::memset(flags + values_, 0, 64 * words - values_);
        for (int64_t w = 0; w < words; w++) {
            uint64_t word = 0;
            for (int i = 0; i < 8; i++) word |= (load<uint64_t>(flags + 64 * w + 8 * i) * 0x0102040810204080u >> 56) << 8 * i;
            bits[w] = word;
        }
        return true;
    }

    // The same of booleans: each of both values is tested once.
    void mark_booleans(uint64_t *bits) const {
        alignas(8) static const uint8_t BOTH[16] = {0, 1};  // of a size that a compiler accepts for every width
        uint8_t passing[2];
        mark_values(BOTH, 2, 1, *test_, passing);
        const uint64_t of_false = passing[0] ? ~UINT64_C(0) : 0, of_true = passing[1] ? ~UINT64_C(0) : 0;
        for (int64_t w = 0; 64 * w < values_; w++) {
            const uint64_t word = load<uint64_t>(values_at_ + 8 * w);
            bits[w] = (word & of_true) | (~word & of_false);
        }
        if (values_ % 64) bits[values_ / 64] &= (UINT64_C(1) << values_ % 64) - 1;
    }

    // The same of numbers that are not stored as they lie in memory.
    void mark_converted(uint8_t *flags) const {
        enum : int64_t { BLOCK = 512 };  // stays in a core's cache
        alignas(Wide) uint8_t block[BLOCK * sizeof(Wide)];
        const int bytes = layout_.page_bytes();
        const ValueLayout layout{width_ > 8 && bytes <= 8 ? 8 : width_, layout_.stored};
        for (int64_t i = 0; i < values_; i += BLOCK) {
            const int64_t n = std::min<int64_t>(BLOCK, values_ - i);
            convert_values(layout, values_at_ + i * bytes, nullptr, n, block);
            mark_values(block, n, layout.width, *test_, flags + i);
        }
    }

    // Whether numbers that are stored in more bytes than they have in memory fit into these.
    bool are_in_range(const uint8_t *in, int64_t n) const { return !layout_.is_converted() || width_ > 2 || fit_into(in, n, width_); }

    uint64_t mask_of(int64_t word) const { return keep_ ? mask_[word] : ~UINT64_C(0); }

    Status data_page(const PageHeader &page, const uint8_t *body) {
        const uint8_t *in, *end, *levels_at = nullptr, *levels_end = nullptr;
        if (is_of_levels_ && !most_) return count_values(nullptr, nullptr);
        if (page.type == DATA_PAGE_V2) {
            if (page.repetition_bytes != 0 || page.definition_bytes < 0 || page.definition_bytes > page.compressed ||
                page.definition_bytes > page.uncompressed || (most_ == 0 && page.definition_bytes)) return UNSUPPORTED;
            levels_at = body;
            levels_end = body + page.definition_bytes;
            if (is_of_levels_) return count_values(levels_at, levels_end);
            const int64_t size = page.uncompressed - page.definition_bytes;
            in = plain(levels_end, page.compressed - page.definition_bytes, size, page.is_compressed, space_.page);
            if (!in) return UNSUPPORTED;
            end = in + size;
        } else {
            int64_t size_of_page = page.uncompressed;
            in = is_of_levels_ ? plain_levels(page, body, size_of_page) : plain(body, page.compressed, page.uncompressed, true, space_.page);
            if (!in) return UNSUPPORTED;
            end = in + size_of_page;
            if (most_) {
                if (page.level_encoding != RLE || end - in < 4) return UNSUPPORTED;
                const uint32_t size = load<uint32_t>(in);
                in += 4;
                if (size > static_cast<uint64_t>(end - in)) return UNSUPPORTED;
                levels_at = in;
                levels_end = in += size;
            }
        }
        Status status = count_values(levels_at, levels_end);
        return status == PAGE && !is_of_levels_ ? find_values(page, in, end) : status;
    }

    // Return the plain bytes of a page of version 1 up to the end of its levels, or all of them; `size` is how many these are.
    const uint8_t *plain_levels(const PageHeader &page, const uint8_t *body, int64_t &size) {
        if (codec_ != SNAPPY || page.uncompressed < 4) return plain(body, page.compressed, size, true, space_.page);
        uint8_t *const out = space_.page.room(size);
        if (!out || !snappy_prefix(body, page.compressed, out, page.uncompressed, 4)) return nullptr;
        size = 4 + static_cast<int64_t>(load<uint32_t>(out));
        return size <= page.uncompressed && snappy_prefix(body, page.compressed, out, page.uncompressed, size) ? out : nullptr;
    }

    // Read the definition levels, if not all are the same, and count the rows that have a value.
    Status count_values(const uint8_t *in, const uint8_t *end) {
        values_ = rows_;
        if (!most_) return PAGE;
        const int width = bit_width(most_);
        const uint32_t most = most_;
        uint32_t level;
        if (is_one_run(in, end, width, rows_, level) && level == most) return PAGE;
        const size_t size = (rows_ + 63) / 64 * 8;
        uint8_t *const bits = space_.valid.room(size);
        if (!bits) return NO_MEMORY;
        std::memset(bits, 0, size + SLACK);
        if (width == 1) {
            if (!decode_bits(in, end, rows_, bits)) return UNSUPPORTED;
        } else {
            uint32_t *const found = reinterpret_cast<uint32_t *>(space_.levels.room(rows_ * sizeof(uint32_t)));
            if (!found) return NO_MEMORY;
            if (!decode_runs(in, end, width, rows_, found)) return UNSUPPORTED;
            int64_t above = 0;
            for (int64_t i = 0; i < rows_; i++) {
                bits[i >> 3] |= static_cast<uint8_t>((found[i] == most) << (i & 7));
                above += found[i] > most;
            }
            if (above) return UNSUPPORTED;
        }
        valid_ = reinterpret_cast<const uint64_t *>(bits);
        values_ = mask_count(valid_, rows_);
        return PAGE;
    }

    Status find_values(const PageHeader &page, const uint8_t *in, const uint8_t *end) {
        values_at_ = in;
        end_of_values_ = end;
        codes_ = is_coded(page);
        if (!codes_) {
            if (layout_.is_bits()) return find_booleans(page, in, end);
            if (page.encoding != PLAIN) {
                const Status status = make_plain(page.encoding, in, end);
                if (status != PAGE) return status;
                in = values_at_;
                end = end_of_values_;
            }
            if (!layout_.is_converted()) return width_ || end - in >= 4 * values_ ? PAGE : UNSUPPORTED;
            return end - in == values_ * layout_.page_bytes() && are_in_range(in, values_) ? PAGE : UNSUPPORTED;
        }
        if (layout_.is_bits()) return UNSUPPORTED;
        code_scratch_ = space_.codes.room(rows_ * sizeof(uint32_t));
        if (!code_scratch_) return NO_MEMORY;
        if (!values_) return PAGE;
        if (!dictionary_ || in >= end || *in > 32) return UNSUPPORTED;
        if (!decode_runs(in + 1, end, *in, values_, codes())) return UNSUPPORTED;
        return are_below(codes(), values_, dictionary_length_) ? PAGE : UNSUPPORTED;
    }

    // Bytes of the texts that a page of DELTA_BYTE_ARRAY may have.
    enum : int64_t { MOST_PAGE_TEXT = int64_t(64) << 20 };

    // Decode values of another encoding into PLAIN ones.
    Status make_plain(int64_t encoding, const uint8_t *in, const uint8_t *end) {
        values_at_ = end_of_values_ = end;
        if (!values_) return PAGE;
        if (encoding == DELTA_LENGTH_BYTE_ARRAY && !width_) return join_texts(nullptr, in, end);
        const int bytes = layout_.page_bytes();
        if (encoding == DELTA_BYTE_ARRAY && (!width_ || layout_.stored < 0)) {
            uint8_t *const prefixes = space_.spread.room(values_ * sizeof(uint32_t));
            if (!prefixes) return NO_MEMORY;
            return decode_deltas<uint32_t>(in, end, values_, prefixes) ? join_texts(reinterpret_cast<uint32_t *>(prefixes), in, end) : UNSUPPORTED;
        }
        const bool is_split = encoding == BYTE_STREAM_SPLIT && width_, is_delta = encoding == DELTA_BINARY_PACKED && layout_.is_integer();
        if (!is_split && !is_delta) return UNSUPPORTED;
        if (is_split && end - in != values_ * bytes) return UNSUPPORTED;
        uint8_t *const out = space_.codes.room(values_ * bytes);
        if (!out) return NO_MEMORY;
        if (is_split) join_streams(in, values_, bytes, out);
        else if (!(bytes == 4 ? decode_deltas<uint32_t>(in, end, values_, out) : decode_deltas<uint64_t>(in, end, values_, out))) return UNSUPPORTED;
        if (is_delta && in != end) return UNSUPPORTED;
        values_at_ = out;
        end_of_values_ = out + values_ * bytes;
        return PAGE;
    }

    // Write texts whose lengths come before all of their bytes, each behind what it begins with of the one before, if
    // `prefixes` specifies how much that is; of numbers, which all have the same length, without it.
    Status join_texts(const uint32_t *prefixes, const uint8_t *in, const uint8_t *end) {
        uint8_t *const room = space_.looked_up.room(values_ * sizeof(uint32_t));
        if (!room) return NO_MEMORY;
        if (!decode_deltas<uint32_t>(in, end, values_, room)) return UNSUPPORTED;
        const uint32_t *const lengths = reinterpret_cast<const uint32_t *>(room);
        int64_t taken = 0, total = 0, before = 0;
        for (int64_t i = 0; i < values_; i++) {
            const int64_t prefix = prefixes ? prefixes[i] : 0;
            if (prefix > before || lengths[i] > end - in - taken) return UNSUPPORTED;
            taken += lengths[i];
            before = prefix + lengths[i];
            if (width_ && before != layout_.page_bytes()) return UNSUPPORTED;
            total += before;
            if (prefixes && total > MOST_PAGE_TEXT) return UNSUPPORTED;
        }
        if (taken != end - in) return UNSUPPORTED;
        total += width_ ? 0 : 4 * values_;
        uint8_t *out = space_.codes.room(total);
        if (!out) return NO_MEMORY;
        values_at_ = out;
        end_of_values_ = out + total;
        const uint8_t *last = out;
        for (int64_t i = 0; i < values_; i++) {
            const uint32_t prefix = prefixes ? prefixes[i] : 0, size = prefix + lengths[i];
            if (!width_) {
                std::memcpy(out, &size, 4);
                out += 4;
            }
            if (prefix) std::memcpy(out, last, prefix);
            copy_blocks(out + prefix, in, lengths[i]);
            in += lengths[i];
            last = out;
            out += size;
        }
        return PAGE;
    }

    // Find the page's booleans, one bit for each, in whole words.
    Status find_booleans(const PageHeader &page, const uint8_t *in, const uint8_t *end) {
        const size_t size = (values_ + 63) / 64 * 8;
        uint8_t *const bits = space_.codes.room(size);
        if (!bits) return NO_MEMORY;
        values_at_ = bits;
        end_of_values_ = bits + size;
        if (!values_) return PAGE;
        std::memset(bits, 0, size + SLACK);
        if (page.encoding == PLAIN) {
            if (end - in != (values_ + 7) / 8) return UNSUPPORTED;
            std::memcpy(bits, in, end - in);
            return PAGE;
        }
        if (page.encoding != RLE || end - in < 4 || load<uint32_t>(in) != static_cast<uint64_t>(end - in - 4)) return UNSUPPORTED;
        return decode_bits(in + 4, end, values_, bits) ? PAGE : UNSUPPORTED;
    }

    // A page header has no more bytes than the first number, as a rule, and never more than the second.
    enum : int64_t { HEADER_BYTES = 256, MOST_HEADER_BYTES = 16 << 20 };

    Workspace &space_;
    ChunkBytes bytes_;
    const int codec_;
    const ValueLayout layout_;
    const int width_, most_;
    const int64_t num_rows_;
    const Test *const test_;
    uint64_t *const passed_;
    const bool has_value_test_, is_of_levels_;  // whether values are tested; whether levels are all that is read
    // the rows of the stretch; the mask of them has room for `kept_left_` more
    const uint64_t *keep_;
    int64_t first_ = 0, stop_, kept_left_;
    // how many rows are passed, and where the next page begins
    int64_t done_ = 0, at_ = 0;
    // the page at hand
    PageHeader page_;
    int64_t page_at_ = 0, body_at_ = 0;
    int64_t met_end_ = 0, decoded_end_ = 0;  // behind the last page that was counted
    bool is_again_ = false, is_decoded_ = false, is_passed_ = false;
    int64_t rows_ = 0, values_ = 0, kept_ = 0;
    const uint64_t *mask_ = nullptr;
    bool codes_ = false;
    const uint8_t *values_at_ = nullptr, *end_of_values_ = nullptr;
    uint8_t *code_scratch_ = nullptr;
    const uint64_t *valid_ = nullptr;  // which rows have a value, if not all do
    // the dictionary
    const uint8_t *dictionary_ = nullptr;
    const int32_t *dictionary_offsets_ = nullptr;
    int64_t dictionary_length_ = 0, dictionary_bytes_ = 0, dictionary_at_ = -1;
    uint8_t *matches_ = nullptr;  // for each of its values whether it passes
    enum : uint32_t { NO_CODE = 0xffffffff };
    bool has_match_ = false;
    uint32_t only_match_ = NO_CODE;  // the only code of a value that passes
};

// Return how many values the data pages of a chunk have by their headers, up to the page that has the last of `num_values`;
// fewer if the headers that follow are not understood. Nothing else of the pages is read.
inline int64_t count_page_values(Workspace &space, const Source &source, int64_t offset, int64_t size, int64_t num_values) {
    enum : int64_t { HEADER_BYTES = 256, MOST_HEADER_BYTES = 1 << 20, HEADERS_BYTES = 4 << 10 };
    ChunkBytes bytes(space.chunk, source, offset, size, HEADERS_BYTES);
    int64_t found = 0;
    for (int64_t at = 0, n = HEADER_BYTES; found < num_values;) {
        const uint8_t *const in = bytes.from(at, std::min(n, size - at));
        if (!in) return found;
        const int64_t held = bytes.held(at);
        PageHeaderReader thrift(in, in + held);
        PageHeader page;
        if (!thrift.page_header(page)) {
            // it may be longer
            if (held >= size - at || n >= MOST_HEADER_BYTES) return found;
            n *= 16;
            continue;
        }
        if ((page.type == DATA_PAGE || page.type == DATA_PAGE_V2) && page.num_values > 0) found += page.num_values;
        at += thrift.position() - in;
        if (page.compressed > size - at) return found;
        at += page.compressed;
        n = HEADER_BYTES;
    }
    return found;
}

// --- a whole chunk ---

struct Rows {
    int64_t nulls = 0, kept = 0;
    // Rows are written from the first page with a value on: a column of nulls alone takes no time and no memory.
    bool is_written = false;
};

// Whether nothing is written of the page and those before, which hold nulls alone; they are counted.
inline bool pass_nulls(const ChunkReader &reader, const uint8_t *bits, Rows &rows) {
    if (rows.is_written || !bits || reader.nulls() < reader.rows()) return false;
    rows.nulls = rows.kept += reader.kept();
    return true;
}

// Write the rows that were passed; `row_bytes` is 0 where the caller writes all of them.
inline void begin_rows(Rows &rows, uint8_t *out, int64_t row_bytes, uint8_t *bits, int64_t num_kept) {
    if (rows.is_written) return;
    rows.is_written = true;
    if (!rows.kept) return;
    std::memset(out, 0, rows.kept * row_bytes);
    std::memset(bits, 0, (num_kept + 7) / 8);
}

// Append which of the page's kept rows are null. `bits`, for all kept rows, may be nullptr if nothing is null.
inline bool count_page(ChunkReader &reader, uint8_t *bits, int64_t num_kept, Rows &rows) {
    if (bits && !reader.append_validity(bits, rows.kept, rows.nulls, num_kept)) return false;
    rows.kept += reader.kept();
    return true;
}

// Read every page of a chunk of numbers, or of a stretch of it. `out` is nullptr if rows are only tested, of strings too.
inline Status read_values(ChunkReader &reader, const ValueLayout &layout, int64_t num_kept, uint8_t *out, uint8_t *bits, Rows &rows) {
    Status status;
    while ((status = reader.next_page()) == PAGE) {
        if (out && pass_nulls(reader, bits, rows)) continue;
        if (out && !rows.is_written && layout.is_bits()) std::memset(out, 0, layout.bytes_of(num_kept));
        if (out) begin_rows(rows, out, layout.is_bits() ? 0 : layout.width, bits, num_kept);
        if (out && !reader.append_fixed(out, rows.kept)) return UNSUPPORTED;
        if (!count_page(reader, bits, num_kept, rows)) return NO_MEMORY;
    }
    return status;
}

// Read every page of a chunk of strings as codes.
inline Status read_codes(ChunkReader &reader, int64_t num_kept, uint8_t *out, uint8_t *bits, Rows &rows) {
    Status status;
    while ((status = reader.next_page()) == PAGE) {
        if (pass_nulls(reader, bits, rows)) continue;
        begin_rows(rows, out, sizeof(uint32_t), bits, num_kept);
        if (!reader.is_coded() || !reader.append_codes(out + rows.kept * sizeof(uint32_t))) return UNSUPPORTED;
        if (!count_page(reader, bits, num_kept, rows)) return NO_MEMORY;
    }
    return status;
}

// Room for so many bytes of strings of a page may be made in vain.
enum : int64_t { MOST_SPARE = 2 << 20 };

// Read pages of strings while there is room; PAGE if the page at hand, of `more` bytes, needs some; of a damaged one -1.
inline Status read_text(ChunkReader &reader, int64_t num_kept, int32_t *ends, uint8_t *data, int64_t room, uint8_t *bits,
                        Rows &rows, int64_t &used, int64_t &more, bool has_page) {
    Status status = PAGE;
    while (has_page || (status = reader.next_page()) == PAGE) {
        if (!has_page) {
            if (pass_nulls(reader, bits, rows)) continue;
            begin_rows(rows, reinterpret_cast<uint8_t *>(ends + 1), sizeof(int32_t), bits, num_kept);
            more = reader.text_bytes();
            // of a long page, room is made for what is kept of it
            if (used + more > room && more > MOST_SPARE && reader.kept() < reader.rows()) more = reader.kept_text_bytes();
            if (more < 0 || used + more > room) return PAGE;
        }
        has_page = false;
        const int64_t end = reader.append_text(ends + rows.kept, data, used);
        if (end < 0) return UNSUPPORTED;
        used = end;
        if (!count_page(reader, bits, num_kept, rows)) return NO_MEMORY;
    }
    return status;
}

// --- several chunks of a row group ---

// Strings whose size is not known beforehand.
class Text {
   public:
    Text() = default;
    Text(const Text &) = delete;
    Text &operator=(const Text &) = delete;
    ~Text() { std::free(data_); }
    uint8_t *data() const { return data_; }
    int64_t room() const { return room_; }
    // Make room, and copy the `used` bytes that are at `from`, which may be in the old room.
    bool grow(int64_t room, const uint8_t *from, int64_t used) {
        uint8_t *const data = static_cast<uint8_t *>(std::malloc(room + SLACK));
        if (!data) return false;
        if (used) std::memcpy(data, from, used);
        std::free(data_);
        data_ = data;
        room_ = room;
        return true;
    }
    // Leave the first bytes to the caller, who frees them.
    uint8_t *release(int64_t used) {
        uint8_t *const data = data_, *const cut = static_cast<uint8_t *>(std::realloc(data, used + SLACK));
        data_ = nullptr;
        room_ = 0;
        return cut ? cut : data;
    }

   private:
    uint8_t *data_ = nullptr;
    int64_t room_ = 0;
};

enum Form { NUMBERS = 0, STRINGS = 1, CODES = 2 };

// One chunk to decode. Room for the kept rows is the caller's: of their numbers or codes, or of the ends of their strings
// and one more; of their bits, if one may be null; and of `room` bytes of strings.
struct ChunkJob {
    int64_t offset = 0, size = 0;
    int codec = UNCOMPRESSED, most_level = 0, form = NUMBERS;
    ValueLayout layout;
    void *decompressor = nullptr;
    uint8_t *out = nullptr, *bits = nullptr, *text = nullptr;
    int64_t room = 0;
    // only the rows that pass, with a bit set in `passed` for each; without `out` these alone
    const Test *test = nullptr;
    uint64_t *passed = nullptr;
    // what came of it
    Status status = UNSUPPORTED;
    int64_t nulls = 0, used = 0, kept = 0;
    bool is_null = false;  // each row is, and `out` and `bits` are not written
    Text grown;  // the strings, if they outgrew their room; of codes the dictionary's
    Text ends;   // of codes: where the dictionary's strings end, `length` + 1 numbers
    int64_t length = 0;
};

// Read every page of a chunk of strings, behind those of the rows that were read before.
inline Status read_strings(ChunkReader &reader, int64_t num_kept, int64_t most_text, ChunkJob &job, Rows &rows) {
    int32_t *const ends = reinterpret_cast<int32_t *>(job.out);
    if (!job.text && !job.grown.data() && !job.grown.grow(0, nullptr, 0)) return NO_MEMORY;
    const bool is_grown = job.grown.data() != nullptr;
    uint8_t *data = is_grown ? job.grown.data() : job.text;
    int64_t room = is_grown ? job.grown.room() : job.room, more = 0;
    bool has_page = false;
    Status status;
    if (!rows.kept) ends[0] = 0;
    while ((status = read_text(reader, num_kept, ends, data, room, job.bits, rows, job.used, more, has_page)) == PAGE) {
        if (more < 0 || job.used + more > most_text) return UNSUPPORTED;
        room = job.used ? 2 * (job.used + more) : more;
        if (!job.grown.grow(room, data, job.used)) return NO_MEMORY;
        data = job.grown.data();
        has_page = true;
    }
    return status;
}

inline Status keep_dictionary(const ChunkReader &reader, ChunkJob &job) {
    job.length = reader.dictionary_length();
    job.used = reader.dictionary_bytes();
    if (!job.length) return DONE;
    const uint8_t *const ends = reinterpret_cast<const uint8_t *>(reader.dictionary_offsets());
    const int64_t size = (job.length + 1) * static_cast<int64_t>(sizeof(int32_t));
    return job.ends.grow(size, ends, size) && job.grown.grow(job.used, reader.dictionary_data(), job.used) ? DONE : NO_MEMORY;
}

// Decode the rows of a reader's stretch; as many of them are kept.
inline void read_rows(ChunkReader &reader, int64_t stop, int64_t num_kept, int64_t most_text, ChunkJob &job) {
    Rows rows;
    Status status = job.form == NUMBERS ? read_values(reader, job.layout, num_kept, job.out, job.bits, rows)
                    : job.form == CODES ? read_codes(reader, num_kept, job.out, job.bits, rows)
                                        : read_strings(reader, num_kept, most_text, job, rows);
    if (status == DONE && (reader.done() < stop || (!job.test && rows.kept != num_kept))) status = UNSUPPORTED;
    job.kept = rows.kept;
    job.nulls = rows.nulls;
    job.is_null = rows.kept && rows.nulls == rows.kept && !rows.is_written;
    job.status = status;
}

// Decode a chunk, or the rows of it that a mask keeps.
inline void run_job(Workspace &space, const Source &source, int64_t num_rows, const uint64_t *keep, int64_t num_kept,
                    int64_t most_text, ChunkJob &job) {
    space.codec = job.decompressor;
    ChunkReader reader(space, ChunkBytes(space.chunk, source, job.offset, job.size, WINDOW_BYTES), job.codec, job.layout,
                       job.most_level, num_rows, keep, num_kept, job.test, job.passed, job.out != nullptr);
    read_rows(reader, num_rows, num_kept, most_text, job);
    if (job.status == DONE && job.form == CODES) job.status = keep_dictionary(reader, job);
}

// A chunk that is decoded behind others.
struct ChunkPart {
    int64_t offset = 0, size = 0, num_rows = 0;
    int codec = UNCOMPRESSED, most_level = 0;
    void *decompressor = nullptr;
};

// Decode chunks of neighbouring row groups, one behind the other, as one: numbers, or strings that are not requested as codes.
inline void run_joined(Workspace &space, const Source &source, const ChunkPart *parts, int64_t count, int64_t num_rows,
                       int64_t most_text, ChunkJob &job) {
    Rows rows;
    int64_t stop = 0;
    job.status = UNSUPPORTED;
    if (job.form == CODES) return;
    for (int64_t i = 0; i < count; i++) {
        const ChunkPart &part = parts[i];
        space.codec = part.decompressor;
        ChunkReader reader(space, ChunkBytes(space.chunk, source, part.offset, part.size, WINDOW_BYTES), part.codec, job.layout,
                           part.most_level, part.num_rows, nullptr, part.num_rows);
        const Status status = job.form == NUMBERS ? read_values(reader, job.layout, num_rows, job.out, job.bits, rows)
                                                  : read_strings(reader, num_rows, most_text, job, rows);
        stop += part.num_rows;
        job.status = status == DONE && rows.kept != stop ? UNSUPPORTED : status;
        if (job.status != DONE) return;
    }
    job.kept = rows.kept;
    job.nulls = rows.nulls;
    job.is_null = rows.kept && rows.nulls == rows.kept && !rows.is_written;
}

inline void run_jobs(Workspace &space, const Source &source, int64_t num_rows, const uint64_t *keep, int64_t num_kept,
                     int64_t most_text, ChunkJob *jobs, int64_t count) {
    for (int64_t i = 0; i < count; i++) run_job(space, source, num_rows, keep, num_kept, most_text, jobs[i]);
}

// --- chunks in stretches ---

// Which of some chunks keeps a dictionary however big it is: to read it again for each stretch takes much longer, and it is
// in memory with its page anyway while it is read.
struct BigDictionary {
    const void *owner = nullptr;
};

// What a chunk that is decoded one stretch of its rows after the other keeps in between.
class KeptSpace {
   protected:
    KeptSpace(void *decompressor, int64_t most_kept, BigDictionary *big = nullptr)
        : decompressor_(decompressor), most_kept_(most_kept), big_(big) {}

    // Decompress pages as in another workspace, and count them there.
    void work_like(const Workspace &space) {
        space_.decompress = space.decompress;
        space_.codec = decompressor_;
        space_.zstd = space.zstd;
        space_.pages = space.pages;
    }

    bool keeps_dictionary() const {
        return static_cast<int64_t>(space_.dictionary_size()) <= most_kept_ || (big_ && (!big_->owner || big_->owner == this));
    }
    bool keeps_page() const { return static_cast<int64_t>(space_.page_size()) <= most_kept_; }

    template <class Reader>
    void drop_big_dictionary(Reader &reader) {
        if (keeps_dictionary()) {
            if (static_cast<int64_t>(space_.dictionary_size()) > most_kept_) big_->owner = this;
            return;
        }
        reader.drop_dictionary();
        space_.dictionary.release();
        space_.dictionary_ends.release();
    }

    Workspace space_;

   private:
    void *const decompressor_;
    const int64_t most_kept_;
    BigDictionary *const big_;
};

// A chunk that is decoded one stretch of its rows after the other.
class ChunkStream : private KeptSpace {
   public:
    // `job` specifies the chunk. Of a page that has rows of two stretches, and of the dictionary, no more than `most_kept`
    // bytes each stay in memory in between.
    ChunkStream(const Source &source, const ChunkJob &job, int64_t num_rows, int64_t window, int64_t most_kept,
                BigDictionary *big = nullptr)
        : KeptSpace(job.decompressor, most_kept, big),
          reader_(space_, ChunkBytes(space_.chunk, source, job.offset, job.size, window), job.codec, job.layout, job.most_level,
                  num_rows, nullptr, 0) {}

    // Decode the rows from `first`, behind those before, up to `stop`; `keep` is a mask of these.
    void run(Workspace &space, int64_t first, int64_t stop, const uint64_t *keep, int64_t num_kept, int64_t most_text,
             bool with_dictionary, ChunkJob &job) {
        if (!has_page_) space_.swap_page(space);
        work_like(space);
        const Status status = reader_.begin(first, stop, keep, num_kept);
        if (status == PAGE) read_rows(reader_, stop, num_kept, most_text, job);
        else job.status = status;
        if (job.status == DONE && with_dictionary) job.status = keep_dictionary(reader_, job);
        // to read the dictionary again would overwrite the page
        has_page_ = job.status == DONE && reader_.has_more_of_page() && keeps_dictionary() && keeps_page();
        if (!has_page_) {
            reader_.drop_page();
            space_.swap_page(space);
        }
        drop_big_dictionary(reader_);
    }

   private:
    ChunkReader reader_;
    bool has_page_ = false;
};

}  // namespace delta_parquet
