// Rows of columns selected by index, and dictionary codes decoded to strings. No allocation, no Python. Preconditions: every
// index is below the column's length, and the buffers contain `length` values.
#pragma once

#include <stdint.h>
#include <string.h>

// Dictionary strings of up to this length are stored in slots and copied by moves of a fixed size.
#define MOST_SHORT 32
// Rows of a column of strings that are selected in any order: the number of rows, and of bytes of each, that are prefetched.
#define ROWS_AHEAD 8
#define MOST_AHEAD 512

static inline int bit_at(const uint8_t *bits, int64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

static int rows_in_range(const int32_t *rows, int64_t n, int64_t length) {
    // one comparison for each row: a negative index is a large unsigned one
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

// Select bits, and return how many of them are set; bits after the last one are zero. rows NULL: all rows, in order.
static int64_t gather_bits(const uint8_t *bits, int64_t offset, const int32_t *rows, int64_t n, uint8_t *out) {
    int64_t set = 0, first = 0;
    if (!rows && offset % 8 == 0) {
        first = n / 8 * 8;
        const uint8_t *const from = bits + offset / 8;
        memcpy(out, from, (size_t)(n / 8));
        int64_t at = 0;
        for (uint64_t word; at + 8 <= n / 8; at += 8) {
            memcpy(&word, from + at, 8);
            set += __builtin_popcountll(word);
        }
        for (; at < n / 8; at++) set += __builtin_popcount(from[at]);
    }
    for (int64_t i = first; i < n; i += 8) {
        int64_t left = n - i < 8 ? n - i : 8;
        unsigned byte = 0;
        for (int64_t k = 0; k < left; k++) byte |= (unsigned)bit_at(bits, offset + (rows ? rows[i + k] : i + k)) << k;
        out[i >> 3] = (uint8_t)byte;
        set += __builtin_popcount(byte);
    }
    return set;
}

typedef struct {
    const int32_t *offsets;  // of the first string of the array
    const uint8_t *data;
    int64_t length;          // strings
    int64_t data_bytes;
} text_column;

// Return whether the offsets ascend from at least 0 and the last one is within the data.
static int text_is_sound(const text_column *t) {
    if (t->length == 0) return 1;
    int bad = t->offsets[0] < 0 || t->offsets[t->length] > t->data_bytes;
    for (int64_t i = 0; i < t->length; i++) bad |= t->offsets[i + 1] < t->offsets[i];
    return !bad;
}

// The string of row i, if the row has one: by code and row, with nulls if `valid` reports them.
typedef struct {
    const int32_t *codes;   // NULL: the code of a row is its index
    const int32_t *rows;    // NULL: all rows, in order
    const uint8_t *valid;   // NULL: no nulls
    int64_t valid_offset;
    int64_t n;
} picks_t;

// The same for the requested rows alone, without codes: few rows of a long column.
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

// Write n + 1 offsets. Returns the bytes of the strings, -1 for a code that is outside of the column, -2 beyond 2 GiB.
static int64_t text_offsets(const text_column *t, const picks_t *p, int32_t *out) {
    int64_t total = 0;
    int bad = 0;
    if (!p->valid && p->codes && !p->rows) {  // all rows, without codes or nulls
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
            const int64_t row = p->rows ? p->rows[i] : i, code = p->codes ? p->codes[row] : row;
            const int is_there = p->valid ? bit_at(p->valid, p->valid_offset + row) : 1;
            const int is_in = (uint64_t)code < (uint64_t)t->length;
            bad |= is_there & !is_in;
            out[i] = (int32_t)total;
            // nulls are distributed at random: no branch depends on them
            const int32_t *const own = t->offsets + (is_in ? code : 0);
            total += is_there & is_in ? own[t->length > 0] - own[0] : 0;
        }
    }
    if (bad) return -1;
    out[p->n] = (int32_t)total;
    return total > INT32_MAX ? -2 : total;
}

// Copy the strings to the places that their offsets specify.
static void text_copy(const text_column *t, const picks_t *p, const int32_t *at, uint8_t *out) {
    // rows in any order wait for memory: those of several rows are loaded at the same time
    const int64_t known = p->rows && !p->codes ? p->n : 0;
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t next = i + ROWS_AHEAD;
        if (next < known) {
            const int32_t size = at[next + 1] - at[next];
            const uint8_t *const data = t->data + t->offsets[p->rows[next]];
            for (int32_t line = 0; line < size && line < MOST_AHEAD; line += 64) __builtin_prefetch(data + line);
        }
        const int32_t size = at[i + 1] - at[i];
        if (!size) continue;  // null, or empty
        const int64_t row = p->rows ? p->rows[i] : i;
        memcpy(out + at[i], t->data + t->offsets[p->codes ? p->codes[row] : row], (size_t)size);
    }
}

// Rows that are processed together.
#define BLOCK_ROWS 512

// Strings of a dictionary in slots of one width, 8, 16 or 32 bytes, and their lengths, followed by an empty string for nulls.
typedef struct {
    uint8_t *slots;
    const uint8_t *lengths;
    int width;
    int common;  // the length of all strings, -1 if they differ
} short_texts;

