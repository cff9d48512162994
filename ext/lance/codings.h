// The compressions of values, as a tree of codings, and their results, which are Arrow buffers.
//
// A coding reads the bytes of a mini-block, a block (levels, dictionaries) or the values of a full-zip page. Each count, width
// and offset is checked before it is used; offsets of values rise and end within their bytes before a value is copied.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "blocks.h"
#include "fastlanes.h"
#include "fsst.h"
#include "parquet/lz4.h"
#include "parquet/zstd_library.h"

namespace delta_lance {

enum CodingKind {
    FLAT = 1,
    VARIABLE = 2,
    CONSTANT = 3,
    OUT_OF_LINE_BITPACKING = 4,
    INLINE_BITPACKING = 5,
    FSST = 6,
    RLE = 8,
    BYTE_STREAM_SPLIT = 9,
    GENERAL = 10,
    FIXED_SIZE_LIST = 11,
    PACKED_STRUCT = 12,
    VARIABLE_PACKED_STRUCT = 13,
};
enum Scheme { LZ4 = 1, ZSTD = 2 };

struct Coding {
    int kind = 0;
    uint64_t bits = 0;    // of a value; of bit packing those that are unpacked
    uint64_t packed = 0;  // the bits that out-of-line bit packing stores
    int scheme = 0;
    uint64_t items = 0;  // of a list
    bool has_validity = false;
    int child = -1, other = -1;
    SymbolTable table;
    std::vector<uint8_t> value;  // of CONSTANT; empty = null
};

// Values as Arrow has them: of a fixed number of bits, or offsets and bytes.
struct Values {
    unsigned bits = 0;  // 0: each has its own length
    bool is_wide = false;  // 64-bit offsets
    uint64_t count = 0;
    Block fixed, offsets, text;
    std::vector<Bits> validity;  // of the items of lists of a fixed size, the outermost list first

    void lend_from(KeptBlocks *source) {
        for (Block *block : {&fixed, &offsets, &text}) block->lend_from(source);
    }
    uint64_t bytes_of(uint64_t n) const { return bits == 1 ? (n + 7) / 8 : n * (bits / 8); }

    // Have room for `n` more values of a fixed size, uninitialised (bits: zero), and return where they begin.
    Error add_fixed(uint64_t n, uint64_t most = 0) {
        const uint64_t limit = n > most ? n : most;
        if (bits == 1) {
            const uint64_t bytes = (count + n + 7) / 8;
            if (bytes > fixed.size() && !fixed.append_zeros(bytes - fixed.size())) return NO_MEMORY;
            return nullptr;
        }
        if (limit > Block::MOST / (bits / 8 ? bits / 8 : 1)) return NO_MEMORY;
        return fixed.reserve_more(limit * (bits / 8)) ? nullptr : NO_MEMORY;
    }
    void added(uint64_t n) {
        if (bits != 1) fixed.add_size(n * (bits / 8));
        count += n;
    }
    Error append_zeros(uint64_t n) {
        if (bits == 0) return append_empty(n);
        if (Error e = add_fixed(n)) return e;
        if (bits != 1) std::memset(fixed.end(), 0, n * (bits / 8));
        added(n);
        return nullptr;
    }
    // Have room for `n` more offsets.
    Error add_offsets(uint64_t n) {
        const uint64_t width = is_wide ? 8 : 4;
        if (n > Block::MOST / 8) return NO_MEMORY;
        if (!offsets.size() && !offsets.append_zeros(width)) return NO_MEMORY;
        return offsets.reserve_more(n * width) ? nullptr : NO_MEMORY;
    }
    Error append_empty(uint64_t n) {
        if (Error e = add_offsets(n)) return e;
        for (uint64_t i = 0; i < n; i++) put_offset(text.size());
        count += n;
        return nullptr;
    }
    void put_offset(uint64_t end) {
        if (is_wide) *reinterpret_cast<int64_t *>(offsets.end()) = static_cast<int64_t>(end), offsets.add_size(8);
        else *reinterpret_cast<int32_t *>(offsets.end()) = static_cast<int32_t>(end), offsets.add_size(4);
    }
    // Append n of the values of others, from number `first` on; both are of the same kind, and no lists.
    Error append_from(const Values &other, uint64_t first, uint64_t n) {
        if (first > other.count || n > other.count - first) return "values are missing";
        if (bits) {
            if (Error e = add_fixed(n)) return e;
            if (bits == 1) copy_bits(fixed.data(), count, other.fixed.data(), first, n);
            else if (n) std::memcpy(fixed.end(), other.fixed.data() + first * (bits / 8), n * (bits / 8));
            added(n);
            return nullptr;
        }
        const auto at = [&](uint64_t i) -> uint64_t {
            return is_wide ? static_cast<uint64_t>(other.offsets.as<int64_t>()[i]) : static_cast<uint64_t>(other.offsets.as<int32_t>()[i]);
        };
        for (uint64_t i = first; i < first + n; i++)
            if (Error e = append_text(other.text.data() + at(i), at(i + 1) - at(i))) return e;
        return nullptr;
    }
    void clear() {
        for (Block *block : {&fixed, &offsets, &text}) block->clear();
        count = 0;
    }
    // Have room for `n` values in all: blocks that grow are copied, and the pages of their memory are cleared each time. The
    // system has no memory for the room until it is written. Of values of any length, those that are there show how long
    // they are. Without memory for it, or of more than MOST_RESERVED bytes, blocks grow as usual.
    void reserve(uint64_t n) {
        if (n <= count || n > MOST_RESERVED / 8) return;
        if (bits) {
            const uint64_t bytes = bytes_of(bits <= 64 ? n + FASTLANES_VALUES : n);
            if (bytes <= MOST_RESERVED) fixed.reserve(bytes);
            return;
        }
        offsets.reserve((n + 1) * (is_wide ? 8 : 4));
        if (!count) return;
        const double bytes = 1.05 * static_cast<double>(text.size()) / static_cast<double>(count) * static_cast<double>(n) + static_cast<double>(text.room());
        if (bytes <= static_cast<double>(MOST_RESERVED)) text.reserve(static_cast<uint64_t>(bytes));
    }
    static constexpr uint64_t MOST_RESERVED = 16 << 20;
    bool fits(uint64_t bytes) const { return is_wide || text.size() + bytes <= INT32_MAX; }
    Error append_text(const uint8_t *from, uint64_t n) {
        if (!fits(n)) return TOO_LONG;
        if (Error e = add_offsets(1)) return e;
        if (!text.append(from, n)) return NO_MEMORY;
        put_offset(text.size());
        count++;
        return nullptr;
    }
};

// Values of any length: value i are the bytes from offset i to offset i + 1.
struct Slices {
    const uint8_t *offsets = nullptr;
    bool is_wide = false;
    Bytes data;
    uint64_t at(uint64_t i) const { return is_wide ? load<uint64_t>(offsets + 8 * i) : load<uint32_t>(offsets + 4 * i); }
    // Whether offsets first to last rise, and end within the bytes.
    bool rise(uint64_t first, uint64_t last) const {
        bool good = true;
        if (is_wide)
            for (uint64_t i = first; i < last; i++) good &= at(i) <= at(i + 1);
        else
            for (uint64_t i = first; i < last; i++) good &= load<uint32_t>(offsets + 4 * i) <= load<uint32_t>(offsets + 4 * i + 4);
        return good && at(last) <= data.size;
    }
};

// A function of the caller that decompresses a zstd frame where there is no libzstd: it returns how many bytes it wrote to
// `out`, which has room for `size`, or -1.
using Unzip = int64_t (*)(const uint8_t *in, int64_t n, uint8_t *out, int64_t size);

// The state of one call that decodes values, besides its input.
class Context {
   public:
    explicit Context(Unzip unzip = nullptr) : unzip_(unzip) {}
    ~Context() {
        if (zstd_) delta_parquet::ZstdLibrary::loaded()->free(zstd_);
    }
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;

