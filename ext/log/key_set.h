/* A hash table of (path, deletion vector id or null), whose keys are compared in full. The bytes of the keys remain in the
   arrays of the caller, which keeps them alive; only those of decoded paths are copied. */
#ifndef DELTA_KEY_SET_H
#define DELTA_KEY_SET_H

#include <stdlib.h>

#include "memory/arrow_strings.h"

enum { KEYS_NO_MEMORY = 0, KEYS_OK = 1 };

typedef struct {
    uint64_t hash;
    text_t path, id;  /* id.size -1 = null */
} key_entry_t;

typedef struct key_block {
    struct key_block *next;
    int64_t used, size;
    uint8_t bytes[];
} key_block_t;

typedef struct {
    uint64_t secret[2];    /* random, so that no writer can choose paths that collide */
    key_entry_t *entries;
    int64_t n, capacity;
    key_block_t *blocks;   /* of decoded paths */
    uint8_t *tags;         /* 0 = free slot; an array of its own, small enough to stay in cache */
    uint32_t *index;       /* slot -> entry */
    uint64_t *filter;      /* FILTER_BITS for each slot, set by `sample_path`: for most absent paths not all bytes have to be hashed */
    int64_t slots;         /* a power of two, at least twice n */
} keys_t;

typedef struct { uint8_t *data; int64_t size; } scratch_t;

static inline uint64_t key_load64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }

static inline uint64_t mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_bytes(const uint8_t *p, int64_t size, uint64_t seed, const uint64_t *secret) {
    uint64_t a = seed ^ secret[1], b = seed + secret[0];
    uint8_t tail[16] = {0};
    int64_t left = size;
    for (; left > 32; left -= 32, p += 32) {
        a = mix(key_load64(p) ^ secret[0], key_load64(p + 8) ^ a);
        b = mix(key_load64(p + 16) ^ secret[1], key_load64(p + 24) ^ b);
    }
    if (left > 16) {
        a = mix(key_load64(p) ^ secret[0], key_load64(p + 8) ^ a);
        left -= 16, p += 16;
    }
    if (size >= 16) {
        p += left - 16;  /* the last 16 bytes; some of them are hashed twice */
    } else {
        if (size) memcpy(tail, p, (size_t)size);
        p = tail;
    }
    b = mix(key_load64(p) ^ secret[1], key_load64(p + 8) ^ b);
    return mix(a ^ secret[1] ^ (uint64_t)size, b ^ secret[0]);
}

static inline uint64_t hash_key(text_t path, text_t id, const uint64_t *secret) {
    uint64_t hash = hash_bytes(path.data, path.size, 0, secret);
    return id.size < 0 ? hash : hash_bytes(id.data, id.size, hash | 1, secret);
}

/* Shorter paths are hashed whole at once. */
enum { LEAST_SAMPLED = 40, FILTER_BITS = 8 };

/* Return a hash of some bytes of a path of at least LEAST_SAMPLED: in its middle, at its end, and where most writers have
   a UUID. */
static inline uint64_t sample_path(text_t path, const uint64_t *secret) {
    const uint8_t *end = path.data + path.size;
    return mix(key_load64(end - 40) ^ secret[0], key_load64(end - 32) ^ secret[1]) ^
           mix(key_load64(end - 16) ^ secret[0], key_load64(path.data + path.size / 2 - 4) ^ secret[1] ^ (uint64_t)path.size);
}

/* ---- one form of a path -------------------------------------------------------------------------------------- */

static inline int hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int64_t percent_decode(const uint8_t *p, int64_t size, uint8_t *out) {
    uint8_t *first = out;
    for (int64_t i = 0; i < size; i++) {
        int high = -1, low = -1;
        if (p[i] == '%' && i + 2 < size) high = hex_digit(p[i + 1]), low = hex_digit(p[i + 2]);
        if (high >= 0 && low >= 0) { *out++ = (uint8_t)(high << 4 | low); i += 2; }
        else *out++ = p[i];
    }
    return out - first;
}

static inline int is_localhost(const uint8_t *p) {
    static const char name[] = "localhost";
    for (int i = 0; i < 9; i++)
        if ((p[i] | 32) != (uint8_t)name[i]) return 0;
    return 1;
}

/* Normalise a path: file:/x, file:///x and file://localhost/x are /x, and %XX is its byte; an invalid escape is not
   changed. Returns 0 without memory. */
