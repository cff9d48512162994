// FSST: the table of symbols for given texts, and texts as codes of it (fsst.h decodes them).
//
// A table is made in rounds: each encodes a sample with the table before, counts symbols and pairs of neighbours, and keeps
// the symbols and joined pairs that replace the most bytes. A text matches the longest symbol: one of 3 to 8 bytes by a hash
// of its first three, else one of 2 bytes or 1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "blocks.h"
#include "fsst.h"

namespace delta_lance {

class SymbolEncoder {
   public:
    static constexpr uint64_t TABLE_BYTES = 8 + 256 * 8 + 256, SAMPLE_BYTES = 16 << 10;

    // Make the table for texts: text i are the bytes from offsets[i] to offsets[i + 1]; SLACK bytes after them can be read.
    void train(const uint8_t *text, const uint32_t *offsets, uint64_t n) {
        take_sample(text, offsets, n);
        clear();
        for (const unsigned share : {8u, 38u, 68u, 98u, 128u}) {
            single_.assign(CODES, 0);
            pairs_.assign(CODES * CODES, 0);
            count(share);
            rebuild();
        }
    }

    // Return how many bytes the sample has, and how many its codes.
    void measure(uint64_t &plain, uint64_t &coded) const {
        plain = coded = 0;
        std::vector<uint8_t> out(2 * SAMPLE_BYTES + 16);
        for (const Span &s : sample_) {
            plain += s.size;
            for (uint64_t at = 0; at < s.size; at += SAMPLE_BYTES)
                coded += encode(s.data + at, std::min(SAMPLE_BYTES, s.size - at), out.data());
        }
    }

    // Encode a text of n bytes to `out`, which has room for 2 * n + 1; returns how many bytes its codes have.
    uint64_t encode(const uint8_t *in, uint64_t n, uint8_t *const out) const {
        const uint8_t *const end = in + n;
        uint8_t *to = out;
        while (in < end) {
            const uint64_t word = load<uint64_t>(in);
            const uint64_t rest = static_cast<uint64_t>(end - in);
            const Slot &slot = slots_[hash(word)];
            if (((slot.value ^ word) & slot.mask) == 0 && slot.length <= rest) {
                *to++ = slot.code;
                in += slot.length;
                continue;
            }
            const uint16_t code = rest > 1 ? short_[word & 0xffff] : bytes_[word & 0xff];
            to[0] = static_cast<uint8_t>(code);
            to[1] = static_cast<uint8_t>(word);
            to += 1 + (code >> 8 & 1);
            in += code >> 12;
        }
        return static_cast<uint64_t>(to - out);
    }

    // Write the table as files store it, TABLE_BYTES long.
    void write(uint8_t *out) const {
        std::memset(out, 0, TABLE_BYTES);
        const uint64_t head = static_cast<uint64_t>(SymbolTable::MAGIC) << 32 | UINT64_C(1) << 24 | symbols_.size();
        std::memcpy(out, &head, 8);
        for (size_t i = 0; i < symbols_.size(); i++) {
            std::memcpy(out + 8 + 8 * i, &symbols_[i].value, 8);
            out[8 + 8 * symbols_.size() + i] = static_cast<uint8_t>(symbols_[i].length);
        }
    }

   private:
    // Codes while a table is made: 0 to 255 are bytes without a symbol, those after them symbols.
    enum : unsigned { CODES = 512, MOST_SYMBOLS = 255, HASH_BITS = 11, MOST_LENGTH = 8 };
    static constexpr uint16_t ESCAPED = 0x1000 | 0x100 | SymbolTable::ESCAPE;

    struct Span {
        const uint8_t *data;
        uint64_t size;
    };
    struct Symbol {
        uint64_t value;
        unsigned length;
        uint64_t gain;
    };
    struct Slot {
        uint64_t value, mask;
        uint64_t length;  // NEVER = unused
        uint8_t code;
    };
    static constexpr uint64_t NEVER = UINT64_MAX;

    static uint64_t mask_of(unsigned length) { return length >= 8 ? ~UINT64_C(0) : (UINT64_C(1) << 8 * length) - 1; }
    static unsigned hash(uint64_t word) { return static_cast<unsigned>(((word & 0xffffff) * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - HASH_BITS)); }

    void take_sample(const uint8_t *text, const uint32_t *offsets, uint64_t n) {
        sample_.clear();
        const uint64_t all = offsets[n] - offsets[0];
        uint64_t taken = 0, state = 42;
        if (all <= 2 * SAMPLE_BYTES) {
            for (uint64_t i = 0; i < n; i++) add_sample(text, offsets, i, taken);
            return;
        }
        for (uint64_t k = 0; taken < SAMPLE_BYTES && k < 4 * SAMPLE_BYTES; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            add_sample(text, offsets, (state >> 33) % n, taken);
        }
    }
    void add_sample(const uint8_t *text, const uint32_t *offsets, uint64_t i, uint64_t &taken) {
        uint64_t size = offsets[i + 1] - offsets[i];
        if (!size) return;
        if (size > SAMPLE_BYTES) size = SAMPLE_BYTES;
        sample_.push_back({text + offsets[i], size});
        taken += size;
    }