    enum { MOST_NESTED = 16 };

    Error decompress(int scheme, Bytes in, Block &out) {
        out.clear();
        return scheme == LZ4 ? lz4(in, out) : scheme == ZSTD ? zstd(in, out) : "its compression is neither lz4 nor zstd";
    }
    // Scratch bytes of a level of nesting.
    Block &scratch(unsigned depth, unsigned which) { return scratch_[depth][which]; }
    std::vector<uint32_t> starts;
    std::vector<uint64_t> word;

   private:
    Error lz4(Bytes in, Block &out) {
        if (in.size < 4) return "a buffer of lz4 has fewer than 4 bytes";
        const uint64_t size = load<uint32_t>(in.data);
        const uint64_t n = in.size - 4;
        // a byte of LZ4 expands to 255 bytes at most
        if (size > n * 255) return "a buffer of lz4 is shorter than its length requires";
        if (!size) return nullptr;
        // the input is read in blocks
        input_.clear();
        if (!input_.append(in.data + 4, n) || !out.reserve(size)) return NO_MEMORY;
        std::memset(input_.end(), 0, Block::SLACK);
        if (!delta_parquet::lz4_decompress(input_.data(), n, out.data(), size)) return "a buffer of lz4 is damaged";
        out.set_size(size);
        return nullptr;
    }

    Error zstd(Bytes in, Block &out) {
        static constexpr uint32_t FRAME = 0xFD2FB528;
        // a block of zstd of four bytes expands to 128 KiB at most
        static constexpr uint64_t MOST_RATIO = 1 << 15;
        if (in.size < 8) return "a buffer of zstd has fewer than 8 bytes";
        uint64_t size;
        const bool is_plain = load<uint32_t>(in.data) == FRAME && !(in.data[4] & 0x10);
        if (is_plain) {
            if (!content_size(in, size)) return "a buffer of zstd does not specify how long it is";
        } else {
            size = load<uint64_t>(in.data);
            in.cut(8, head_);
        }
        if (size > in.size * MOST_RATIO) return "a buffer of zstd is shorter than its length requires";
        if (!size) return nullptr;
        if (!out.reserve(size)) return NO_MEMORY;
        int64_t found;
        if (const auto *const library = delta_parquet::ZstdLibrary::loaded()) {
            if (!zstd_ && !(zstd_ = library->create())) return NO_MEMORY;
            found = static_cast<int64_t>(library->decompress(zstd_, out.data(), size, in.data, in.size));
        } else {
            found = unzip_ ? unzip_(in.data, static_cast<int64_t>(in.size), out.data(), static_cast<int64_t>(size)) : -1;
        }
        if (found != static_cast<int64_t>(size)) return "a buffer of zstd is damaged";
        out.set_size(size);
        return nullptr;
    }