static inline int canonical_path(text_t *path, scratch_t *scratch) {
    const uint8_t *p = path->data;
    int64_t size = path->size;
    if (size > 5 && (p[0] | 32) == 'f' && (p[1] | 32) == 'i' && (p[2] | 32) == 'l' && (p[3] | 32) == 'e' && p[4] == ':'
        && p[5] == '/') {
        int skipped = 5;
        if (size > 7 && p[6] == '/')
            skipped = p[7] == '/' ? 7 : size > 16 && p[16] == '/' && is_localhost(p + 7) ? 16 : 0;
        path->data = p += skipped;
        path->size = size -= skipped;
    }
    if (!size || !memchr(p, '%', (size_t)size)) return 1;
    if (scratch->size < size) {
        void *grown = realloc(scratch->data, (size_t)(2 * size));
        if (!grown) return 0;
        scratch->data = (uint8_t *)grown;
        scratch->size = 2 * size;
    }
    path->data = scratch->data;
    path->size = percent_decode(p, size, scratch->data);
    return 1;
}

/* ---- the table ----------------------------------------------------------------------------------------------- */

static inline uint8_t key_tag(uint64_t hash) { return (uint8_t)(hash >> 57 | 128); }

static inline int text_equal(text_t a, text_t b) {
    return a.size == b.size && (a.size <= 0 || !memcmp(a.data, b.data, (size_t)a.size));
}

static inline int key_equal(const key_entry_t *entry, text_t path, text_t id) {
    return text_equal(entry->path, path) && text_equal(entry->id, id);
}

static inline uint64_t filter_bit(const keys_t *keys, uint64_t sample) {
    return sample >> 32 & (uint64_t)(FILTER_BITS * keys->slots - 1);
}

static inline int may_have_path(const keys_t *keys, text_t path) {
    uint64_t bit = filter_bit(keys, sample_path(path, keys->secret));
    return keys->filter[bit >> 6] >> (bit & 63) & 1;
}

static inline void add_to_filter(keys_t *keys, text_t path) {
    if (path.size < LEAST_SAMPLED) return;
    uint64_t bit = filter_bit(keys, sample_path(path, keys->secret));
    keys->filter[bit >> 6] |= (uint64_t)1 << (bit & 63);
}

/* Return the slot of the key, or the free slot for it. */
static inline int64_t key_slot(const keys_t *keys, uint64_t hash, text_t path, text_t id) {
    int64_t slot = (int64_t)(hash & (uint64_t)(keys->slots - 1));
    for (; keys->tags[slot]; slot = (slot + 1) & (keys->slots - 1)) {
        if (keys->tags[slot] != key_tag(hash)) continue;
        const key_entry_t *entry = keys->entries + keys->index[slot];
        if (entry->hash == hash && key_equal(entry, path, id)) break;
    }
    return slot;
}

/* Make room for `more` further entries, so that the keys of a large batch are not rehashed several times. */
static int keys_reserve(keys_t *keys, int64_t more) {
    if (keys->n + more > UINT32_MAX) return 0;
    if (keys->n + more > keys->capacity) {
        int64_t capacity = 2 * keys->capacity > keys->n + more ? 2 * keys->capacity : keys->n + more;
        void *grown = realloc(keys->entries, (size_t)capacity * sizeof(key_entry_t));
        if (!grown) return 0;
        keys->entries = (key_entry_t *)grown;
        keys->capacity = capacity;
    }
    int64_t slots = keys->slots ? keys->slots : 64;
    while (slots < 2 * (keys->n + more)) slots *= 2;
    if (slots == keys->slots) return 1;
    uint8_t *tags = (uint8_t *)calloc((size_t)slots, 1);
    uint32_t *index = (uint32_t *)malloc((size_t)slots * sizeof(uint32_t));
    uint64_t *filter = (uint64_t *)calloc((size_t)slots * FILTER_BITS / 64, 8);
    if (!tags || !index || !filter) { free(tags); free(index); free(filter); return 0; }
    for (int64_t i = 0; i < keys->n; i++) {
        int64_t slot = (int64_t)(keys->entries[i].hash & (uint64_t)(slots - 1));
        while (tags[slot]) slot = (slot + 1) & (slots - 1);
        tags[slot] = key_tag(keys->entries[i].hash);
        index[slot] = (uint32_t)i;
    }
    free(keys->tags);
    free(keys->index);
    free(keys->filter);
    keys->tags = tags;
    keys->index = index;
    keys->filter = filter;
    keys->slots = slots;
    for (int64_t i = 0; i < keys->n; i++) add_to_filter(keys, keys->entries[i].path);
    return 1;
}

