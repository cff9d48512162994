// Rows of columns picked by index, and dictionary codes turned into strings. No allocation, no Python.
// The caller has checked that every index is below the column's length and that the length fits the buffers.
#pragma once

#include <stdint.h>
#include <string.h>

// Dictionary strings up to this length are laid out in slots and copied by one fixed-size move.
#define SHORT_STRING 16
// Of a column of strings whose rows are picked in any order, so many rows, and so many bytes of each, are fetched ahead.
#define ROWS_AHEAD 8
#define MOST_AHEAD 512

static inline int bit_at(const uint8_t *bits, int64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

static int rows_in_range(const int32_t *rows, int64_t n, int64_t length) {
    // one comparison a row: a negative index is a large unsigned one
    uint32_t bad = 0, limit = length > INT32_MAX ? INT32_MAX : (uint32_t)length;
    for (int64_t i = 0; i < n; i++) bad |= (uint32_t)rows[i] >= limit;
    return !bad;
}

#define GATHER_FIXED(T) \
    { const T *from = (const T *)source; T *to = (T *)out; for (int64_t i = 0; i < n; i++) to[i] = from[rows[i]]; }

typedef struct { uint64_t low, high; } wide_t;

static int gather_fixed(const uint8_t *source, int width, const int32_t *rows, int64_t n, uint8_t *out) {
    switch (width) {
        case 1: GATHER_FIXED(uint8_t) return 1;
        case 2: GATHER_FIXED(uint16_t) return 1;
        case 4: GATHER_FIXED(uint32_t) return 1;
        case 8: GATHER_FIXED(uint64_t) return 1;
        case 16: GATHER_FIXED(wide_t) return 1;
    }
    return 0;
}

// Returns how many of the picked bits are set; bits behind the last one are zero. rows NULL: all, in order.
static int64_t gather_bits(const uint8_t *bits, int64_t offset, const int32_t *rows, int64_t n, uint8_t *out) {
    int64_t set = 0;
    for (int64_t i = 0; i < n; i += 8) {
        int64_t left = n - i < 8 ? n - i : 8;
        unsigned byte = 0;
        for (int64_t k = 0; k < left; k++) byte |= (unsigned)bit_at(bits, offset + (rows ? rows[i + k] : i + k)) << k;
        out[i >> 3] = (uint8_t)byte;
        set += __builtin_popcount(byte);
    }
    return set;
}

typedef struct {
    const int32_t *offsets;  // of the array's first string
    const uint8_t *data;
    int64_t length;          // strings
    int64_t data_bytes;
} text_column;

// Whether offsets ascend from 0 within the data.
static int text_is_sound(const text_column *t) {
    if (t->length == 0) return 1;
    int bad = t->offsets[0] < 0 || t->offsets[t->length] > t->data_bytes;
    for (int64_t i = 0; i < t->length; i++) bad |= t->offsets[i + 1] < t->offsets[i];
    return !bad;
}

// Which string is in row i, -1 for none: by code and row, with nulls if `valid` reports it.
typedef struct {
    const int32_t *codes;   // NULL: a row is its own code
    const int32_t *rows;    // NULL: all, in order
    const uint8_t *valid;   // NULL: no nulls
    int64_t valid_offset;
    int64_t n;
} picks_t;

static inline int64_t pick(const picks_t *p, int64_t i) {
    int64_t row = p->rows ? p->rows[i] : i;
    if (p->valid && !bit_at(p->valid, p->valid_offset + row)) return -1;
    return p->codes ? p->codes[row] : row;
}

// The same of the requested rows alone, which are no codes: few of a long column.
static int text_rows_are_sound(const text_column *t, const picks_t *p) {
    int bad = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const uint32_t row = (uint32_t)p->rows[i];
        if (row >= (uint64_t)t->length) return 0;
        const int32_t start = t->offsets[row], end = t->offsets[row + 1];
        bad |= start < 0 || end < start || end > t->data_bytes;
    }
    return !bad;
}