    // Read the length that a frame's header specifies (RFC 8878, 3.1.1.1).
    static bool content_size(Bytes in, uint64_t &size) {
        const unsigned descriptor = in.data[4], flag = descriptor >> 6, is_single = descriptor >> 5 & 1;
        static constexpr unsigned DICTIONARY[4] = {0, 1, 2, 4};
        const unsigned at = 5 + (is_single ? 0 : 1) + DICTIONARY[descriptor & 3];
        const unsigned bytes = flag == 0 ? is_single : 1u << flag;
        if (!bytes || at + bytes > in.size) return false;
        size = bytes == 1   ? in.data[at]
               : bytes == 2 ? load<uint16_t>(in.data + at) + UINT64_C(256)
               : bytes == 4 ? load<uint32_t>(in.data + at)
                            : load<uint64_t>(in.data + at);
        return true;
    }

    Unzip unzip_;
    void *zstd_ = nullptr;
    Bytes head_;
    Block input_;
    Block scratch_[MOST_NESTED][4];
};

// The codings of a page; their first one is the page's own for values.
class Codings {
   public:
    // Values of a mini-block of a power of two, and of the last one, at most.
    static constexpr uint64_t MOST_VALUES = 1 << 16;
    // Bytes of codes of FSST in one mini-block, at most: their results have 32-bit positions.
    static constexpr uint64_t MOST_CODES = 1 << 28;

    std::vector<Coding> nodes;

    bool has(int node) const { return node >= 0 && node < static_cast<int>(nodes.size()); }

    // Return the bits of the values that a coding yields; 0 if each has its own length.
    uint64_t bits_of(int node, unsigned depth = 0) const {
        if (!has(node) || depth >= Context::MOST_NESTED) return 0;
        const Coding &c = nodes[node];
        switch (c.kind) {
            case FLAT:
            case OUT_OF_LINE_BITPACKING:
            case INLINE_BITPACKING:
                return c.bits;
            case RLE:
            case BYTE_STREAM_SPLIT:
            case GENERAL:
            case FIXED_SIZE_LIST:
            case PACKED_STRUCT:
                return bits_of(c.child, depth + 1);
            default:
                return UINT64_C(0);
        }
    }

    // Return how many values of its innermost list one value is; 0 if the product is too large.
    uint64_t items_of(int node, unsigned depth = 0) const {
        if (!has(node) || depth >= Context::MOST_NESTED) return 1;
        const Coding &c = nodes[node];
        if (c.kind == GENERAL) return items_of(c.child, depth + 1);
        if (c.kind != FIXED_SIZE_LIST) return 1;
        const uint64_t inner = items_of(c.child, depth + 1);
        return c.items && inner && inner <= (UINT64_C(1) << 40) / c.items ? inner * c.items : 0;
    }

    // Append values first to last of a mini-block of n values.
    Error append_mini(Context &context, int node, const Bytes *buffers, unsigned num_buffers, uint64_t n, uint64_t first, uint64_t last,
                      Values &out, unsigned depth = 0, unsigned list = 0) const {
        if (!has(node) || depth >= Context::MOST_NESTED) return "its compressions are nested too deeply";
        if (first > last || last > n) return "a mini-block has fewer values than rows";
        const Coding &c = nodes[node];
        switch (c.kind) {
            case FLAT:
                return num_buffers == 1 ? append_flat(c, buffers[0], n, first, last, out) : COUNT;
            case INLINE_BITPACKING:
                return num_buffers == 1 ? append_inline(context, c, buffers[0], n, first, last, out) : COUNT;
            case VARIABLE:
            case FSST:
                return append_any_length(context, node, buffers, num_buffers, n, first, last, out, depth);
            case RLE:
                return num_buffers == 2 ? append_runs(context, c, buffers, n, first, last, out, depth) : COUNT;
            case BYTE_STREAM_SPLIT:
                return num_buffers == 1 ? append_planes(c, buffers[0], n, first, last, out) : COUNT;
            case GENERAL: {
                if (!num_buffers || num_buffers > MOST_BUFFERS) return COUNT;
                Block &plain = context.scratch(depth, 0);
                if (Error e = context.decompress(c.scheme, buffers[0], plain)) return e;
                Bytes inner[MOST_BUFFERS];
                inner[0] = {plain.data(), plain.size()};
                for (unsigned i = 1; i < num_buffers; i++) inner[i] = buffers[i];
                return append_mini(context, c.child, inner, num_buffers, n, first, last, out, depth + 1, list);
            }
            case FIXED_SIZE_LIST: {
                const uint64_t items = c.items;
                if (!items || n > Block::MOST / items) return "a list of a fixed size has no size";
                if (list >= out.validity.size()) return "its lists of a fixed size are nested in another way than its type";
                if (c.has_validity) {
                    if (!num_buffers) return COUNT;
                    if (buffers[0].size < (n * items + 7) / 8) return "the validity of a list of a fixed size is too short";
                    if (!out.validity[list].append_bits(buffers[0].data, first * items, (last - first) * items)) return NO_MEMORY;
                    buffers++, num_buffers--;
                } else if (!out.validity[list].append_ones((last - first) * items)) {
                    return NO_MEMORY;
                }
                return append_mini(context, c.child, buffers, num_buffers, n * items, first * items, last * items, out, depth + 1, list + 1);
            }
            case PACKED_STRUCT:
                return append_mini(context, c.child, buffers, num_buffers, n, first, last, out, depth + 1, list);
            case CONSTANT:  // of items that are all null
                return c.value.empty() ? out.append_zeros(last - first) : "a mini-block has a constant value";
            default:
                return "a mini-block has a compression that is not supported";
        }
    }