/* Copy bytes into memory of the table; NULL = no memory. */
static const uint8_t *keys_keep(keys_t *keys, text_t text) {
    if (!keys->blocks || keys->blocks->size - keys->blocks->used < text.size) {
        int64_t size = text.size > 65536 ? text.size : 65536;
        key_block_t *block = (key_block_t *)malloc(sizeof(key_block_t) + (size_t)size);
        if (!block) return NULL;
        block->next = keys->blocks, block->used = 0, block->size = size;
        keys->blocks = block;
    }
    uint8_t *out = keys->blocks->bytes + keys->blocks->used;
    memcpy(out, text.data, (size_t)text.size);
    keys->blocks->used += text.size;
    return out;
}

/* Precondition: there is room for the entry. `is_lasting`: the bytes of the path outlive the table. */
static int keys_insert_one(keys_t *keys, text_t path, text_t id, int is_lasting, uint8_t *is_new) {
    uint64_t hash = hash_key(path, id, keys->secret);
    int64_t slot = key_slot(keys, hash, path, id);
    *is_new = !keys->tags[slot];
    if (!*is_new) return KEYS_OK;
    if (!is_lasting && path.size && !(path.data = keys_keep(keys, path))) return KEYS_NO_MEMORY;
    key_entry_t entry = {hash, path, id};
    keys->tags[slot] = key_tag(hash);
    keys->index[slot] = (uint32_t)keys->n;
    keys->entries[keys->n++] = entry;
    add_to_filter(keys, path);
    return KEYS_OK;
}

/* Set out[i] to whether row i is the first with its key; 0 if its path is null. */
static int keys_insert(keys_t *keys, const strings_t *paths, const strings_t *ids, uint8_t *out) {
    scratch_t scratch = {NULL, 0};
    int status = keys_reserve(keys, paths->n);
    for (int64_t i = 0; i < paths->n && status == KEYS_OK; i++) {
        text_t path = string_at(paths, i);
        out[i] = 0;
        if (path.size < 0) continue;
        status = canonical_path(&path, &scratch);
        if (status == KEYS_OK) status = keys_insert_one(keys, path, string_at(ids, i), path.data != scratch.data, out + i);
    }
    free(scratch.data);
    return status;
}

/* This many rows are searched for a percent sign together. */
enum { PERCENT_ROWS = 256 };

/* Set out[i] to whether the table contains the key of row i; 0 if its path is null. */
static int keys_contain(const keys_t *keys, const strings_t *paths, const strings_t *ids, uint8_t *out) {
    scratch_t scratch = {NULL, 0};
    int status = KEYS_OK, has_percent = 1;
    if (!keys->n || !paths->offsets) { if (paths->n) memset(out, 0, (size_t)paths->n); return KEYS_OK; }
    for (int64_t i = 0; i < paths->n; i++) {
        if (i % PERCENT_ROWS == 0) {
            int64_t start = string_offset(paths, i);
            int64_t stop = string_offset(paths, i + PERCENT_ROWS < paths->n ? i + PERCENT_ROWS : paths->n);
            has_percent = stop > start && memchr(paths->data + start, '%', (size_t)(stop - start));
        }
        text_t path = string_at(paths, i);
        out[i] = 0;
        if (path.size < 0) continue;
        /* an f may begin file:/ */
        if ((has_percent || (path.size && (path.data[0] | 32) == 'f')) && !canonical_path(&path, &scratch)) {
            status = KEYS_NO_MEMORY;
            break;
        }
        if (path.size >= LEAST_SAMPLED && !may_have_path(keys, path)) continue;
        text_t id = string_at(ids, i);
        out[i] = keys->tags[key_slot(keys, hash_key(path, id, keys->secret), path, id)] != 0;
    }
    free(scratch.data);
    return status;
}

static void keys_free(keys_t *keys) {
    while (keys->blocks) {
        key_block_t *next = keys->blocks->next;
        free(keys->blocks);
        keys->blocks = next;
    }
    free(keys->entries);
    free(keys->tags);
    free(keys->index);
    free(keys->filter);
}

#endif
