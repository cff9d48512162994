/* Classification of the bytes of a path, and percent-decoding (RFC 3986, section 2.1). */
#ifndef DELTA_PATH_TEXTS_H
#define DELTA_PATH_TEXTS_H

#include <stdint.h>
#include <string.h>

enum { NOT_ASCII = 1, PERCENT = 2, COLON = 4, DOTS = 8, NUL = 16 };

/* Return which of these kinds of bytes a text contains; one loop without branches, which compilers vectorise. */
static inline __attribute__((always_inline)) int find_traits(const uint8_t *text, int64_t size) {
    uint8_t high = 0, percent = 0, colon = 0, dots = 0, nul = 0;
    if (!size) return 0;
    high |= text[0], percent |= text[0] == '%', colon |= text[0] == ':', nul |= text[0] == 0;
    for (int64_t i = 1; i < size; i++) {
        high |= text[i];
        percent |= text[i] == '%';
        colon |= text[i] == ':';
        nul |= text[i] == 0;
        dots |= (uint8_t)(text[i - 1] == '.') & (uint8_t)(text[i] == '.');
    }
    return (high & 0x80 ? NOT_ASCII : 0) | (percent ? PERCENT : 0) | (colon ? COLON : 0) | (dots ? DOTS : 0) |
           (nul ? NUL : 0);
}

static int text_traits_plain(const uint8_t *text, int64_t size) { return find_traits(text, size); }

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) static int text_traits_avx2(const uint8_t *text, int64_t size) {
    return find_traits(text, size);
}
static int text_traits(const uint8_t *text, int64_t size) {
    return __builtin_cpu_supports("avx2") ? text_traits_avx2(text, size) : text_traits_plain(text, size);
}
#else
static int text_traits(const uint8_t *text, int64_t size) { return text_traits_plain(text, size); }
#endif

static inline int hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode escapes into `out`, which has room for `size` bytes, and return the number of bytes written. Invalid escapes are
   copied. */
static int64_t percent_decode(const uint8_t *text, int64_t size, uint8_t *out) {
    int64_t written = 0;
    for (int64_t i = 0; i < size; i++) {
        int high, low;
        if (text[i] == '%' && i + 2 < size && (high = hex_digit(text[i + 1])) >= 0 &&
            (low = hex_digit(text[i + 2])) >= 0) {
            out[written++] = (uint8_t)(high << 4 | low);
            i += 2;
        } else {
            out[written++] = text[i];
        }
    }
    return written;
}

/* Return whether a text begins with the scheme of a URI. */
static int has_scheme(const uint8_t *text, int64_t size) {
    for (int64_t i = 0; i < size; i++) {
        uint8_t c = text[i], letter = (uint8_t)((c | 0x20) - 'a') < 26;
        if (c == ':') return i > 0;
        if (!letter && (i == 0 || !((uint8_t)(c - '0') < 10 || c == '+' || c == '.' || c == '-'))) return 0;
    }
    return 0;
}

/* Return whether no storage changes a relative path: no segment is empty, the last one included, and none is a dot. */
static int is_normal(const uint8_t *text, int64_t size) {
    int64_t start = 0;
    for (int64_t i = 0; i <= size; i++) {
        if (i < size && text[i] != '/') continue;
        if (i == start || (i == start + 1 && text[start] == '.')) return 0;
        start = i + 1;
    }
    return 1;
}

#endif