    // Append the n values of a block.
    Error append_block(Context &context, int node, Bytes in, uint64_t n, Values &out, unsigned depth = 0) const {
        if (!has(node) || depth >= Context::MOST_NESTED) return "its compressions are nested too deeply";
        if (n > Block::MOST / 64) return "a block has too many values";
        const Coding &c = nodes[node];
        switch (c.kind) {
            case FLAT:
                return append_flat(c, in, n, 0, n, out);
            case INLINE_BITPACKING:
                return append_inline(context, c, in, n, 0, n, out);
            case OUT_OF_LINE_BITPACKING:
                return append_out_of_line(c, in, n, out);
            case GENERAL: {
                Block &plain = context.scratch(depth, 0);
                if (Error e = context.decompress(c.scheme, in, plain)) return e;
                return append_block(context, c.child, {plain.data(), plain.size()}, n, out, depth + 1);
            }
            case RLE: {
                Bytes parts[2], head;
                if (!in.cut(8, head) || !in.cut(load<uint64_t>(head.data), parts[0])) return "a block of runs ends before its values do";
                parts[1] = in;
                return append_runs(context, c, parts, n, 0, n, out, depth);
            }
            case VARIABLE:
            case FSST: {
                Slices slices;
                if (Error e = block_slices(in, n, slices)) return e;
                return append_slices(context, slices, 0, n, c.kind == FSST ? &c.table : nullptr, out);
            }
            case CONSTANT:
                if (out.bits == 0 || c.value.size() * 8 != out.bits) return "a constant has another width than its values";
                return append_repeated(c.value.data(), n, out);
            case FIXED_SIZE_LIST: {
                const uint64_t items = items_of(node);
                if (!items || n > Block::MOST / items) return "a list of a fixed size has no size";
                return append_zipped(node, in, n, out);
            }
            default:
                return "a block has a compression that is not supported";
        }
    }

    // Append n lists of a fixed size whose validity precedes the items of each.
    Error append_zipped(int node, Bytes in, uint64_t n, Values &out) const {
        const Coding *lists[Context::MOST_NESTED];
        unsigned num_lists = 0;
        for (; has(node) && nodes[node].kind == FIXED_SIZE_LIST; node = nodes[node].child) {
            if (num_lists == Context::MOST_NESTED) return "its lists of a fixed size are nested too deeply";
            lists[num_lists++] = &nodes[node];
        }
        if (!has(node) || num_lists > out.validity.size()) return "its lists of a fixed size are nested in another way than its type";
        const Coding &leaf = nodes[node];
        const bool is_null = leaf.kind == CONSTANT && leaf.value.empty();
        if (!is_null && (leaf.kind != FLAT || leaf.bits != out.bits || (leaf.bits % 8 && leaf.bits != 1)))
            return "a list of a fixed size has items of another width than its type";
        uint64_t items = 1;
        for (unsigned i = 0; i < num_lists; i++) items *= lists[i]->items;
        const uint64_t most = (UINT64_C(1) << 40) / (n ? n : 1);
        if (!items || items > most) return "a list of a fixed size has no size, or too large a one";
        const uint64_t bytes = is_null ? 0 : leaf.bits == 1 ? (items + 7) / 8 : items * (leaf.bits / 8);
        if (leaf.bits == 1 && n > 1 && items % 8) return "a list of a fixed size has bits that end within a byte";
        if (Error e = out.add_fixed(n * items)) return e;
        for (uint64_t row = 0; row < n; row++) {
            uint64_t inner = 1;
            for (unsigned i = 0; i < num_lists; i++) {
                inner *= lists[i]->items;
                Bytes part;
                if (!lists[i]->has_validity) {
                    if (!out.validity[i].append_ones(inner)) return NO_MEMORY;
                } else if (!in.cut((inner + 7) / 8, part)) {
                    return "a list of a fixed size ends before its items do";
                } else if (!out.validity[i].append_bits(part.data, 0, inner)) {
                    return NO_MEMORY;
                }
            }
            Bytes part;
            if (!in.cut(bytes, part)) return "a list of a fixed size ends before its items do";
            if (is_null) {
                if (Error e = out.append_zeros(items)) return e;
                continue;
            }
            if (leaf.bits == 1) copy_bits(out.fixed.data(), out.count, part.data, 0, items);
            else std::memcpy(out.fixed.end(), part.data, bytes);
            out.added(items);
        }
        return nullptr;
    }

    // Append values first to last of those that slices describe, decoded if there is a table.
    static Error append_slices(Context &context, const Slices &slices, uint64_t first, uint64_t last, const SymbolTable *table, Values &out) {
        if (out.bits) return "values of any length are in a column of values of a fixed size";
        if (!slices.rise(first, last)) return "offsets of values do not rise, or end after their bytes";
        const uint64_t base = slices.at(first), n = slices.at(last) - base;
        if (Error e = out.add_offsets(last - first)) return e;
        if (table && table->is_coded()) return append_coded(context, slices, first, last, *table, out);
        if (!out.fits(n)) return TOO_LONG;
        const uint64_t used = out.text.size();
        if (!out.text.append(slices.data.data + base, n)) return NO_MEMORY;
        if (!out.is_wide && !slices.is_wide) {
            auto *const to = reinterpret_cast<int32_t *>(out.offsets.end());
            const uint32_t shift = static_cast<uint32_t>(used - base);
            const uint8_t *const from = slices.offsets + 4 * (first + 1);
            for (uint64_t i = 0; i < last - first; i++) to[i] = static_cast<int32_t>(load<uint32_t>(from + 4 * i) + shift);
            out.offsets.add_size(4 * (last - first));
        } else {
            for (uint64_t i = first; i < last; i++) out.put_offset(slices.at(i + 1) - base + used);
        }
        out.count += last - first;
        return nullptr;
    }

