// Gzip (RFC 1952) of one member without extras, which is what writers of Parquet make: DEFLATE (RFC 1951) of bytes whose number
// is known. No allocation, no Python.
//
// Several symbols are decoded from 64 bits that are loaded at once, by tables that are made for each block; zlib, which serves
// streams, takes two to three times as long. Up to 16 bytes behind the input are read and behind the output written (SLACK).
// False is returned for whatever is damaged or has another form.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "memory/byte_copies.h"
#include "crc32.h"

namespace delta_parquet {

class Inflater {
   public:
    Inflater(const uint8_t *in, size_t n, uint8_t *out, size_t size) : in_(in), end_(in + n), begin_(out), out_(out), stop_(out + size) {}

    // Decompress blocks up to the last one; true if they have as many bytes as expected.
    bool run() {
        for (bool is_last = false; !is_last;) {
            if (!refill()) return false;
            is_last = bits(1);
            switch (bits(2)) {
                case 0:
                    if (!stored()) return false;
                    break;
                case 1:
                    if (!fixed() || !coded()) return false;
                    break;
                case 2:
                    if (!dynamic() || !coded()) return false;
                    break;
                default: return false;
            }
        }
        in_ -= loaded_ / 8;
        return in_ <= end_ && out_ == stop_;
    }

    // What is behind the last block.
    const uint8_t *position() const { return in_; }

   private:
    // An entry of a table has in its lowest byte how many bits its code and what follows it take, then how many the code
    // itself takes (4 bits), and from bit 16 on a literal, the least length, the least distance, or where a second table begins.
    enum : uint32_t { LITERAL = 1u << 31, OTHER = 1u << 15, SECOND = 1u << 14, LAST = 1u << 13 };
    enum : int {
        MOST_BITS = 15, MOST_SYMBOLS = 288, MOST_DISTANCES = 32, FIRST_LENGTH = 257, NUM_LENGTHS = 29, NUM_DISTANCES = 30,
        LENGTH_BITS = 11, DISTANCE_BITS = 8,
        // codes that share their first bits are at least two, but for a single one of one bit
        LENGTH_ENTRIES = (1 << LENGTH_BITS) + (MOST_SYMBOLS / 2 << (MOST_BITS - LENGTH_BITS)),
        DISTANCE_ENTRIES = (1 << DISTANCE_BITS) + (MOST_DISTANCES / 2 << (MOST_BITS - DISTANCE_BITS)),
        NUM_HEAD_CODES = 19, HEAD_BITS = 7, BEYOND = 16
    };

    // Load bits up to 56 or more; false if that is far behind the input. Bits behind it are anything: `run` finds that out.
    bool refill() {
        if (in_ - end_ > BEYOND) return false;
        buffer_ |= load<uint64_t>(in_) << loaded_;
        in_ += (63 - loaded_) >> 3;
        loaded_ |= 56;
        return true;
    }
    uint32_t bits(int n) {
        const uint32_t found = static_cast<uint32_t>(buffer_ & ((UINT64_C(1) << n) - 1));
        buffer_ >>= n;
        loaded_ -= n;
        return found;
    }

    // A block of plain bytes, which begins at a byte.
    bool stored() {
        in_ -= loaded_ / 8;
        buffer_ = 0;
        loaded_ = 0;
        if (end_ - in_ < 4) return false;
        const size_t size = load<uint16_t>(in_);
        if (static_cast<uint16_t>(~load<uint16_t>(in_ + 2)) != size) return false;
        in_ += 4;
        if (size > static_cast<size_t>(end_ - in_) || size > static_cast<size_t>(stop_ - out_)) return false;
        if (size) std::memcpy(out_, in_, size);
        in_ += size;
        out_ += size;
        return true;
    }

