// A strict JSON scanner (RFC 8259) over one block of memory, without allocation and without copies.
//
// The text is [p, end). Loads may extend to `readable`, never beyond it. The caller sets `readable` to the end of the memory
// around the text: text within a larger buffer is scanned 16 bytes at a time to its end, and the last bytes of text at the
// end of a buffer are scanned one by one. The text needs no padding.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace delta_json {

constexpr int kMaxDepth = 1000;

// The text between two quotes, still escaped, or any raw JSON text.
struct Slice {
    const char *begin = nullptr;
    const char *end = nullptr;
    bool escaped = false;

    size_t size() const { return static_cast<size_t>(end - begin); }
    std::string_view view() const { return {begin, size()}; }
};

inline bool is_digit(int c) { return c >= '0' && c <= '9'; }

inline int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

inline int hex4(const char *p) {
    int value = 0;
    for (int i = 0; i < 4; ++i) {
        int digit = hex_value(p[i]);
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

#if defined(__SSE2__)
// One bit for each byte of a block of 64.
struct Block {
    __m128i v[4];

    explicit Block(const char *p) {
        for (int i = 0; i < 4; ++i) v[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p) + i);
    }
    uint64_t equal(char c) const {
        const __m128i want = _mm_set1_epi8(c);
        uint64_t bits = 0;
        for (int i = 0; i < 4; ++i)
            bits |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(v[i], want)))) << (16 * i);
        return bits;
    }
    uint64_t control() const {
        const __m128i last = _mm_set1_epi8(0x1f);
        uint64_t bits = 0;
        for (int i = 0; i < 4; ++i)
            bits |= static_cast<uint64_t>(static_cast<uint32_t>(
                        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v[i], last), v[i])))) << (16 * i);
        return bits;
    }
};
#endif

// Return the bytes that a backslash escapes. `backslashes` are those of a block; `carry` specifies whether the first byte of
// the block is escaped, and is set to the same for the next block.
inline uint64_t escaped_bytes(uint64_t backslashes, uint64_t &carry) {
    uint64_t starts = backslashes & ~carry;
    uint64_t escaped = carry;
    if ((starts & (starts << 1)) == 0) {  // no two consecutive backslashes: each one starts an escape
        escaped |= starts << 1;
        carry = starts >> 63;
        return escaped;
    }
    carry = 0;
    while (starts) {
        int i = __builtin_ctzll(starts);
        starts &= starts - 1;
        if (i == 63) {
            carry = 1;
            break;
        }
        escaped |= uint64_t{2} << i;
        starts &= ~(uint64_t{2} << i);
    }
    return escaped;
}

struct Scanner {
    const char *p;
    const char *end;
    const char *readable;
    const char *expected = nullptr;  // set when `p` is at the place of the fault

    Scanner(const char *text, size_t size, const char *memory_end) : p(text), end(text + size), readable(memory_end) {}

    bool fail(const char *what) {
        expected = what;
        return false;
    }
    int peek() const { return p < end ? static_cast<unsigned char>(*p) : -1; }

    void space() {
        while (p < end && static_cast<unsigned char>(*p) <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) ++p;
    }

    bool take(char c, const char *what) {
        if (peek() != static_cast<unsigned char>(c)) return fail(what);
        ++p;
        return true;
    }

    // Return the first quote, backslash or control byte at or after q, or `end` if there is none.
    const char *plain_end(const char *q) const {
#if defined(__SSE2__)
        const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);
        while (q < end && readable - q >= 16) {
            __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i *>(q));
            __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                                       _mm_cmpeq_epi8(_mm_min_epu8(v, control), v));
            unsigned bits = static_cast<unsigned>(_mm_movemask_epi8(hit));
            if (bits) {
                q += __builtin_ctz(bits);
                return q < end ? q : end;
            }
            q += 16;
        }
        if (q > end) return end;