    static Error append_repeated(const uint8_t *value, uint64_t n, Values &out) {
        if (Error e = out.add_fixed(n)) return e;
        if (out.bits == 1) {
            if (*value & 1)
                for (uint64_t i = out.count; i < out.count + n; i++) out.fixed.data()[i >> 3] |= static_cast<uint8_t>(1 << (i & 7));
        } else {
            const unsigned width = out.bits / 8;
            uint8_t *const to = out.fixed.end();
            for (uint64_t i = 0; i < n; i++) std::memcpy(to + i * width, value, width);
        }
        out.added(n);
        return nullptr;
    }

    // Append the values of a dictionary that `codes` (of 8 to 64 bits) choose, from number `first` of the codes on.
    static Error append_chosen(const Values &codes, const Values &dictionary, uint64_t list_items, Values &out) {
        const uint64_t n = codes.count, entries = list_items ? dictionary.count / list_items : 0;
        const uint64_t most = with_codes(codes, [n](const auto *code) {
            uint64_t found = 0;
            for (uint64_t i = 0; i < n; i++) found = code[i] > found ? code[i] : found;
            return found;
        });
        if (n && most >= entries) return "a code of its dictionary is too large";
        if (dictionary.bits == 0) return append_chosen_texts(codes, dictionary, out);
        if (out.bits != dictionary.bits) return WIDTH;
        if (n && list_items > Block::MOST / n) return NO_MEMORY;
        if (Error e = out.add_fixed(n * list_items)) return e;
        for (size_t list = 0; list < out.validity.size(); list++) {
            const uint64_t items = dictionary.validity[list].size() / (entries ? entries : 1);
            Bits &from = const_cast<Values &>(dictionary).validity[list];
            for (uint64_t i = 0; i < n; i++) {
                const bool good = from.is_stored() ? out.validity[list].append_bits(from.block().data(), code_at(codes, i) * items, items)
                                                   : out.validity[list].append_ones(items);
                if (!good) return NO_MEMORY;
            }
        }
        if (out.bits == 1) {
            for (uint64_t i = 0; i < n; i++)
                copy_bits(out.fixed.data(), out.count + i * list_items, dictionary.fixed.data(), code_at(codes, i) * list_items, list_items);
        } else {
            const uint64_t width = out.bits / 8 * list_items;
            uint8_t *const to = out.fixed.end();
            const uint8_t *const from = dictionary.fixed.data();
            with_codes(codes, [&](const auto *code) {
                if (width == 8)
                    for (uint64_t i = 0; i < n; i++) std::memcpy(to + 8 * i, from + 8 * code[i], 8);
                else if (width == 4)
                    for (uint64_t i = 0; i < n; i++) std::memcpy(to + 4 * i, from + 4 * code[i], 4);
                else
                    for (uint64_t i = 0; i < n; i++) std::memcpy(to + width * i, from + width * code[i], width);
                return UINT64_C(0);
            });
        }
        out.added(n * list_items);
        return nullptr;
    }

    // Call a function with the codes as numbers of their width, which is 8, 16, 32 or 64 bits.
    template <class F>
    static uint64_t with_codes(const Values &codes, F use) {
        switch (codes.bits) {
            case 8:
                return use(codes.fixed.as<uint8_t>());
            case 16:
                return use(codes.fixed.as<uint16_t>());
            case 32:
                return use(codes.fixed.as<uint32_t>());
            default:
                return use(codes.fixed.as<uint64_t>());
        }
    }

    static uint64_t code_at(const Values &codes, uint64_t i) {
        const uint8_t *const at = codes.fixed.data();
        switch (codes.bits) {
            case 8:
                return at[i];
            case 16:
                return load<uint16_t>(at + 2 * i);
            case 32:
                return load<uint32_t>(at + 4 * i);
            default:
                return load<uint64_t>(at + 8 * i);
        }
    }

   private:
    enum { MOST_BUFFERS = 32 };
    static constexpr char COUNT[] = "a mini-block has another number of buffers than its compression";
    static constexpr char WIDTH[] = "values have another width than their column";
    static constexpr char SHORT[] = "a buffer ends before its values do";

    static Error append_flat(const Coding &c, Bytes in, uint64_t n, uint64_t first, uint64_t last, Values &out) {
        if (c.bits != out.bits) return WIDTH;
        if (c.bits != 1 && (c.bits % 8 || !c.bits)) return "values are stored in parts of bytes";
        if (n > Block::MOST / 64 || c.bits > Block::MOST || (n && c.bits > Block::MOST * 8 / n) || in.size < (n * c.bits + 7) / 8) return SHORT;
        if (Error e = out.add_fixed(last - first)) return e;
        if (c.bits == 1) copy_bits(out.fixed.data(), out.count, in.data, first, last - first);
        else if (last > first) std::memcpy(out.fixed.end(), in.data + first * (c.bits / 8), (last - first) * (c.bits / 8));
        out.added(last - first);
        return nullptr;
    }