    void clear() {
        symbols_.clear();
        for (Slot &slot : slots_) slot = {0, ~UINT64_C(0), NEVER, 0};
        for (unsigned i = 0; i < 256; i++) bytes_[i] = ESCAPED;
        for (unsigned i = 0; i < 65536; i++) short_[i] = ESCAPED;
    }

    // Return the code of the symbol that a text begins with, and its length.
    unsigned match(const uint8_t *in, uint64_t rest, unsigned &length) const {
        const uint64_t word = load<uint64_t>(in);
        const Slot &slot = slots_[hash(word)];
        if (((slot.value ^ word) & slot.mask) == 0 && slot.length <= rest) {
            length = static_cast<unsigned>(slot.length);
            return 256 + slot.code;
        }
        const uint16_t code = rest > 1 ? short_[word & 0xffff] : bytes_[word & 0xff];
        length = code >> 12;
        return code >> 8 & 1 ? static_cast<unsigned>(word & 0xff) : 256 + (code & 0xff);
    }

    void count(unsigned share) {
        uint64_t state = 7;
        for (const Span &s : sample_) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            if ((state >> 40 & 127) > share) continue;
            const uint8_t *in = s.data, *const end = in + s.size;
            unsigned before = CODES;
            while (in < end) {
                unsigned length;
                const unsigned code = match(in, static_cast<uint64_t>(end - in), length);
                single_[code]++;
                if (length > 1) single_[*in]++;
                if (before < CODES) {
                    pairs_[before * CODES + code]++;
                    if (length > 1) pairs_[before * CODES + *in]++;
                }
                before = code;
                in += length;
            }
        }
    }

    Symbol symbol_of(unsigned code) const { return code < 256 ? Symbol{code, 1, 0} : symbols_[code - 256]; }

    void rebuild() {
        std::vector<Symbol> found;
        for (unsigned a = 0; a < CODES; a++) {
            if (!single_[a]) continue;
            const Symbol first = symbol_of(a);
            // a byte without a symbol takes two codes
            found.push_back({first.value, first.length, static_cast<uint64_t>(single_[a]) * first.length * (first.length == 1 ? 8 : 1)});
            if (first.length == MOST_LENGTH) continue;
            for (unsigned b = 0; b < CODES; b++) {
                const uint32_t times = pairs_[a * CODES + b];
                if (times < 2) continue;
                const Symbol second = symbol_of(b);
                const unsigned length = std::min<unsigned>(first.length + second.length, MOST_LENGTH);
                const uint64_t value = (first.value | second.value << 8 * first.length) & mask_of(length);
                found.push_back({value, length, static_cast<uint64_t>(times) * length});
            }
        }
        std::sort(found.begin(), found.end(), [](const Symbol &x, const Symbol &y) { return x.value != y.value ? x.value < y.value : x.length < y.length; });
        size_t kept = 0;
        for (const Symbol &s : found) {
            if (kept && found[kept - 1].value == s.value && found[kept - 1].length == s.length) found[kept - 1].gain += s.gain;
            else found[kept++] = s;
        }
        found.resize(kept);
        std::sort(found.begin(), found.end(), [](const Symbol &x, const Symbol &y) {
            return x.gain != y.gain ? x.gain > y.gain : x.value != y.value ? x.value < y.value : x.length < y.length;
        });
        clear();
        for (const Symbol &s : found) {
            if (symbols_.size() == MOST_SYMBOLS) break;
            add(s);
        }
        finish();
    }

    void add(const Symbol &s) {
        if (s.length >= 3) {
            Slot &slot = slots_[hash(s.value)];
            if (slot.length != NEVER) return;
            slot = {s.value, mask_of(s.length), s.length, static_cast<uint8_t>(symbols_.size())};
        }
        symbols_.push_back(s);
    }

    // Fill the tables of short symbols: two bytes begin with the symbol of both, else with that of the first one.
    void finish() {
        for (size_t i = 0; i < symbols_.size(); i++)
            if (symbols_[i].length == 1) bytes_[symbols_[i].value] = static_cast<uint16_t>(0x1000 | i);
        for (unsigned i = 0; i < 65536; i++) short_[i] = bytes_[i & 0xff];
        for (size_t i = 0; i < symbols_.size(); i++)
            if (symbols_[i].length == 2) short_[symbols_[i].value] = static_cast<uint16_t>(0x2000 | i);
    }

    std::vector<Symbol> symbols_;
    std::vector<Span> sample_;
    std::vector<uint32_t> single_, pairs_;
    Slot slots_[1 << HASH_BITS];
    uint16_t bytes_[256];
    uint16_t short_[65536];
};

}  // namespace delta_lance