#endif
        while (q < end && *q != '"' && *q != '\\' && static_cast<unsigned char>(*q) >= 0x20) ++q;
        return q;
    }

    bool escape_at(const char *q) {  // q is the byte after a backslash
        if (q < end) switch (*q) {
            case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
                return true;
            case 'u':
                if (end - q >= 5 && hex4(q + 1) >= 0) return true;
        }
        p = q < end ? q : end;
        return fail(q < end ? "a valid escape after the backslash" : "the string's closing quote");
    }

    // Precondition: p is at the opening quote. Moves p after the closing one.
    bool string(Slice &out) {
        const char *q = plain_end(p + 1);
        if (q < end && *q == '"') {
            out = {p + 1, q, false};
            p = q + 1;
            return true;
        }
        return escaped_string(out, q);
    }

    bool escaped_string(Slice &out, const char *q) {
        const char *begin = p + 1;
        while (q < end && *q == '\\') {
#if defined(__SSE2__)
            uint64_t carry = 0;
            while (q < end && readable - q >= 64) {
                Block block(q);
                uint64_t quotes = block.equal('"');
                uint64_t escaped = escaped_bytes(block.equal('\\'), carry);
                uint64_t stop = (quotes & ~escaped) | block.control();
                uint64_t before = stop ? (stop & -stop) - 1 : ~uint64_t{0};
                for (uint64_t odd = escaped & ~quotes & before; odd; odd &= odd - 1)
                    if (!escape_at(q + __builtin_ctzll(odd))) return false;
                if (stop) {
                    q += __builtin_ctzll(stop);
                    carry = 0;
                    goto stopped;
                }
                q += 64;
            }
            if (carry) {
                if (!escape_at(q)) return false;
                ++q;
            }
            q = plain_end(q < end ? q : end);
            if (q >= end || *q != '\\') break;
#endif
            if (!escape_at(q + 1)) return false;
            q = plain_end(q + 2);
        }
#if defined(__SSE2__)
    stopped:
#endif
        if (q < end && *q == '"') {
            out = {begin, q, true};
            p = q + 1;
            return true;
        }
        p = q < end ? q : end;
        return fail(p < end ? "no bare control character inside a string" : "the string's closing quote");
    }

    bool number() {
        if (peek() == '-') ++p;
        if (peek() == '0') {
            ++p;
        } else {
            if (!is_digit(peek())) return fail("a digit");
            while (is_digit(peek())) ++p;
        }
        if (peek() == '.') {
            ++p;
            if (!is_digit(peek())) return fail("a digit after the point");
            while (is_digit(peek())) ++p;
        }
        if (peek() == 'e' || peek() == 'E') {
            ++p;
            if (peek() == '+' || peek() == '-') ++p;
            if (!is_digit(peek())) return fail("a digit in the exponent");
            while (is_digit(peek())) ++p;
        }
        return true;
    }

    bool word(const char *text, size_t size) {
        if (static_cast<size_t>(end - p) < size || std::memcmp(p, text, size) != 0) return fail("a JSON value");
        p += size;
        return true;
    }

    bool scalar() {
        switch (peek()) {
            case '"': {
                Slice ignored;
                return string(ignored);
            }
            case 't': return word("true", 4);
            case 'f': return word("false", 5);
            case 'n': return word("null", 4);
            case '-': case '0': case '1': case '2': case '3': case '4':
            case '5': case '6': case '7': case '8': case '9':
                return number();
        }
        return fail("a JSON value");
    }

    // Precondition: p is at '"' of a key. Moves p to its value.
    bool key(Slice &out) {
        if (peek() != '"') return fail("a key in quotes");
        if (!string(out)) return false;
        if (peek() != ':') {
            space();
            if (peek() != ':') return fail("':'");
        }
        ++p;
        space();
        return true;
    }

    // Skip one value, and check its grammar.
    bool skip() {
        int c = peek();
        if (c != '{' && c != '[') return scalar();
        char closing[kMaxDepth];
        int depth = 0;
        for (;;) {  // p is at the start of a value
            c = peek();
            if (c == '{' || c == '[') {
                if (depth == kMaxDepth) return fail("less deeply nested JSON");
                closing[depth++] = c == '{' ? '}' : ']';
                ++p;
                space();
                if (peek() != closing[depth - 1]) {
                    Slice ignored;
                    if (c == '{' && !key(ignored)) return false;
                    continue;
                }
            } else {
                if (!scalar()) return false;
                space();
            }
            while (peek() == closing[depth - 1]) {
                ++p;
                if (--depth == 0) return true;
                space();
            }
            if (peek() != ',') return fail(closing[depth - 1] == '}' ? "',' or '}'" : "',' or ']'");
            ++p;
            space();
            Slice ignored;
            if (closing[depth - 1] == '}' && !key(ignored)) return false;
        }
    }

    // Call member(key) with p at the value of each member. The callback has to move p after the value.
    template <class Member>
    bool object(Member &&member) {
        if (!take('{', "'{'")) return false;
        space();
        if (peek() == '}') {
            ++p;
            return true;
        }
        for (;;) {
            Slice name;
            if (!key(name) || !member(name)) return false;
            if (peek() != ',' && peek() != '}') space();
            if (peek() == '}') {
                ++p;
                return true;
            }
            if (!take(',', "',' or '}'")) return false;
            if (peek() != '"') space();
        }
    }
};