    template <class T>
    static Error unpack_part(Bytes packed, unsigned width, uint64_t first, uint64_t last, Values &out) {
        if (packed.size < UINT64_C(128) * width) return SHORT;
        if (Error e = out.add_fixed(last - first, first ? 0 : FASTLANES_VALUES)) return e;
        if (!first && !(reinterpret_cast<uintptr_t>(out.fixed.end()) % sizeof(T))) {
            unpack_fastlanes<T>(width, packed.data, reinterpret_cast<T *>(out.fixed.end()));
        } else {
            T values[FASTLANES_VALUES];
            unpack_fastlanes<T>(width, packed.data, values);
            std::memcpy(out.fixed.end(), values + first, (last - first) * sizeof(T));
        }
        out.added(last - first);
        return nullptr;
    }

    static Error unpack_part(uint64_t bits, Bytes packed, uint64_t width, uint64_t first, uint64_t last, Values &out) {
        if (bits != out.bits) return WIDTH;
        if (width > bits) return "values are packed to more bits than they have";
        const unsigned w = static_cast<unsigned>(width);
        switch (bits) {
            case 8:
                return unpack_part<uint8_t>(packed, w, first, last, out);
            case 16:
                return unpack_part<uint16_t>(packed, w, first, last, out);
            case 32:
                return unpack_part<uint32_t>(packed, w, first, last, out);
            case 64:
                return unpack_part<uint64_t>(packed, w, first, last, out);
            default:
                return "packed values do not have 8, 16, 32 or 64 bits";
        }
    }

    static Error append_inline(Context &, const Coding &c, Bytes in, uint64_t n, uint64_t first, uint64_t last, Values &out) {
        if (n > FASTLANES_VALUES) return "a block of packed values has more than 1,024";
        if (!n) return nullptr;
        Bytes head;
        if (!in.cut(c.bits / 8, head)) return SHORT;
        uint64_t width = 0;
        std::memcpy(&width, head.data, head.size < 8 ? head.size : 8);
        return unpack_part(c.bits, in, width, first, last, out);
    }

    static Error append_out_of_line(const Coding &c, Bytes in, uint64_t n, Values &out) {
        if (c.packed > c.bits || c.bits > 64) return "values are packed to more bits than they have";
        const uint64_t whole = n / FASTLANES_VALUES, rest = n % FASTLANES_VALUES, block = 128 * c.packed;
        if (block && whole > in.size / block) return SHORT;
        const bool is_raw = rest && in.size == whole * block + rest * (c.bits / 8);
        for (uint64_t i = 0; i < whole; i++) {
            Bytes part;
            if (!in.cut(block, part)) return SHORT;
            if (Error e = unpack_part(c.bits, part, c.packed, 0, FASTLANES_VALUES, out)) return e;
        }
        if (!rest) return nullptr;
        if (!is_raw) return unpack_part(c.bits, in, c.packed, 0, rest, out);
        Coding flat;
        flat.bits = c.bits;
        return append_flat(flat, in, rest, 0, rest, out);
    }

    static Error append_planes(const Coding &c, Bytes in, uint64_t n, uint64_t first, uint64_t last, Values &out) {
        if (out.bits != 32 && out.bits != 64) return "split streams do not have 32 or 64 bits";
        (void)c;
        const unsigned width = out.bits / 8;
        if (n > Block::MOST / 64 || in.size < n * width) return SHORT;
        if (Error e = out.add_fixed(last - first)) return e;
        uint8_t *const to = out.fixed.end();
        for (unsigned k = 0; k < width; k++) {
            const uint8_t *const plane = in.data + k * n;
            for (uint64_t i = first; i < last; i++) to[(i - first) * width + k] = plane[i];
        }
        out.added(last - first);
        return nullptr;
    }

    // Decode the values, or the lengths, of runs; `count` is how many there are, or 0 if their own bytes specify it.
    Error run_part(Context &context, int node, Bytes in, uint64_t count, Values &out, unsigned depth) const {
        if (!has(node)) return "runs have no compression";
        const Coding &c = nodes[node];
        const unsigned width = out.bits / 8;
        if (c.kind == FLAT) return append_flat(c, in, count ? count : in.size / width, 0, count ? count : in.size / width, out);
        if (c.kind == GENERAL && has(c.child) && nodes[c.child].kind == FLAT) {
            Block &plain = context.scratch(depth, 1);
            if (Error e = context.decompress(c.scheme, in, plain)) return e;
            return append_flat(nodes[c.child], {plain.data(), plain.size()}, plain.size() / width, 0, plain.size() / width, out);
        }
        if (!count) return "values and lengths of runs are packed both";
        return append_block(context, node, in, count, out, depth + 1);
    }

    bool counts_itself(int node) const {
        if (!has(node)) return false;
        const Coding &c = nodes[node];
        return c.kind == FLAT || (c.kind == GENERAL && has(c.child) && nodes[c.child].kind == FLAT);
    }