    bool fixed() {
        uint8_t sizes[MOST_SYMBOLS + MOST_DISTANCES];
        for (int i = 0; i < MOST_SYMBOLS; i++) sizes[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
        std::memset(sizes + MOST_SYMBOLS, 5, MOST_DISTANCES);
        return make_tables(sizes, MOST_SYMBOLS, MOST_DISTANCES);
    }

    // Read the sizes of a block's codes, which are coded themselves.
    bool dynamic() {
        static const uint8_t ORDER[NUM_HEAD_CODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
        if (!refill()) return false;
        const int num_symbols = bits(5) + FIRST_LENGTH, num_distances = bits(5) + 1, num_heads = bits(4) + 4;
        if (num_symbols > FIRST_LENGTH + NUM_LENGTHS || num_distances > NUM_DISTANCES) return false;
        uint8_t head_sizes[NUM_HEAD_CODES] = {}, sizes[MOST_SYMBOLS + MOST_DISTANCES + 138];
        for (int i = 0; i < num_heads; i++) {
            if (i % 16 == 0 && !refill()) return false;
            head_sizes[ORDER[i]] = static_cast<uint8_t>(bits(3));
        }
        uint32_t heads[1 << HEAD_BITS];
        if (!make_table(head_sizes, NUM_HEAD_CODES, heads, HEAD_BITS, 1 << HEAD_BITS, symbol_mask_, [](int symbol) { return static_cast<uint32_t>(symbol) << 16; })) return false;
        const int total = num_symbols + num_distances;
        for (int i = 0; i < total;) {
            if (!refill()) return false;
            const uint32_t entry = heads[buffer_ & ((1 << HEAD_BITS) - 1)];
            if (entry & OTHER) return false;
            bits(entry & 0xff);
            const uint8_t symbol = static_cast<uint8_t>(entry >> 16);
            if (symbol < 16) {
                sizes[i++] = symbol;
                continue;
            }
            if (symbol == 16 && !i) return false;
            const uint8_t repeated = symbol == 16 ? sizes[i - 1] : 0;
            const int count = symbol == 16 ? 3 + bits(2) : symbol == 17 ? 3 + bits(3) : 11 + bits(7);
            std::memset(sizes + i, repeated, count);  // at most 138
            i += count;
            if (i > total) return false;
        }
        return sizes[256] && make_tables(sizes, num_symbols, num_distances);
    }

    bool make_tables(const uint8_t *sizes, int num_symbols, int num_distances) {
        static const uint16_t LENGTHS[NUM_LENGTHS] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                                      31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
        static const uint8_t LENGTH_EXTRAS[NUM_LENGTHS] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
        const auto symbol_entry = [](int symbol) -> uint32_t {
            if (symbol < 256) return LITERAL | static_cast<uint32_t>(symbol) << 16;
            if (symbol == 256) return OTHER | LAST;
            if (symbol >= FIRST_LENGTH + NUM_LENGTHS) return OTHER;
            return static_cast<uint32_t>(LENGTHS[symbol - FIRST_LENGTH]) << 16 | LENGTH_EXTRAS[symbol - FIRST_LENGTH];
        };
        const auto distance_entry = [](int symbol) -> uint32_t {
            if (symbol >= NUM_DISTANCES) return OTHER;
            const int extra = symbol < 4 ? 0 : symbol / 2 - 1;
            const uint32_t least = symbol < 4 ? 1 + symbol : 1 + (static_cast<uint32_t>(2 + symbol % 2) << extra);
            return least << 16 | static_cast<uint32_t>(extra);
        };
        return make_table(sizes, num_symbols, symbols_, LENGTH_BITS, LENGTH_ENTRIES, symbol_mask_, symbol_entry) &&
               make_table(sizes + num_symbols, num_distances, distances_, DISTANCE_BITS, DISTANCE_ENTRIES, distance_mask_, distance_entry);
    }

    // Make the table of codes of some sizes: by the next `width` bits, and for longer codes second ones by those behind. False
    // if the codes are too many or too few; a single one of one bit, or none, is allowed.
    template <class EntryOf>
    static bool make_table(const uint8_t *sizes, int n, uint32_t *table, int width, int room, uint32_t &second_mask, EntryOf entry_of) {
        int counts[MOST_BITS + 2] = {}, most = 0;
        for (int i = 0; i < n; i++) counts[sizes[i]]++;
        for (int size = 1; size <= MOST_BITS; size++)
            if (counts[size]) most = size;
        int left = 1;
        for (int size = 1; size <= MOST_BITS; size++) {
            left = 2 * left - counts[size];
            if (left < 0) return false;
        }
        if (left && most > 1) return false;
        if (left) std::fill(table, table + (size_t{1} << width), static_cast<uint32_t>(OTHER));
        uint16_t sorted[MOST_SYMBOLS];
        int places[MOST_BITS + 2] = {};
        for (int size = 1; size <= MOST_BITS; size++) places[size + 1] = places[size] + counts[size];
        for (int i = 0; i < n; i++)
            if (sizes[i]) sorted[places[sizes[i]]++] = static_cast<uint16_t>(i);
        // codes in ascending order, their first bit lowest
        uint32_t code = 0, prefix = ~0u;
        int used = 1 << width;
        const int second_bits = most - width;
        second_mask = second_bits > 0 ? (1u << second_bits) - 1 : 0;
        for (int size = 1, k = 0; size <= most; size++) {
            for (int c = 0; c < counts[size]; c++, k++) {
                uint32_t entry = entry_of(sorted[k]);
                entry += static_cast<uint32_t>(size) | static_cast<uint32_t>(size) << 8;
                if (size <= width) {
                    for (uint32_t i = code; i < 1u << width; i += 1u << size) table[i] = entry;
                } else {
                    // codes with the same first bits follow each other
                    uint32_t &first = table[code & ((1u << width) - 1)];
                    if ((code & ((1u << width) - 1)) != prefix) {
                        prefix = code & ((1u << width) - 1);
                        if (used + (1 << second_bits) > room) return false;
                        first = OTHER | SECOND | static_cast<uint32_t>(used) << 16;
                        used += 1 << second_bits;
                    }
                    uint32_t *const second = table + (first >> 16);
                    for (uint32_t i = code >> width; i < 1u << second_bits; i += 1u << (size - width)) second[i] = entry;
                }
                // the next code: the highest bit of `size` that is not set is, those above it are not
                uint32_t bit = 1u << (size - 1);
                while (code & bit) bit >>= 1;
                code = bit ? (code & (bit - 1)) | bit : 0;
            }
        }
        return true;
    }

    // The symbols of a block. What is known of the input and of the codes is in registers.
    bool coded() {
        const uint8_t *in = in_;
        uint8_t *out = out_;
        uint64_t buffer = buffer_;
        uint32_t loaded = static_cast<uint32_t>(loaded_);
        const auto load_bits = [&] {
            buffer |= load<uint64_t>(in) << loaded;
            in += (63 - loaded) >> 3;
            loaded |= 56;
        };
        const auto take = [&](uint32_t entry) {
            buffer >>= entry & 0xff;
            loaded -= entry & 0xff;
        };
        // the base of an entry, and what its extra bits add
        const auto number_of = [&](uint32_t entry) {
            const uint32_t read = static_cast<uint32_t>(buffer & ((UINT64_C(1) << (entry & 0xff)) - 1));
            return (entry >> 16) + (read >> (entry >> 8 & 15));
        };
        const auto next_symbol = [&] { return symbols_[buffer & ((1u << LENGTH_BITS) - 1)]; };
        for (;;) {
            if (in - end_ > BEYOND || out > stop_) return false;
            load_bits();
            uint32_t entry = next_symbol();
            // each takes up to 11 bits of at least 56; up to 3 literals behind the output are found out above
            if (entry & LITERAL) {
                take(entry);
                *out++ = static_cast<uint8_t>(entry >> 16);
                entry = next_symbol();
                if (entry & LITERAL) {
                    take(entry);
                    *out++ = static_cast<uint8_t>(entry >> 16);
                    entry = next_symbol();
                    if (entry & LITERAL) {
                        take(entry);
                        *out++ = static_cast<uint8_t>(entry >> 16);
                        continue;
                    }
                }
            }
            if (entry & OTHER) {
                if (entry & SECOND) entry = symbols_[(entry >> 16) + (buffer >> LENGTH_BITS & symbol_mask_)];
                if (entry & LITERAL) {
                    take(entry);
                    *out++ = static_cast<uint8_t>(entry >> 16);
                    continue;
                }
                if (entry & OTHER) {
                    if (!(entry & LAST)) return false;
                    take(entry);
                    break;
                }
            }
            const uint32_t length = number_of(entry);
            take(entry);
            load_bits();
            entry = distances_[buffer & ((1u << DISTANCE_BITS) - 1)];
            if (entry & SECOND) entry = distances_[(entry >> 16) + (buffer >> DISTANCE_BITS & distance_mask_)];
            if (entry & OTHER) return false;
            const uint32_t distance = number_of(entry);
            take(entry);
            if (distance > out - begin_ || length > stop_ - out) return false;
            copy_overlapping(out, distance, length);
            out += length;
        }
        in_ = in;
        out_ = out;
        buffer_ = buffer;
        loaded_ = static_cast<int>(loaded);
        return out <= stop_;
    }

    const uint8_t *in_, *const end_;
    uint8_t *const begin_, *out_, *const stop_;
    uint64_t buffer_ = 0;
    int loaded_ = 0;
    uint32_t symbol_mask_ = 0, distance_mask_ = 0;
    uint32_t symbols_[LENGTH_ENTRIES], distances_[DISTANCE_ENTRIES];
};

// Decompress gzip of one member without extras: exactly `size` bytes.
inline bool gunzip(const uint8_t *in, size_t n, uint8_t *out, size_t size) {
    enum : size_t { HEAD = 10, TAIL = 8 };
    if (n < HEAD + TAIL || in[0] != 0x1f || in[1] != 0x8b || in[2] != 8 || in[3]) return false;
    const uint8_t *const tail = in + n - TAIL;
    if (load<uint32_t>(tail + 4) != static_cast<uint32_t>(size)) return false;
    Inflater inflater(in + HEAD, n - HEAD - TAIL, out, size);
    return inflater.run() && inflater.position() == tail && crc32_of_page(out, size) == load<uint32_t>(tail);
}

}  // namespace delta_parquet
