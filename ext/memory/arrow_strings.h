/* Read-only view of an Arrow string or binary array, whose offsets are checked once before they are used. */
#ifndef DELTA_ARROW_STRINGS_H
#define DELTA_ARROW_STRINGS_H

#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *valid;    /* bit i + offset = row i has a value; NULL = all rows have one */
    const uint8_t *offsets;  /* int32 or int64, n + 1 from `offset` on; NULL = every row is null */
    const uint8_t *data;
    int64_t n, offset, valid_bytes, offsets_bytes, data_bytes;
    int wide;
} strings_t;

typedef struct {
    const uint8_t *data;
    int64_t size;  /* -1 = null */
} text_t;

static inline int64_t string_offset(const strings_t *s, int64_t row) {
    int32_t narrow;
    int64_t value;
    if (s->wide) { memcpy(&value, s->offsets + 8 * (s->offset + row), 8); return value; }
    memcpy(&narrow, s->offsets + 4 * (s->offset + row), 4);
    return narrow;
}

static int strings_check(const strings_t *s) {
    if (s->n < 0 || s->offset < 0 || s->n > INT64_MAX / 16 || s->offset > INT64_MAX / 16) return 0;
    if (!s->offsets || !s->n) return 1;
    int64_t rows = s->n + s->offset;
    if (s->offsets_bytes / (s->wide ? 8 : 4) <= rows || (s->valid && s->valid_bytes < (rows + 7) / 8)) return 0;
    int64_t last = string_offset(s, 0), bad = last < 0;
    for (int64_t i = 1; i <= s->n; i++) {
        int64_t next = string_offset(s, i);
        bad |= next < last;
        last = next;
    }
    return !bad && last <= s->data_bytes;
}

static inline text_t string_at(const strings_t *s, int64_t row) {
    text_t out = {s->data, -1};
    int64_t bit = s->offset + row;
    if (!s->offsets || (s->valid && !(s->valid[bit >> 3] >> (bit & 7) & 1))) return out;
    int64_t start = string_offset(s, row);
    out.data += start;
    out.size = string_offset(s, row + 1) - start;
    return out;
}

#endif