    Error append_runs(Context &context, const Coding &c, const Bytes *buffers, uint64_t n, uint64_t first, uint64_t last, Values &out,
                      unsigned depth) const {
        if (!n) return nullptr;
        Values values, lengths;
        values.bits = out.bits;
        if (Error e = find_runs(context, c, buffers, values, lengths, depth)) return e;
        if (Error e = out.add_fixed(last - first)) return e;
        switch (out.bits) {
            case 8:
                return expand<uint8_t>(values, lengths, n, first, last, out);
            case 16:
                return expand<uint16_t>(values, lengths, n, first, last, out);
            case 32:
                return expand<uint32_t>(values, lengths, n, first, last, out);
            default:
                return expand<uint64_t>(values, lengths, n, first, last, out);
        }
    }

    template <class T>
    static Error expand(const Values &values, const Values &lengths, uint64_t n, uint64_t first, uint64_t last, Values &out) {
        uint64_t at = 0;
        uint8_t *to = out.fixed.end();
        for (uint64_t i = 0; i < lengths.count; i++) {
            const uint64_t length = code_at(lengths, i);
            if (!length) return "a run has no length";
            const uint64_t end = length < n - at ? at + length : n;  // more than n values: files of some writers have these
            const T value = load<T>(values.fixed.data() + i * sizeof(T));
            const uint64_t from = at > first ? at : first, stop = end < last ? end : last;
            for (uint64_t k = from; k < stop; k++, to += sizeof(T)) std::memcpy(to, &value, sizeof(T));
            at = end;
            if (at == n) break;
        }
        if (at < n) return "runs have fewer values than there are";
        out.added(last - first);
        return nullptr;
    }

   public:
    // Find the offsets and the bytes of a mini-block of values of any length; `table` is that of FSST, nullptr for plain ones.
    Error find_slices(Context &context, int node, const Bytes *buffers, unsigned num_buffers, uint64_t n, Slices &slices,
                      const SymbolTable *&table, unsigned depth) const {
        const Coding &c = nodes[node];
        const Coding *variable = &c;
        table = nullptr;
        if (c.kind == FSST) {
            if (!has(c.child) || nodes[c.child].kind != VARIABLE) return "codes of FSST are no values of any length";
            variable = &nodes[c.child];
            if (c.table.is_coded()) table = &c.table;
        }
        return mini_slices(context, *variable, buffers, num_buffers, n, slices, depth);
    }

    // Decode the values and the lengths of runs; `values` has their width.
    Error find_runs(Context &context, const Coding &c, const Bytes *buffers, Values &values, Values &lengths, unsigned depth) const {
        lengths.bits = static_cast<unsigned>(bits_of(c.other));
        if (values.bits != 8 && values.bits != 16 && values.bits != 32 && values.bits != 64) return "runs do not have values of 8, 16, 32 or 64 bits";
        if (bits_of(c.child) != values.bits) return WIDTH;
        if (lengths.bits != 8 && lengths.bits != 16 && lengths.bits != 32) return "runs do not have lengths of 8, 16 or 32 bits";
        const bool values_first = counts_itself(c.child);
        if (values_first) {
            if (Error e = run_part(context, c.child, buffers[0], 0, values, depth)) return e;
            if (Error e = run_part(context, c.other, buffers[1], counts_itself(c.other) ? 0 : values.count, lengths, depth)) return e;
        } else {
            if (Error e = run_part(context, c.other, buffers[1], 0, lengths, depth)) return e;
            if (Error e = run_part(context, c.child, buffers[0], lengths.count, values, depth)) return e;
        }
        return values.count == lengths.count ? nullptr : "there are more values than lengths of runs, or fewer";
    }

    // Return how many values runs have in all, for levels whose count has overflowed.
    Error sum_of_runs(Context &context, int node, Bytes in, uint64_t &sum) const {
        sum = 0;
        if (!has(node) || nodes[node].kind != RLE) return "levels are no runs";
        const Coding &c = nodes[node];
        Bytes head, part;
        if (!in.cut(8, head) || !in.cut(load<uint64_t>(head.data), part)) return "a block of runs ends before its values do";
        Values lengths, values;
        lengths.bits = static_cast<unsigned>(bits_of(c.other));
        if (lengths.bits != 8 && lengths.bits != 16 && lengths.bits != 32) return "runs do not have lengths of 8, 16 or 32 bits";
        if (!counts_itself(c.other)) return nullptr;
        if (Error e = run_part(context, c.other, in, 0, lengths, 0)) return e;
        for (uint64_t i = 0; i < lengths.count; i++) sum += code_at(lengths, i);
        return nullptr;
    }

   private:
    // Find the offsets and the bytes of a mini-block of values of any length.
    Error mini_slices(Context &context, const Coding &c, const Bytes *buffers, unsigned num_buffers, uint64_t n, Slices &slices,
                      unsigned depth) const {
        if (!has(c.child)) return "values of any length have no offsets";
        const Coding &offsets = nodes[c.child];
        if (offsets.kind == FLAT) {
            if (num_buffers != 1) return COUNT;
            if (offsets.bits != 32 && offsets.bits != 64) return "offsets do not have 32 or 64 bits";
            const uint64_t width = offsets.bits / 8;
            slices.is_wide = width == 8;
            slices.offsets = buffers[0].data;
            slices.data = buffers[0];
            if (n >= Block::MOST || (n + 1) * width > buffers[0].size) return SHORT;
            if (slices.at(0) < (n + 1) * width) return "values begin within their offsets";
            return nullptr;
        }
        const bool has_payload = offsets.kind != CONSTANT;
        if (num_buffers != (has_payload ? 2u : 1u)) return COUNT;
        Values found;
        found.bits = static_cast<unsigned>(offsets.kind == CONSTANT ? offsets.value.size() * 8 : bits_of(c.child));
        if (found.bits != 32 && found.bits != 64) return "offsets do not have 32 or 64 bits";
        if (Error e = append_block(context, c.child, has_payload ? buffers[0] : Bytes{}, n + 1, found, depth + 1)) return e;
        Block &kept = context.scratch(depth, 2);
        kept.swap(found.fixed);
        slices.is_wide = found.bits == 64;
        slices.offsets = kept.data();
        slices.data = buffers[num_buffers - 1];
        return slices.at(0) ? "offsets do not begin with 0" : nullptr;
    }