inline char *put_utf8(uint32_t c, char *out) {
    if (c < 0x80) {
        *out++ = static_cast<char>(c);
    } else if (c < 0x800) {
        *out++ = static_cast<char>(0xc0 | (c >> 6));
        *out++ = static_cast<char>(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *out++ = static_cast<char>(0xe0 | (c >> 12));
        *out++ = static_cast<char>(0x80 | ((c >> 6) & 63));
        *out++ = static_cast<char>(0x80 | (c & 63));
    } else {
        *out++ = static_cast<char>(0xf0 | (c >> 18));
        *out++ = static_cast<char>(0x80 | ((c >> 12) & 63));
        *out++ = static_cast<char>(0x80 | ((c >> 6) & 63));
        *out++ = static_cast<char>(0x80 | (c & 63));
    }
    return out;
}

// `unescape` copies 16 bytes at a time, and may write up to this many bytes after its result.
constexpr size_t kUnescapeSlack = 16;

// Write the text of a scanned string. `out` has room for its size + kUnescapeSlack bytes. Returns the end of the written
// text, or null for half a surrogate pair, which UTF-8 can't represent; `s.begin` is then its place.
inline char *unescape(Slice &s, char *out, const char *readable) {
    const char *p = s.begin;
    while (p < s.end) {
#if defined(__SSE2__)
        if (readable - p >= 16) {
            __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
            _mm_storeu_si128(reinterpret_cast<__m128i *>(out), v);
            unsigned bits = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))));
            ptrdiff_t plain = bits ? __builtin_ctz(bits) : 16;
            if (plain > s.end - p) plain = s.end - p;
            p += plain;
            out += plain;
            if (p == s.end) break;
            if (plain == 16) continue;
        }
#else
        (void)readable;
#endif
        if (*p != '\\') {
            *out++ = *p++;
            continue;
        }
        char c = p[1];
        p += 2;
        switch (c) {
            case 'b': *out++ = '\b'; break;
            case 'f': *out++ = '\f'; break;
            case 'n': *out++ = '\n'; break;
            case 'r': *out++ = '\r'; break;
            case 't': *out++ = '\t'; break;
            case 'u': {
                uint32_t unit = static_cast<uint32_t>(hex4(p));
                p += 4;
                if (unit >= 0xd800 && unit < 0xe000) {
                    int low = s.end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? hex4(p + 2) : -1;
                    if (unit >= 0xdc00 || low < 0xdc00 || low > 0xdfff) {
                        s.begin = p - 6;
                        return nullptr;
                    }
                    unit = 0x10000 + ((unit - 0xd800) << 10) + (static_cast<uint32_t>(low) - 0xdc00);
                    p += 6;
                }
                out = put_utf8(unit, out);
                break;
            }
            default: *out++ = c;  // quote, backslash, slash
        }
    }
    return out;
}