// Fills n + 1 offsets; returns the bytes needed, -1 for a code that is not in the column, -2 beyond 2 GiB.
static int64_t text_offsets(const text_column *t, const picks_t *p, int32_t *out) {
    int64_t total = 0;
    int bad = 0;
    if (!p->valid && p->codes && !p->rows) {  // the plain scan
        for (int64_t i = 0; i < p->n; i++) {
            uint32_t code = (uint32_t)p->codes[i];
            if (code >= (uint64_t)t->length) { bad = 1; code = 0; if (!t->length) return -1; }
            out[i] = (int32_t)total;
            total += t->offsets[code + 1] - t->offsets[code];
        }
    } else if (!p->valid && p->codes) {
        for (int64_t i = 0; i < p->n; i++) {
            uint32_t code = (uint32_t)p->codes[p->rows[i]];
            if (code >= (uint64_t)t->length) { bad = 1; code = 0; if (!t->length) return -1; }
            out[i] = (int32_t)total;
            total += t->offsets[code + 1] - t->offsets[code];
        }
    } else {
        for (int64_t i = 0; i < p->n; i++) {
            int64_t code = pick(p, i);
            out[i] = (int32_t)total;
            if (code == -1 && p->valid) continue;
            if (code < 0 || code >= t->length) { bad = 1; continue; }
            total += t->offsets[code + 1] - t->offsets[code];
        }
    }
    if (bad) return -1;
    out[p->n] = (int32_t)total;
    return total > INT32_MAX ? -2 : total;
}

// Copies the strings to where their offsets specify.
static void text_copy(const text_column *t, const picks_t *p, const int32_t *at, uint8_t *out) {
    // rows in any order wait for memory: that of several is on its way at once
    const int64_t known = p->rows && !p->codes ? p->n : 0;
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t next = i + ROWS_AHEAD;
        if (next < known) {
            const int32_t size = at[next + 1] - at[next];
            const uint8_t *const data = t->data + t->offsets[p->rows[next]];
            for (int32_t line = 0; line < size && line < MOST_AHEAD; line += 64) __builtin_prefetch(data + line);
        }
        int64_t code = pick(p, i);
        if (code >= 0) memcpy(out + at[i], t->data + t->offsets[code], (size_t)(at[i + 1] - at[i]));
    }
}

// Whether every string fits a slot.
static int text_is_short(const text_column *t) {
    int longer = 0;
    for (int64_t i = 0; i < t->length; i++) longer |= t->offsets[i + 1] - t->offsets[i] > SHORT_STRING;
    return !longer;
}

// Lays every string of a column into a slot of its own.
static void text_slots(const text_column *t, uint8_t *slots) {
    for (int64_t i = 0; i < t->length; i++)
        memcpy(slots + i * SHORT_STRING, t->data + t->offsets[i], (size_t)(t->offsets[i + 1] - t->offsets[i]));
}

// Copies whole slots, in ascending order, so that what one writes beyond its end the next one writes over; `out` has
// SHORT_STRING bytes behind its end.
static void text_copy_slots(const uint8_t *slots, const picks_t *p, const int32_t *at, uint8_t *out) {
    if (p->valid) {
        for (int64_t i = 0; i < p->n; i++) {
            int64_t code = pick(p, i);
            if (code >= 0) memcpy(out + at[i], slots + code * SHORT_STRING, SHORT_STRING);
        }
    } else if (p->rows) {
        for (int64_t i = 0; i < p->n; i++)
            memcpy(out + at[i], slots + (int64_t)p->codes[p->rows[i]] * SHORT_STRING, SHORT_STRING);
    } else {
        for (int64_t i = 0; i < p->n; i++)
            memcpy(out + at[i], slots + (int64_t)p->codes[i] * SHORT_STRING, SHORT_STRING);
    }
}