    Error append_any_length(Context &context, int node, const Bytes *buffers, unsigned num_buffers, uint64_t n, uint64_t first,
                            uint64_t last, Values &out, unsigned depth) const {
        Slices slices;
        const SymbolTable *table;
        if (Error e = find_slices(context, node, buffers, num_buffers, n, slices, table, depth)) return e;
        return append_slices(context, slices, first, last, table, out);
    }

    // Find the offsets and the bytes of a block of values of any length; earlier files have a header of another size.
    static Error block_slices(Bytes in, uint64_t n, Slices &slices) {
        static constexpr char HEAD[] = "a block of values ends within its header";
        if (in.size < 4) return HEAD;
        const bool is_earlier = in.data[1] || in.data[2] || in.data[3];
        const unsigned bits = in.data[0];
        if (bits != 32 && bits != 64) return "offsets do not have 32 or 64 bits";
        slices.is_wide = bits == 64;
        const unsigned width = bits / 8, head = is_earlier ? 1 + 2 * width : 2 * width;
        if (in.size < head) return HEAD;
        const uint8_t *const at = in.data + head - width;
        const uint64_t start = slices.is_wide ? load<uint64_t>(at) : load<uint32_t>(at);
        if (start < head || start > in.size || (start - head) / width < n + 1) return "a block of values has fewer offsets than values";
        slices.offsets = in.data + head;
        slices.data = {in.data + start, in.size - start};
        return nullptr;
    }

    static Error append_coded(Context &context, const Slices &slices, uint64_t first, uint64_t last, const SymbolTable &table, Values &out) {
        const uint64_t base = slices.at(first), n = slices.at(last) - base;
        if (n >= MOST_CODES) return "a block of FSST is too long";
        if (!out.text.reserve_more(8 * n + 8)) return NO_MEMORY;
        if (context.starts.size() < n + 1) context.starts.resize(n + 1);
        uint32_t *const starts = context.starts.data();
        const int64_t found = table.decode(slices.data.data + base, n, out.text.end(), starts);
        if (found < 0) return "a code of FSST has no symbol";
        if (!out.fits(static_cast<uint64_t>(found))) return TOO_LONG;
        const uint64_t used = out.text.size();
        bool good = true;
        if (!out.is_wide && !slices.is_wide) {
            auto *const to = reinterpret_cast<int32_t *>(out.offsets.end());
            const uint8_t *const from = slices.offsets + 4 * (first + 1);
            for (uint64_t i = 0; i < last - first; i++) {
                const uint32_t start = starts[load<uint32_t>(from + 4 * i) - base];
                good &= start != SymbolTable::INSIDE;
                to[i] = static_cast<int32_t>(start + used);
            }
            out.offsets.add_size(4 * (last - first));
        } else {
            for (uint64_t i = first; i < last; i++) {
                const uint32_t start = starts[slices.at(i + 1) - base];
                good &= start != SymbolTable::INSIDE;
                out.put_offset(start + used);
            }
        }
        if (!good) return "a text of FSST ends after an escape";
        out.text.add_size(static_cast<uint64_t>(found));
        out.count += last - first;
        return nullptr;
    }

    static Error append_chosen_texts(const Values &codes, const Values &dictionary, Values &out) {
        if (out.bits) return WIDTH;
        const uint64_t n = codes.count;
        if (Error e = out.add_offsets(n)) return e;
        const auto start_of = [&](uint64_t i) -> uint64_t {
            return dictionary.is_wide ? dictionary.offsets.as<int64_t>()[i] : dictionary.offsets.as<int32_t>()[i];
        };
        const uint64_t total = with_codes(codes, [&](const auto *code) {
            uint64_t sum = 0;
            for (uint64_t i = 0; i < n; i++) sum += start_of(code[i] + UINT64_C(1)) - start_of(code[i]);
            return sum;
        });
        if (!out.fits(total)) return TOO_LONG;
        if (!out.text.reserve_more(total + 32)) return NO_MEMORY;
        if (!dictionary.text.data()) return out.append_empty(n);  // all of its values are empty
        const uint8_t *const from = dictionary.text.data();
        uint8_t *to = out.text.end();
        with_codes(codes, [&](const auto *code) {
            for (uint64_t i = 0; i < n; i++) {
                const uint64_t start = start_of(code[i]), length = start_of(code[i] + UINT64_C(1)) - start;
                if (length <= 16) std::memcpy(to, from + start, 16);
                else std::memcpy(to, from + start, length);
                to += length;
                out.put_offset(static_cast<uint64_t>(to - out.text.data()));
            }
            return UINT64_C(0);
        });
        out.text.set_size(static_cast<uint64_t>(to - out.text.data()));
        out.count += n;
        return nullptr;
    }
};

}  // namespace delta_lance