// Return the first byte that is not part of valid UTF-8, or null if all are.
inline const char *invalid_utf8(const char *p, const char *end) {
    while (p < end) {
#if defined(__SSE2__)
        while (end - p >= 64) {
            const __m128i *v = reinterpret_cast<const __m128i *>(p);
            __m128i any = _mm_or_si128(_mm_or_si128(_mm_loadu_si128(v), _mm_loadu_si128(v + 1)),
                                       _mm_or_si128(_mm_loadu_si128(v + 2), _mm_loadu_si128(v + 3)));
            if (_mm_movemask_epi8(any)) break;
            p += 64;
        }
        if (p == end) return nullptr;
#endif
        unsigned char c = static_cast<unsigned char>(*p);
        if (c < 0x80) {
            ++p;
            continue;
        }
        int more = c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : 0;
        if (more == 0 || end - p <= more) return p;
        unsigned char next = static_cast<unsigned char>(p[1]);
        // the second byte distinguishes overlong forms, surrogates and code points beyond U+10FFFF
        unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (next < low || next > high) return p;
        for (int i = 2; i <= more; ++i)
            if ((static_cast<unsigned char>(p[i]) & 0xc0) != 0x80) return p;
        p += more + 1;
    }
    return nullptr;
}

inline bool is_ascii(const char *p, const char *end) {
    uint64_t any = 0;
    for (; end - p >= 8; p += 8) {
        uint64_t word;
        std::memcpy(&word, p, 8);
        any |= word;
    }
    for (; p < end; ++p) any |= static_cast<uint64_t>(static_cast<unsigned char>(*p));
    return (any & 0x8080808080808080u) == 0;
}

// A decimal number of any notation as (-1)^negative * magnitude * 10^exponent, magnitude without trailing zeros.
struct Decimal {
    unsigned __int128 magnitude = 0;
    int64_t exponent = 0;
    bool negative = false;

    // Returns false if the text is not a number, or has more than 38 significant digits.
    bool parse(const char *p, const char *end) {
        constexpr int kDigits = 38;
        if (p < end && (*p == '-' || *p == '+')) negative = *p++ == '-';
        int digits = 0, seen = 0;
        int64_t zeros = 0;
        bool point = false;
        for (; p < end; ++p) {
            if (*p == '.' && !point) {
                point = true;
                continue;
            }
            if (!is_digit(static_cast<unsigned char>(*p))) break;
            ++seen;
            if (point) --exponent;
            if (*p == '0') {
                if (digits) ++zeros;  // appended to the magnitude only if a nonzero digit follows
                continue;
            }
            if (digits + zeros + 1 > kDigits) return false;
            for (; zeros; --zeros, ++digits) magnitude *= 10;
            magnitude = magnitude * 10 + static_cast<unsigned>(*p - '0');
            ++digits;
        }
        if (!seen) return false;
        exponent += zeros;
        if (p < end && (*p == 'e' || *p == 'E')) {
            bool minus = false;
            if (++p < end && (*p == '-' || *p == '+')) minus = *p++ == '-';
            if (p == end) return false;
            int64_t shift = 0;
            for (; p < end && is_digit(static_cast<unsigned char>(*p)); ++p)
                if (shift < 1000000000) shift = shift * 10 + (*p - '0');
            exponent += minus ? -shift : shift;
        }
        return p == end;
    }

    // Return the value times 10^scale, if that is a whole number below 10^precision.
    bool scaled(int precision, int scale, __int128 &out) const {
        unsigned __int128 value = magnitude, limit = 1;
        for (int i = 0; i < precision; ++i) limit *= 10;
        if (value) {
            int64_t shift = exponent + scale;
            if (shift < 0 || shift > 38) return false;
            for (; shift; --shift) {
                if (value > (limit - 1) / 10) return false;
                value *= 10;
            }
            if (value >= limit) return false;
        }
        out = negative ? -static_cast<__int128>(value) : static_cast<__int128>(value);
        return true;
    }
};

// Parse a whole number written as 12, 12.0 or 1.2e1. Returns false for other numbers and those beyond int64.
inline bool parse_int64(const char *p, const char *end, int64_t &out) {
    const char *q = p;
    bool negative = q < end && *q == '-';
    if (negative) ++q;
    if (q == end) return false;
    if (end - q <= 18) {  // numbers of at most this many digits can't overflow
        int64_t value = 0;
        while (q < end && is_digit(static_cast<unsigned char>(*q))) value = value * 10 + (*q++ - '0');
        if (q == end) {
            out = negative ? -value : value;
            return true;
        }
    }
    Decimal number;
    __int128 wide;
    if (!number.parse(p, end) || !number.scaled(19, 0, wide)) return false;
    if (wide < INT64_MIN || wide > INT64_MAX) return false;
    out = static_cast<int64_t>(wide);
    return true;
}

}  // namespace delta_json
