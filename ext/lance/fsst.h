// FSST: texts are sequences of codes, each of a symbol of 1 to 8 bytes; code 255 precedes a byte that has no symbol.
#pragma once

#include <cstdint>
#include <cstring>

#include "blocks.h"

namespace delta_lance {

class SymbolTable {
   public:
    static constexpr uint32_t MAGIC = 0x46535354;
    static constexpr unsigned ESCAPE = 255;

    // Whether texts are codes; otherwise they are stored as they are.
    bool is_coded() const { return is_coded_; }

    // The bytes of a symbol, 0 if a code has none; and the symbol, with bytes after it that are not part of it.
    unsigned length_of(unsigned code) const { return lengths_[code]; }
    void copy_symbol(unsigned code, uint8_t *out) const { std::memcpy(out, &symbols_[code], 8); }

    // Read a table: a header of 8 bytes, whose lowest one counts the symbols, then 8 bytes for each symbol, then their lengths.
    Error parse(Bytes bytes) {
        if (bytes.size < 8) return "an FSST table has fewer than 8 bytes";
        const uint64_t head = load<uint64_t>(bytes.data);
        if (head >> 32 != MAGIC) return "an FSST table does not begin with its mark";
        is_coded_ = head >> 24 & 1;
        const unsigned count = head & 255;
        std::memset(lengths_, 0, sizeof(lengths_));
        if (!is_coded_) return nullptr;
        if (bytes.size < 8 + 9 * static_cast<uint64_t>(count)) return "an FSST table ends before its symbols do";
        for (unsigned i = 0; i < count; i++) {
            symbols_[i] = load<uint64_t>(bytes.data + 8 + 8 * i);
            lengths_[i] = bytes.data[8 + 8 * count + i];
            if (lengths_[i] < 1 || lengths_[i] > 8) return "an FSST symbol has a length that is not 1 to 8";
        }
        return nullptr;
    }

    // Decode `n` bytes of codes to `out`, which has room for 8 * n + 8 bytes; `starts` gets n + 1 numbers, where the output of
    // each byte begins (INSIDE for the byte after an escape). Returns how many bytes were written, or -1 for codes that are
    // no symbol's.
    static constexpr uint32_t INSIDE = UINT32_MAX;
    int64_t decode(const uint8_t *in, uint64_t n, uint8_t *const out, uint32_t *starts) const {
        uint8_t *to = out;
        uint64_t i = 0;
        uint32_t bad = 0;
        while (i < n) {
            if (i + 8 <= n) {
                const uint64_t codes = load<uint64_t>(in + i);
                const uint64_t inverse = ~codes;  // a zero byte is an escape
                if (!((inverse - UINT64_C(0x0101010101010101)) & ~inverse & UINT64_C(0x8080808080808080))) {
                    for (unsigned k = 0; k < 8; k++) {
                        const unsigned code = codes >> 8 * k & 255;
                        starts[i + k] = static_cast<uint32_t>(to - out);
                        std::memcpy(to, &symbols_[code], 8);
                        const uint32_t length = lengths_[code];
                        bad |= length - 1;
                        to += length;
                    }
                    i += 8;
                    continue;
                }
            }
            // up to and with the next escape, or the end
            const uint64_t stop = i + 8 < n ? i + 8 : n;
            while (i < stop) {
                const unsigned code = in[i];
                starts[i++] = static_cast<uint32_t>(to - out);
                if (code == ESCAPE) {
                    if (i == n) return -1;
                    *to++ = in[i];
                    starts[i++] = INSIDE;
                } else {
                    std::memcpy(to, &symbols_[code], 8);
                    const uint32_t length = lengths_[code];
                    bad |= length - 1;
                    to += length;
                }
            }
        }
        starts[n] = static_cast<uint32_t>(to - out);
        return bad >> 31 ? -1 : to - out;
    }

   private:
    uint64_t symbols_[256] = {};
    uint8_t lengths_[256] = {};
    bool is_coded_ = false;
};

}  // namespace delta_lance