// Return the width of the slots that every string of a column fits, 0 if there is none.
static int text_slot_width(const text_column *t) {
    int32_t most = 0;
    for (int64_t i = 0; i < t->length; i++) {
        const int32_t size = t->offsets[i + 1] - t->offsets[i];
        if (size > most) most = size;
    }
    return most <= 8 ? 8 : most <= 16 ? 16 : most <= MOST_SHORT ? MOST_SHORT : 0;
}

// Copy every string of a column into a slot. Precondition: there is room for one more slot and length than strings.
static void text_slots(const text_column *t, uint8_t *slots, uint8_t *lengths, int width, short_texts *out) {
    int common = t->length ? t->offsets[1] - t->offsets[0] : -1;
    for (int64_t i = 0; i < t->length; i++) {
        const int32_t size = t->offsets[i + 1] - t->offsets[i];
        lengths[i] = (uint8_t)size;
        memcpy(slots + i * width, t->data + t->offsets[i], (size_t)size);
        if (size != common) common = -1;
    }
    lengths[t->length] = 0;
    out->slots = slots;
    out->lengths = lengths;
    out->width = width;
    out->common = common;
}

// Sum the lengths of strings by their codes, for the rows of one block.
static int64_t sum_lengths(const uint8_t *lengths, const int32_t *codes, int64_t n) {
    uint32_t sums[4] = {0, 0, 0, 0};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4)
        for (int lane = 0; lane < 4; lane++) sums[lane] += lengths[codes[k + lane]];
    for (; k < n; k++) sums[0] += lengths[codes[k]];
    return (int64_t)sums[0] + sums[1] + sums[2] + sums[3];
}

// Return the bytes of the requested strings, -1 for a code that is outside of the column, -2 beyond 2 GiB. Writes the offsets
// too if rows are selected or may be null.
static int64_t short_text_bytes(const short_texts *s, const picks_t *p, int64_t length, int32_t *ends) {
    int64_t total = 0;
    if (!p->valid && !p->rows) {
        for (int64_t i = 0; i < p->n; i += BLOCK_ROWS) {
            const int64_t n = p->n - i < BLOCK_ROWS ? p->n - i : BLOCK_ROWS;
            if (!rows_in_range(p->codes + i, n, length)) return -1;
            total += s->common >= 0 ? n * s->common : sum_lengths(s->lengths, p->codes + i, n);
        }
        return total > INT32_MAX ? -2 : total;
    }
    uint32_t bad = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t row = p->rows ? p->rows[i] : i;
        const uint32_t code = (uint32_t)p->codes[row], is_in = code < (uint64_t)length;
        const uint32_t is_there = p->valid ? (uint32_t)bit_at(p->valid, p->valid_offset + row) : 1;
        bad |= is_there & !is_in;
        ends[i] = (int32_t)total;
        total += s->lengths[is_there & is_in ? code : (uint64_t)length];
    }
    if (bad) return -1;
    return total > INT32_MAX ? -2 : total;
}

// GCC vectorises moves at an unknown distance into moves of aligned memory; this memory is not aligned.
#define ONE_BY_ONE __asm__ volatile("" : : : "memory")

#define APPEND_SLOTS(WIDTH) \
    for (int64_t i = 0; i < n; i++) { \
        const int64_t code = codes[i]; \
        ends[i] = (int32_t)at; \
        memcpy(out + at, slots + code * WIDTH, WIDTH); \
        at += lengths[code]; \
        ONE_BY_ONE; \
    }

#define APPEND_EVEN_SLOTS(WIDTH) \
    for (int64_t i = 0; i < n; i++) { \
        ends[i] = (int32_t)at; \
        memcpy(out + at, slots + (int64_t)codes[i] * WIDTH, WIDTH); \
        at += common; \
        ONE_BY_ONE; \
    }

// The bytes that a null writes are overwritten by the next string, or are after the end.
#define COPY_SLOTS(WIDTH) \
    for (int64_t i = 0; i < n; i++) { \
        const uint32_t code = (uint32_t)codes[rows ? rows[i] : i]; \
        memcpy(out + ends[i], slots + (code < (uint64_t)length ? code : (uint64_t)length) * WIDTH, WIDTH); \
        ONE_BY_ONE; \
    }

#define BY_WIDTH(LOOP) \
    switch (s->width) { \
        case 8: LOOP(8) break; \
        case 16: LOOP(16) break; \
        default: LOOP(MOST_SHORT) \
    }

// Write n + 1 offsets, and copy whole slots in ascending order: the bytes that a slot writes after its string are overwritten
// by the next one, and `out` has MOST_SHORT bytes after its end. Precondition: `short_text_bytes` checked the codes, and
// returned `total`.
static void short_text_copy(const short_texts *s, const picks_t *p, int64_t length, int64_t total, int32_t *ends, uint8_t *out) {
    const int64_t n = p->n, common = s->common;
    const int32_t *const codes = p->codes, *const rows = p->rows;
    const uint8_t *const slots = s->slots, *const lengths = s->lengths;
    int64_t at = 0;
    if (p->valid || rows) {
        BY_WIDTH(COPY_SLOTS)
    } else if (common >= 0) {
        BY_WIDTH(APPEND_EVEN_SLOTS)
    } else {
        BY_WIDTH(APPEND_SLOTS)
    }
    ends[n] = (int32_t)total;
}
