/* A code for each text of string arrays: the index of its value among the distinct ones, in the order of their first rows.

   Stops if codes would save little, see `codes_add`. Texts are read through `strings_t` only, which is checked. */
#ifndef DELTA_STRING_CODES_H
#define DELTA_STRING_CODES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory/arrow_strings.h"

enum { CODES_DONE, CODES_MANY, CODES_NO_MEMORY };

#define FIRST_SLOTS 16384
/* Each of the first rows may have a new value; of further rows, a quarter may. */
#define FREE_VALUES 16384
/* Steps after the first slot of a text, per row: more occur only if texts were chosen so that their hashes are equal. */
#define STEPS_PER_ROW 16

typedef struct {
    uint64_t first, last;  /* its first and its last 8 bytes; `last` is 0 if it has no more than 8 */
    const uint8_t *data;
    int64_t size;
} value_t;

typedef struct {
    value_t *values;
    int32_t *slots;  /* index of a value, -1 = free */
    int64_t count, room, num_slots, bytes, rows, steps;
    int64_t most_bytes;  /* of all values, plus 4 bytes for each */
} codes_t;

static inline uint64_t eight_bytes(const uint8_t *from) {
    uint64_t word;
    memcpy(&word, from, 8);
    return word;
}

/* Return the first bytes of a text of up to 8, followed by zeros; `left` bytes are readable. */
static inline uint64_t few_bytes(const uint8_t *from, int64_t size, int64_t left) {
    uint64_t word = 0;
    if (!size) return 0;
    if (left >= 8) return eight_bytes(from) & (~UINT64_C(0) >> (8 * (8 - size)));
    for (int64_t i = 0; i < size; i++) word |= (uint64_t)from[i] << (8 * i);
    return word;
}

static inline uint64_t hash_step(uint64_t hash, uint64_t word) {
    return ((hash << 29 | hash >> 35) ^ word) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Return the slot of a text: the high bits, because the low bits of a product do not depend on the last bytes of a text. */
static inline uint64_t slot_of(uint64_t hash, int64_t num_slots) {
    return (uint64_t)((unsigned __int128)hash * (uint64_t)num_slots >> 64);
}

static inline uint64_t value_hash(const value_t *v) {
    uint64_t hash = hash_step((uint64_t)v->size, v->first);
    if (v->size <= 8) return hash;
    hash = hash_step(hash, v->last);
    for (int64_t i = 8; i + 8 < v->size; i += 8) hash = hash_step(hash, eight_bytes(v->data + i));
    return hash;
}

static int codes_begin(codes_t *c, int64_t most_bytes) {
    memset(c, 0, sizeof *c);
    c->most_bytes = most_bytes;
    c->num_slots = FIRST_SLOTS;
    c->room = FIRST_SLOTS / 2;
    c->slots = (int32_t *)malloc((size_t)c->num_slots * sizeof *c->slots);
    c->values = (value_t *)malloc((size_t)c->room * sizeof *c->values);
    if (!c->slots || !c->values) return CODES_NO_MEMORY;
    memset(c->slots, 0xff, (size_t)c->num_slots * sizeof *c->slots);
    return CODES_DONE;
}

static void codes_end(codes_t *c) {
    free(c->slots);
    free(c->values);
    c->slots = NULL;
    c->values = NULL;
}

/* Double the table; values keep their indices. */
static int codes_grow(codes_t *c) {
    int64_t slots = 2 * c->num_slots;
    value_t *values = (value_t *)realloc(c->values, (size_t)(2 * c->room) * sizeof *values);
    if (values) c->values = values;
    int32_t *wider = values ? (int32_t *)malloc((size_t)slots * sizeof *wider) : NULL;
    if (!wider) return CODES_NO_MEMORY;
    memset(wider, 0xff, (size_t)slots * sizeof *wider);
    for (int64_t i = 0; i < c->count; i++) {
        uint64_t at = slot_of(value_hash(&c->values[i]), slots);
        while (wider[at] >= 0) at = (at + 1) & (uint64_t)(slots - 1);
        wider[at] = (int32_t)i;
    }
    free(c->slots);
    c->slots = wider;
    c->num_slots = slots;
    c->room *= 2;
    return CODES_DONE;
}

/* Write the codes of an array's rows, 0 for null. Returns CODES_MANY if its values and earlier ones are too many or too long:
   their bytes stay below `most_bytes`, so that the codes stay far below 2^31. */
static int codes_add(codes_t *c, const strings_t *array, int32_t *out) {
    const uint8_t *end = array->data + array->data_bytes;
    for (int64_t row = 0; row < array->n; row++) {
        text_t text = string_at(array, row);
        if (text.size < 0) { out[row] = 0; continue; }
        value_t v = {0, 0, text.data, text.size};
        if (text.size <= 8) {
            v.first = few_bytes(text.data, text.size, text.size ? end - text.data : 0);
        } else {
            v.first = eight_bytes(text.data);
            v.last = eight_bytes(text.data + text.size - 8);
        }
        uint64_t mask = (uint64_t)(c->num_slots - 1), at = slot_of(value_hash(&v), c->num_slots);
        int32_t code;
        while ((code = c->slots[at]) >= 0) {
            const value_t *known = &c->values[code];
            if (known->first == v.first && known->last == v.last && known->size == v.size &&
                (v.size <= 16 || !memcmp(known->data, v.data, (size_t)v.size)))
                break;
            at = (at + 1) & mask;
            c->steps++;
        }
        if (code < 0) {
            c->bytes += v.size + 4;
            if (c->bytes > c->most_bytes || c->count > FREE_VALUES + (c->rows + row) / 4 ||
                c->steps > FIRST_SLOTS + STEPS_PER_ROW * (c->rows + row))
                return CODES_MANY;
            code = (int32_t)c->count;
            c->slots[at] = code;
            c->values[c->count++] = v;
            if (c->count == c->room && codes_grow(c) != CODES_DONE) return CODES_NO_MEMORY;
        }
        out[row] = code;
    }
    c->rows += array->n;
    return CODES_DONE;
}

/* Write the distinct values: one more end than values, and their bytes. */
static void codes_values(const codes_t *c, int32_t *ends, uint8_t *data) {
    int32_t end = 0;
    ends[0] = 0;
    for (int64_t i = 0; i < c->count; i++) {
        if (c->values[i].size) memcpy(data + end, c->values[i].data, (size_t)c->values[i].size);
        end += (int32_t)c->values[i].size;
        ends[i + 1] = end;
    }
}

#endif
