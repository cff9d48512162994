// Snappy blocks (format_description.txt of google/snappy).
#pragma once

#include <cstdint>
#include <cstring>

#include "memory/byte_copies.h"
#include "thrift.h"

namespace delta_parquet {

// The meaning of each tag byte. Bits 0 to 6 of `of`: the number of bytes to write (0: further bytes specify it, or a copy has
// a distance of 4 bytes); bits 8 to 10: the high bits of a short copy's distance. `behind`: the number of bytes between the
// tag and the next one.
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

// The most bytes that one step of `repeat_8` reads or writes; the number of written bytes after which it and `repeat_pairs`
// are tried again; and the number that they have to write to be tried again at once.
constexpr int64_t MOST_STEP = 16, LOOK_AGAIN = 1024, WORTH_IT = 64;

// Set a number to a value that it nearly always has already, so that dependent instructions do not wait for the load.
inline void expect(unsigned &guess, unsigned value) {
    if (guess != value) {
        guess = value;
        asm volatile("" : "+r"(guess));  // otherwise compilers remove the branch
    }
}

inline uint64_t rotate_right(uint64_t value, unsigned bits) { return value >> (bits & 63) | value << (-bits & 63); }

// Decompress consecutive units of one literal of `count` bytes and one copy, with a distance of 8, that fills it up to 8
// bytes: numbers with constant upper bytes. `last` contains the 8 bytes before `o`; nothing else is read back.
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

// Decompress alternating literals and copies of up to 8 bytes while each copy has a distance of 8: columns of numbers that
// resemble their neighbours. The 8 bytes are held in a register, because bytes written in parts can't be loaded before they
// have left the processor's store buffer. Precondition: at least 8 bytes precede `o`.
inline void repeat_8(const uint8_t *&in, const uint8_t *end, uint8_t *&o, const uint8_t *stop) {
    uint64_t last = load<uint64_t>(o - 8);
    unsigned kind = 0, repeated = 0, count = 0;
    for (bool at_copy = *in & 3; end - in >= MOST_STEP && stop - o >= MOST_STEP; at_copy = true) {
        if (at_copy) {
            const uint32_t copy = load<uint32_t>(in);
            expect(kind, copy & 3);
            expect(repeated, SNAPPY_TAGS.of[copy & 0xff] & 127);
            // the high bits of a short copy's distance are in its tag
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

// Decompress alternating literals and copies of up to 16 bytes, with any distances: numbers whose upper bytes occurred
// before. Lengths are predicted, so that the places of the next ones do not depend on a load.
inline void repeat_pairs(const uint8_t *&in, const uint8_t *end, const uint8_t *out, uint8_t *&o, const uint8_t *stop) {
    unsigned count = 0, copied = 0;
    while (end - in >= 2 * MOST_STEP && stop - o >= 2 * MOST_STEP) {
        const unsigned tag = *in;
        if (tag & 3 || tag >= 16 << 2) return;
        expect(count, (tag >> 2) + 1);
        const uint32_t copy = load<uint32_t>(in + 1 + count);
        const unsigned kind = copy & 3;
        expect(copied, SNAPPY_TAGS.of[copy & 0xff] & 127);
        // without a branch: processors can't predict whether a copy is near
        const uint32_t is_far = -(kind >> 1), is_near = is_far ^ ~0u;
        const size_t distance = (copy >> 8 & (0xff | (0xff00 & is_far))) | ((copy & 0xe0) << 3 & is_near);
        if (kind == 0 || kind == 3 || copied > 16 || distance < copied || distance > static_cast<size_t>(o - out) + count) return;
        if (distance == 8) return;  // `repeat_8` does not have to read back the bytes that were just written
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

// Try both. A separate function, so that the loop that calls it keeps its registers.
__attribute__((noinline)) static Places repeat(const uint8_t *in, const uint8_t *end, const uint8_t *out, uint8_t *o,
                                               const uint8_t *stop) {
    const uint8_t *const before = o;
    if (!(*in & 3)) repeat_pairs(in, end, out, o, stop);
    if (o - before < WORTH_IT && o - out >= 8 && in < end) repeat_8(in, end, o, stop);
    return {in, o};
}

// Decompress a block of `size` bytes. `is_text` selects the faster loop for texts, otherwise that for predictable data such
// as numbers; the results are the same.
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
            // a literal may follow a copy: tried once
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
                // processors can't predict whether a literal or a copy follows: no branch
                uint64_t copied = -static_cast<uint64_t>(kind != 0);
                asm("" : "+r"(copied));  // otherwise compilers make it a branch
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

// Decompress the first `enough` of `size` bytes; returns false if that is impossible. For levels, which are short: it copies
// byte by byte.
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

}  // namespace delta_parquet
