/* A set of 64-bit row positions as containers of 65,536 rows (RoaringFormatSpec), and operations on such sets.
 *
 * A container is an array of uint16, a bitmap of 1,024 words, or runs of (first, length - 1), all little-endian. Its bytes
 * may be those of a file and unaligned, so every access uses memcpy. Invariants of `rows_t` (roaring_format.h checks them
 * for bytes of files): keys ascend strictly, values ascend strictly, runs do not overlap and end within their container,
 * and `count` is the number of values.
 */
#ifndef DELTA_CONTAINERS_H
#define DELTA_CONTAINERS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the row set kernels need a little-endian machine"
#endif

enum { CHUNK_BITS = 16, CHUNK_ROWS = 65536, CHUNK_WORDS = 1024, CHUNK_BYTES = 8192, ARRAY_MAX = 4096 };
enum { SET_OR, SET_AND, SET_SUB, SET_XOR };

typedef struct {
    int64_t key;    /* position >> 16 */
    int64_t at;     /* where the values start in `data` */
    int32_t count;  /* 1 to 65,536 */
    int32_t runs;   /* number of runs; 0 = an array (count <= ARRAY_MAX) or a bitmap */
} container_t;

typedef struct {
    container_t *items;
    int64_t n, item_capacity;
    uint8_t *data;
    int64_t used, capacity;
    int owns_data;
    int64_t count;
} rows_t;

static inline uint16_t load16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static inline uint32_t load32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static inline uint64_t load64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }
static inline void store16(uint8_t *p, uint16_t v) { memcpy(p, &v, 2); }
static inline void store32(uint8_t *p, uint32_t v) { memcpy(p, &v, 4); }
static inline void store64(uint8_t *p, uint64_t v) { memcpy(p, &v, 8); }
static inline void or64(uint8_t *p, uint64_t v) { store64(p, load64(p) | v); }

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

static inline int64_t payload_bytes(const container_t *c) {
    return c->runs ? 4 * (int64_t)c->runs : c->count <= ARRAY_MAX ? 2 * (int64_t)c->count : CHUNK_BYTES;
}

/* Bits below `n`, for 0 <= n <= 64. */
static inline uint64_t low_bits(int64_t n) { return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1; }

/* ---- counting ------------------------------------------------------------------------------------------------ */

static inline int64_t popcount_plain(const uint8_t *p, int64_t words) {
    int64_t total = 0;
    for (int64_t i = 0; i < words; i++) total += __builtin_popcountll(load64(p + 8 * i));
    return total;
}

/* x86 compilers may not assume the popcnt instruction; a query of the processor is cheaper than the table they use. */
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx512vpopcntdq,avx512f,popcnt,avx2")))
static int64_t popcount_avx512(const uint8_t *p, int64_t words) { return popcount_plain(p, words); }
__attribute__((target("popcnt")))
static int64_t popcount_hardware(const uint8_t *p, int64_t words) {
    int64_t a = 0, b = 0, i = 0;
    for (; i + 2 <= words; i += 2) {
        a += __builtin_popcountll(load64(p + 8 * i));
        b += __builtin_popcountll(load64(p + 8 * i + 8));
    }
    return a + b + (i < words ? __builtin_popcountll(load64(p + 8 * i)) : 0);
}
static inline int64_t popcount(const uint8_t *p, int64_t words) {
    if (__builtin_cpu_supports("avx512vpopcntdq")) return popcount_avx512(p, words);
    return __builtin_cpu_supports("popcnt") ? popcount_hardware(p, words) : popcount_plain(p, words);
}
#else
static inline int64_t popcount(const uint8_t *p, int64_t words) { return popcount_plain(p, words); }
#endif

static int32_t count_runs(const uint64_t *words) {
    uint64_t starts[CHUNK_WORDS], carry = 0;
    for (int i = 0; i < CHUNK_WORDS; i++) {
        starts[i] = words[i] & ~((words[i] << 1) | carry);
        carry = words[i] >> 63;
    }
    return (int32_t)popcount((const uint8_t *)starts, CHUNK_WORDS);
}

/* ---- reading one container ----------------------------------------------------------------------------------- */

/* Index of the first value >= low (0 <= low <= 65,536) of an array container. */
static int64_t array_lower_bound(const uint8_t *values, int64_t count, int64_t low) {
    int64_t first = 0;
    while (count > 0) {
        int64_t half = count / 2;
        if (load16(values + 2 * (first + half)) < low) { first += half + 1; count -= half + 1; }
        else count = half;
    }
    return first;
}

/* Index of the first run that ends at or after `low`. */
static int64_t run_lower_bound(const uint8_t *runs, int64_t count, int64_t low) {
    int64_t first = 0;
    while (count > 0) {
        int64_t half = count / 2;
        const uint8_t *run = runs + 4 * (first + half);
        if ((int64_t)load16(run) + load16(run + 2) < low) { first += half + 1; count -= half + 1; }
        else count = half;
    }
    return first;
}

/* Number of values in [low, high). */
static int64_t count_in(const container_t *c, const uint8_t *data, int64_t low, int64_t high) {
    const uint8_t *p = data + c->at;
    if (low <= 0 && high >= CHUNK_ROWS) return c->count;
    if (low >= high) return 0;
    int64_t total = 0;
    if (c->runs) {
        for (int64_t i = run_lower_bound(p, c->runs, low); i < c->runs; i++) {
            int64_t first = load16(p + 4 * i), stop = first + load16(p + 4 * i + 2) + 1;
            if (first >= high) break;
            total += min64(stop, high) - max64(first, low);
        }
    } else if (c->count <= ARRAY_MAX) {
        total = array_lower_bound(p, c->count, high) - array_lower_bound(p, c->count, low);
    } else {
        int64_t w = low >> 6, last = (high - 1) >> 6;
        uint64_t head = ~low_bits(low & 63), tail = low_bits(((high - 1) & 63) + 1);
        if (w == last) return __builtin_popcountll(load64(p + 8 * w) & head & tail);
        total = __builtin_popcountll(load64(p + 8 * w) & head) + __builtin_popcountll(load64(p + 8 * last) & tail);
        total += popcount(p + 8 * (w + 1), last - w - 1);
    }
    return total;
}

static int64_t container_min(const container_t *c, const uint8_t *data) {
    const uint8_t *p = data + c->at;
    if (c->runs || c->count <= ARRAY_MAX) return load16(p);
    int64_t w = 0;
    while (!load64(p + 8 * w)) w++;
    return 64 * w + __builtin_ctzll(load64(p + 8 * w));
}

static int64_t container_max(const container_t *c, const uint8_t *data) {
    const uint8_t *p = data + c->at;
    if (c->runs) { p += 4 * ((int64_t)c->runs - 1); return (int64_t)load16(p) + load16(p + 2); }
    if (c->count <= ARRAY_MAX) return load16(p + 2 * ((int64_t)c->count - 1));
    int64_t w = CHUNK_WORDS - 1;
    while (!load64(p + 8 * w)) w--;
    return 64 * w + 63 - __builtin_clzll(load64(p + 8 * w));
}

/* Set bits [low, high) of little-endian words at p. */
static void set_bit_range(uint8_t *p, int64_t low, int64_t high) {
    if (low >= high) return;
    int64_t w = low >> 6, last = (high - 1) >> 6;
    uint64_t head = ~low_bits(low & 63), tail = low_bits(((high - 1) & 63) + 1);
    if (w == last) { or64(p + 8 * w, head & tail); return; }
    or64(p + 8 * w, head);
    memset(p + 8 * (w + 1), 0xff, (size_t)(8 * (last - w - 1)));
    or64(p + 8 * last, tail);
}

static void expand(const container_t *c, const uint8_t *data, uint64_t *words) {
    const uint8_t *p = data + c->at;
    if (!c->runs && c->count > ARRAY_MAX) { memcpy(words, p, CHUNK_BYTES); return; }
    memset(words, 0, CHUNK_BYTES);
    if (c->runs)
        for (int64_t i = 0; i < c->runs; i++) {
            int64_t first = load16(p + 4 * i);
            set_bit_range((uint8_t *)words, first, first + load16(p + 4 * i + 2) + 1);
        }
    else
        for (int64_t i = 0; i < c->count; i++) {
            uint16_t v = load16(p + 2 * i);
            words[v >> 6] |= UINT64_C(1) << (v & 63);
        }
}

/* ---- growing ------------------------------------------------------------------------------------------------- */

static void rows_free(rows_t *rows) {
    free(rows->items);
    if (rows->owns_data) free(rows->data);
    memset(rows, 0, sizeof *rows);
}

/* Make room for one more container; returns 0 without memory. */
static int rows_push(rows_t *rows, int64_t key, int64_t at, int64_t count, int64_t runs) {
    if (rows->n == rows->item_capacity) {
        int64_t capacity = rows->item_capacity ? rows->item_capacity * 2 : 4;
        void *grown = realloc(rows->items, (size_t)capacity * sizeof(container_t));
        if (!grown) return 0;
        rows->items = (container_t *)grown;
        rows->item_capacity = capacity;
    }
    container_t item = {key, at, (int32_t)count, (int32_t)runs};
    rows->items[rows->n++] = item;
    rows->count += count;
    return 1;
}

/* Add a container with `bytes` of values that the caller writes; returns NULL without memory. */
static uint8_t *rows_add(rows_t *rows, int64_t key, int64_t count, int64_t runs, int64_t bytes) {
    if (rows->capacity - rows->used < bytes) {
        int64_t capacity = max64(rows->capacity * 2, rows->used + bytes);
        void *grown = realloc(rows->data, (size_t)capacity);
        if (!grown) return NULL;
        rows->data = (uint8_t *)grown;
        rows->capacity = capacity;
    }
    rows->owns_data = 1;
    if (!rows_push(rows, key, rows->used, count, runs)) return NULL;
    rows->used += bytes;
    return rows->data + rows->used - bytes;
}

static int rows_add_copy(rows_t *rows, const container_t *c, const uint8_t *data) {
    int64_t bytes = payload_bytes(c);
    uint8_t *p = rows_add(rows, c->key, c->count, c->runs, bytes);
    if (p) memcpy(p, data + c->at, (size_t)bytes);
    return p != NULL;
}

static void write_runs(const uint64_t *words, uint8_t *p) {
    int64_t first = -1;
    uint64_t carry = 0;
    for (int64_t i = 0; i < CHUNK_WORDS; i++) {
        uint64_t edges = words[i] ^ ((words[i] << 1) | carry);
        carry = words[i] >> 63;
        for (; edges; edges &= edges - 1) {
            int64_t edge = 64 * i + __builtin_ctzll(edges);
            if (first < 0) { first = edge; continue; }
            store16(p, (uint16_t)first);
            store16(p + 2, (uint16_t)(edge - first - 1));
            p += 4;
            first = -1;
        }
    }
    if (first >= 0) {
        store16(p, (uint16_t)first);
        store16(p + 2, (uint16_t)(CHUNK_ROWS - first - 1));
    }
}

/* Add 65,536 bits as the kind of container with the smallest serialised form; nothing if no bit is set. */
static int rows_add_words(rows_t *rows, int64_t key, const uint64_t *words) {
    int64_t count = popcount((const uint8_t *)words, CHUNK_WORDS);
    if (!count) return 1;
    int64_t runs = count_runs(words);
    int64_t plain = count <= ARRAY_MAX ? 2 * count : CHUNK_BYTES;
    uint8_t *p;
    if (2 + 4 * runs < plain) {
        if (!(p = rows_add(rows, key, count, runs, 4 * runs))) return 0;
        write_runs(words, p);
    } else if (count > ARRAY_MAX) {
        if (!(p = rows_add(rows, key, count, 0, CHUNK_BYTES))) return 0;
        memcpy(p, words, CHUNK_BYTES);
    } else {
        if (!(p = rows_add(rows, key, count, 0, 2 * count))) return 0;
        for (int64_t i = 0; i < CHUNK_WORDS; i++)
            for (uint64_t w = words[i]; w; w &= w - 1, p += 2)
                store16(p, (uint16_t)(64 * i + __builtin_ctzll(w)));
    }
    return 1;
}

/* Add the n >= 1 strictly ascending positions of one container. */
static int rows_add_positions(rows_t *rows, const int64_t *positions, int64_t n) {
    int64_t key = positions[0] >> CHUNK_BITS, runs = 1;
    for (int64_t i = 1; i < n; i++) runs += positions[i] != positions[i - 1] + 1;
    if (n > ARRAY_MAX || 2 + 4 * runs < 2 * n) {
        uint64_t words[CHUNK_WORDS] = {0};
        for (int64_t i = 0; i < n; i++)
            words[(positions[i] & 0xffff) >> 6] |= UINT64_C(1) << (positions[i] & 63);
        return rows_add_words(rows, key, words);
    }
    uint8_t *p = rows_add(rows, key, n, 0, 2 * n);
    if (!p) return 0;
    for (int64_t i = 0; i < n; i++) store16(p + 2 * i, (uint16_t)(positions[i] & 0xffff));
    return 1;
}

/* Returns 1 for success, 0 without memory, -1 if the positions do not ascend strictly from 0 up. */
static int rows_from_positions(rows_t *rows, const int64_t *positions, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (positions[i] < 0 || (i && positions[i] <= positions[i - 1])) return -1;
    for (int64_t first = 0, stop; first < n; first = stop) {
        for (stop = first + 1; stop < n && positions[stop] >> CHUNK_BITS == positions[first] >> CHUNK_BITS;) stop++;
        if (!rows_add_positions(rows, positions + first, stop - first)) return 0;
    }
    return 1;
}

/* One byte for each row, 0 or not. */
static int rows_from_mask(rows_t *rows, const uint8_t *mask, int64_t n) {
    uint64_t words[CHUNK_WORDS];
    for (int64_t start = 0; start < n; start += CHUNK_ROWS) {
        int64_t stop = min64(n - start, CHUNK_ROWS);
        const uint8_t *p = mask + start;
        memset(words, 0, CHUNK_BYTES);
        for (int64_t i = 0; i < stop; i++) words[i >> 6] |= (uint64_t)(p[i] != 0) << (i & 63);
        if (!rows_add_words(rows, start >> CHUNK_BITS, words)) return 0;
    }
    return 1;
}

static int rows_from_range(rows_t *rows, int64_t start, int64_t stop) {
    while (start < stop) {
        int64_t key = start >> CHUNK_BITS, low = start & 0xffff;
        int64_t high = min64(stop - (key << CHUNK_BITS), CHUNK_ROWS);
        uint8_t *p = rows_add(rows, key, high - low, high - low > 3 ? 1 : 0, high - low > 3 ? 4 : 2 * (high - low));
        if (!p) return 0;
        if (high - low > 3) { store16(p, (uint16_t)low); store16(p + 2, (uint16_t)(high - low - 1)); }
        else for (int64_t i = low; i < high; i++, p += 2) store16(p, (uint16_t)i);
        start += high - low;
    }
    return 1;
}

/* ---- sets of containers -------------------------------------------------------------------------------------- */

/* Index of the first container whose key is >= key. */
static int64_t rows_find(const rows_t *rows, int64_t key) {
    int64_t first = 0, count = rows->n;
    while (count > 0) {
        int64_t half = count / 2;
        if (rows->items[first + half].key < key) { first += half + 1; count -= half + 1; }
        else count = half;
    }
    return first;
}

static int64_t rows_min(const rows_t *rows) {
    const container_t *c = rows->items;
    return rows->n ? (c->key << CHUNK_BITS) + container_min(c, rows->data) : -1;
}

static int64_t rows_max(const rows_t *rows) {
    if (!rows->n) return -1;
    const container_t *c = rows->items + rows->n - 1;
    return (c->key << CHUNK_BITS) + container_max(c, rows->data);
}

/* Number of positions in [start, stop), 0 <= start. */
static int64_t rows_count_in(const rows_t *rows, int64_t start, int64_t stop) {
    int64_t total = 0;
    for (int64_t i = rows_find(rows, start >> CHUNK_BITS); i < rows->n; i++) {
        int64_t base = rows->items[i].key << CHUNK_BITS;
        if (base >= stop) break;
        total += count_in(rows->items + i, rows->data, max64(start - base, 0), min64(stop - base, CHUNK_ROWS));
    }
    return total;
}

static inline uint64_t combine_words(uint64_t a, uint64_t b, int op) {
    return op == SET_OR ? a | b : op == SET_AND ? a & b : op == SET_SUB ? a & ~b : a ^ b;
}

static inline int is_array(const container_t *c) { return !c->runs && c->count <= ARRAY_MAX; }
static inline int is_bitmap(const container_t *c) { return !c->runs && c->count > ARRAY_MAX; }

/* Make room for `bytes` of values in all; returns 0 without memory. */
static int rows_reserve(rows_t *rows, int64_t bytes) {
    if (rows->capacity >= bytes) return 1;
    void *grown = realloc(rows->data, (size_t)bytes);
    if (!grown) return 0;
    rows->data = (uint8_t *)grown;
    rows->capacity = bytes;
    rows->owns_data = 1;
    return 1;
}

/* Add 65,536 bits as a bitmap, or as an array if few are set: for results that are unlikely to be runs. */
static int rows_add_bits(rows_t *rows, int64_t key, const uint64_t *words) {
    int64_t count = popcount((const uint8_t *)words, CHUNK_WORDS);
    if (count <= ARRAY_MAX) return rows_add_words(rows, key, words);
    uint8_t *p = rows_add(rows, key, count, 0, CHUNK_BYTES);
    if (p) memcpy(p, words, CHUNK_BYTES);
    return p != NULL;
}

/* Truncate the array container that was added last to `count` values; it is removed if none remain. */
static void rows_shrink(rows_t *rows, int64_t count) {
    container_t *last = rows->items + rows->n - 1;
    rows->used -= 2 * (last->count - count);
    rows->count -= last->count - count;
    last->count = (int32_t)count;
    if (!count) rows->n--;
}

/* Write the union, or the symmetric difference, of two arrays. No branch depends on the values: they alternate at random,
 * and each misprediction takes longer than several steps of the loop. `out` has room for the values of both. */
static int64_t unite_arrays(const uint8_t *x, int64_t nx, const uint8_t *y, int64_t ny, int keep_equal, uint8_t *out) {
    int64_t i = 0, j = 0, n = 0;
    while (i < nx && j < ny) {
        uint16_t u = load16(x + 2 * i), v = load16(y + 2 * j);
        store16(out + 2 * n, u < v ? u : v);
        n += (u != v) | keep_equal;
        i += u <= v;
        j += v <= u;
    }
    memcpy(out + 2 * n, x + 2 * i, (size_t)(2 * (nx - i)));
    n += nx - i;
    memcpy(out + 2 * n, y + 2 * j, (size_t)(2 * (ny - j)));
    return n + ny - j;
}

/* Write the values of x from index i on that y, from index j on, contains (`wanted`) or lacks; `out` has room for one more. */
static int64_t match_rest(
    const uint8_t *x, int64_t i, int64_t nx, const uint8_t *y, int64_t j, int64_t ny, int wanted, uint8_t *out
) {
    int64_t n = 0;
    while (i < nx && j < ny) {
        uint16_t u = load16(x + 2 * i), v = load16(y + 2 * j);
        store16(out + 2 * n, u);
        n += wanted ? u == v : u < v;
        i += u <= v;
        j += v <= u;
    }
    if (wanted) return n;
    memcpy(out + 2 * n, x + 2 * i, (size_t)(2 * (nx - i)));
    return n + nx - i;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/* For each subset of eight values, the shuffle of their bytes; initialised when the module is loaded. */
static uint8_t chosen_bytes[256][16];
__attribute__((constructor)) static void fill_chosen_bytes(void) {
    for (int choice = 0; choice < 256; choice++) {
        int n = 0;
        for (int k = 0; k < 8; k++) {
            if (!(choice >> k & 1)) continue;
            chosen_bytes[choice][n++] = (uint8_t)(2 * k);
            chosen_bytes[choice][n++] = (uint8_t)(2 * k + 1);
        }
    }
}

/* Write those of eight values whose bit in `chosen` is set; eight places of `out` are always written. */
__attribute__((target("sse4.2,popcnt")))
static inline int64_t choose8(const uint8_t *values, unsigned chosen, uint8_t *out) {
    __m128i order = _mm_loadu_si128((const __m128i *)chosen_bytes[chosen]);
    __m128i all = _mm_loadu_si128((const __m128i *)values);
    _mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(all, order));
    return __builtin_popcount(chosen);
}

/* As `match_rest`, eight values at a time: each block of x is compared with each block of y whose range overlaps it. */
__attribute__((target("sse4.2,popcnt")))
static int64_t match_blocks(const uint8_t *x, int64_t nx, const uint8_t *y, int64_t ny, int wanted, uint8_t *out) {
    enum { MODE = _SIDD_UWORD_OPS | _SIDD_CMP_EQUAL_ANY | _SIDD_BIT_MASK };
    int64_t i = 0, j = 0, n = 0;
    unsigned found = 0, flip = wanted ? 0 : 0xff;
    while (i + 8 <= nx && j + 8 <= ny) {
        __m128i u = _mm_loadu_si128((const __m128i *)(x + 2 * i)), v = _mm_loadu_si128((const __m128i *)(y + 2 * j));
        found |= (unsigned)_mm_cvtsi128_si32(_mm_cmpestrm(v, 8, u, 8, MODE));
        uint16_t last_x = load16(x + 2 * (i + 7)), last_y = load16(y + 2 * (j + 7));
        j += last_y <= last_x ? 8 : 0;
        if (last_x <= last_y) {
            n += choose8(x + 2 * i, found ^ flip, out + 2 * n);
            found = 0;
            i += 8;
        }
    }
    if (found) { /* the remaining block was compared with some blocks of y already */
        uint8_t rest[16];
        int64_t left = choose8(x + 2 * i, ~found & 0xff, rest), own = choose8(x + 2 * i, found, out + 2 * n);
        /* values that y contains must be dropped from the result before the others are written */
        if (wanted) {
            n += own + match_rest(rest, 0, left, y, j, ny, 1, out + 2 * (n + own));
        } else {
            n += match_rest(rest, 0, left, y, j, ny, 0, out + 2 * n);
        }
        i += 8;
    }
    return n + match_rest(x, i, nx, y, j, ny, wanted, out + 2 * n);
}
static inline int64_t match_arrays(
    const uint8_t *x, int64_t nx, const uint8_t *y, int64_t ny, int wanted, uint8_t *out
) {
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"))
        return match_blocks(x, nx, y, ny, wanted, out);
    return match_rest(x, 0, nx, y, 0, ny, wanted, out);
}
#else
static inline int64_t match_arrays(
    const uint8_t *x, int64_t nx, const uint8_t *y, int64_t ny, int wanted, uint8_t *out
) {
    return match_rest(x, 0, nx, y, 0, ny, wanted, out);
}
#endif

/* Combine a long array with a short one; the values between those of the short one are copied. */
static int64_t combine_few(const uint8_t *x, int64_t nx, const uint8_t *y, int64_t ny, int op, uint8_t *out) {
    int64_t i = 0, n = 0;
    for (int64_t j = 0; j < ny; j++) {
        uint16_t v = load16(y + 2 * j);
        int64_t at = i + array_lower_bound(x + 2 * i, nx - i, v);
        int has = at < nx && load16(x + 2 * at) == v;
        if (op != SET_AND) {
            memcpy(out + 2 * n, x + 2 * i, (size_t)(2 * (at - i)));
            n += at - i;
        }
        if (op == SET_OR || (op == SET_AND && has) || (op == SET_XOR && !has)) store16(out + 2 * n++, v);
        i = at + has;
    }
    if (op == SET_AND) return n;
    memcpy(out + 2 * n, x + 2 * i, (size_t)(2 * (nx - i)));
    return n + nx - i;
}

static int64_t combine_arrays(const uint8_t *x, int64_t nx, const uint8_t *y, int64_t ny, int op, uint8_t *out) {
    if (ny * 32 < nx) return combine_few(x, nx, y, ny, op, out);
    if (nx * 32 < ny && op != SET_SUB) return combine_few(y, ny, x, nx, op, out);
    if (op == SET_OR || op == SET_XOR) return unite_arrays(x, nx, y, ny, op == SET_OR, out);
    return match_arrays(x, nx, y, ny, op == SET_AND, out);
}

static int contains(const container_t *c, const uint8_t *data, int64_t value) {
    const uint8_t *p = data + c->at;
    if (c->runs) {
        int64_t run = run_lower_bound(p, c->runs, value);
        return run < c->runs && load16(p + 4 * run) <= value;
    }
    if (c->count > ARRAY_MAX) return (int)(load64(p + 8 * (value >> 6)) >> (value & 63) & 1);
    int64_t at = array_lower_bound(p, c->count, value);
    return at < c->count && load16(p + 2 * at) == value;
}

/* Write the values of an array that a container contains, or lacks, and return their number. `out` has room for one more. */
static int64_t filter_array(
    const uint8_t *x, int64_t nx, const container_t *c, const uint8_t *data, int wanted, uint8_t *out
) {
    int64_t n = 0;
    for (int64_t i = 0; i < nx; i++) {
        uint16_t u = load16(x + 2 * i);
        store16(out + 2 * n, u);
        n += contains(c, data, u) == wanted;
    }
    return n;
}

/* Combine an array with another container if the result is certainly an array too; else return -1. */
static int combine_array(
    const container_t *x, const uint8_t *xs, const container_t *y, const uint8_t *ys, int op, rows_t *out
) {
    int both = is_array(y), grows = op == SET_OR || op == SET_XOR;
    if (grows && (!both || x->count + y->count > ARRAY_MAX)) return -1;
    /* room for eight more: the loops write a value, or a block of eight, before they decide whether it is kept */
    int64_t room = (int64_t)x->count + (grows ? y->count : 8), n;
    uint8_t *p = rows_add(out, x->key, room, 0, 2 * room);
    if (!p) return 0;
    const uint8_t *values = xs + x->at;
    if (both)
        n = combine_arrays(values, x->count, ys + y->at, y->count, op, p);
    else
        n = filter_array(values, x->count, y, ys, op == SET_AND, p);
    rows_shrink(out, n);
    return 1;
}

/* Combine a bitmap with an array, bit by bit. */
static int combine_bitmap(
    const container_t *x, const uint8_t *xs, const container_t *y, const uint8_t *ys, int op, rows_t *out
) {
    uint64_t words[CHUNK_WORDS];
    memcpy(words, xs + x->at, CHUNK_BYTES);
    const uint8_t *p = ys + y->at;
    for (int64_t i = 0; i < y->count; i++) {
        uint16_t v = load16(p + 2 * i);
        uint64_t bit = UINT64_C(1) << (v & 63);
        words[v >> 6] = op == SET_OR ? words[v >> 6] | bit : op == SET_SUB ? words[v >> 6] & ~bit : words[v >> 6] ^ bit;
    }
    return rows_add_bits(out, x->key, words);
}

static int combine_containers(
    const container_t *x, const uint8_t *xs, const container_t *y, const uint8_t *ys, int op, rows_t *out
) {
    int done = -1;
    if (is_array(x)) done = combine_array(x, xs, y, ys, op, out);
    else if (op == SET_AND && is_array(y)) done = combine_array(y, ys, x, xs, op, out);
    if (done >= 0) return done;
    if (is_bitmap(x) && is_array(y)) return combine_bitmap(x, xs, y, ys, op, out);
    if (is_bitmap(y) && is_array(x) && op != SET_SUB) return combine_bitmap(y, ys, x, xs, op, out);
    uint64_t left[CHUNK_WORDS], right[CHUNK_WORDS];
    expand(x, xs, left);
    expand(y, ys, right);
    for (int w = 0; w < CHUNK_WORDS; w++) left[w] = combine_words(left[w], right[w], op);
    return x->runs || y->runs ? rows_add_words(out, x->key, left) : rows_add_bits(out, x->key, left);
}

static int64_t values_bytes(const rows_t *rows) {
    int64_t total = 0;
    for (int64_t i = 0; i < rows->n; i++) total += payload_bytes(rows->items + i);
    return total;
}

static int rows_combine(const rows_t *a, const rows_t *b, int op, rows_t *out) {
    int64_t i = 0, j = 0;
    int keep_left = op != SET_AND, keep_right = op == SET_OR || op == SET_XOR;
    if (!rows_reserve(out, values_bytes(a) + (keep_right ? values_bytes(b) : 0) + 16)) return 0;
    while (i < a->n || j < b->n) {
        if (j == b->n || (i < a->n && a->items[i].key < b->items[j].key)) {
            if (keep_left && !rows_add_copy(out, a->items + i, a->data)) return 0;
            i++;
        } else if (i == a->n || b->items[j].key < a->items[i].key) {
            if (keep_right && !rows_add_copy(out, b->items + j, b->data)) return 0;
            j++;
        } else {
            if (!combine_containers(a->items + i, a->data, b->items + j, b->data, op, out)) return 0;
            i++, j++;
        }
    }
    return 1;
}

static int rows_copy(const rows_t *rows, rows_t *out) {
    for (int64_t i = 0; i < rows->n; i++)
        if (!rows_add_copy(out, rows->items + i, rows->data)) return 0;
    return 1;
}

static int is_disjoint(const container_t *x, const uint8_t *xs, const container_t *y, const uint8_t *ys) {
    if (is_array(y) && (!is_array(x) || x->count > y->count)) return is_disjoint(y, ys, x, xs);
    if (is_array(x)) {
        for (int64_t i = 0; i < x->count; i++)
            if (contains(y, ys, load16(xs + x->at + 2 * i))) return 0;
        return 1;
    }
    uint64_t left[CHUNK_WORDS], right[CHUNK_WORDS], common = 0;
    expand(x, xs, left);
    expand(y, ys, right);
    for (int w = 0; w < CHUNK_WORDS; w++) common |= left[w] & right[w];
    return !common;
}

static int rows_disjoint(const rows_t *a, const rows_t *b) {
    for (int64_t i = 0, j = 0; i < a->n && j < b->n;) {
        int64_t difference = a->items[i].key - b->items[j].key;
        if (difference == 0 && !is_disjoint(a->items + i, a->data, b->items + j, b->data)) return 0;
        i += difference <= 0;
        j += difference >= 0;
    }
    return 1;
}

static int rows_equal(const rows_t *a, const rows_t *b) {
    uint64_t left[CHUNK_WORDS], right[CHUNK_WORDS];
    if (a->n != b->n || a->count != b->count) return 0;
    for (int64_t i = 0; i < a->n; i++) {
        const container_t *x = a->items + i, *y = b->items + i;
        if (x->key != y->key || x->count != y->count) return 0;
        if (x->runs == y->runs && !memcmp(a->data + x->at, b->data + y->at, (size_t)payload_bytes(x))) continue;
        expand(x, a->data, left);
        expand(y, b->data, right);
        if (memcmp(left, right, CHUNK_BYTES)) return 0;
    }
    return 1;
}

/* ---- output into buffers of the caller ----------------------------------------------------------------------- */

/* Expand eight bits to eight bytes of 0 or 1. */
static inline uint64_t spread_byte(uint64_t byte) {
    uint64_t one_bit_each = (byte * UINT64_C(0x0101010101010101)) & UINT64_C(0x8040201008040201);
    return ((one_bit_each + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7) & UINT64_C(0x0101010101010101);
}

/* Write values of a bitmap container in [low, high) to out[value + shift]; `fill` = 0x0101..01 if a value writes 0. */
static void fill_bytes_bitmap(const uint8_t *p, int64_t low, int64_t high, uint8_t *out, int64_t shift, uint64_t fill) {
    while (low < high) {
        uint64_t word = load64(p + 8 * (low >> 6));
        if ((low & 63) == 0 && high - low >= 64) {
            for (int i = 0; i < 8; i++) store64(out + shift + low + 8 * i, spread_byte(word >> (8 * i) & 0xff) ^ fill);
            low += 64;
        } else {
            out[shift + low] = (uint8_t)((word >> (low & 63) & 1) ^ (fill & 1));
            low++;
        }
    }
}

/* Set out[i] to (start + i in rows) ^ invert, for i < n; one byte each. */
static void rows_fill_bytes(const rows_t *rows, int64_t start, int64_t n, uint8_t *out, int invert) {
    int64_t stop = start + n;
    memset(out, invert, (size_t)n);
    for (int64_t i = rows_find(rows, start >> CHUNK_BITS); i < rows->n; i++) {
        const container_t *c = rows->items + i;
        const uint8_t *p = rows->data + c->at;
        int64_t base = c->key << CHUNK_BITS, shift = base - start;
        if (base >= stop) break;
        int64_t low = max64(start - base, 0), high = min64(stop - base, CHUNK_ROWS);
        if (c->runs) {
            for (int64_t r = run_lower_bound(p, c->runs, low); r < c->runs; r++) {
                int64_t first = max64(load16(p + 4 * r), low);
                int64_t end = min64((int64_t)load16(p + 4 * r) + load16(p + 4 * r + 2) + 1, high);
                if (first >= high) break;
                memset(out + shift + first, !invert, (size_t)(end - first));
            }
        } else if (c->count <= ARRAY_MAX) {
            for (int64_t k = array_lower_bound(p, c->count, low); k < c->count; k++) {
                int64_t value = load16(p + 2 * k);
                if (value >= high) break;
                out[shift + value] = (uint8_t)!invert;
            }
        } else {
            fill_bytes_bitmap(p, low, high, out, shift, invert ? UINT64_C(0x0101010101010101) : 0);
        }
    }
}

/* Copy bits [low, high) of a bitmap container to bit positions shift + value of out; both begin on a word border at `low`. */
static void copy_bits_bitmap(const uint8_t *p, int64_t low, int64_t high, uint8_t *out, int64_t shift) {
    int64_t first = (shift + low) / 64, words = (high - low + 63) / 64;
    memcpy(out + 8 * first, p + low / 8, (size_t)(8 * words));
    uint8_t *last = out + 8 * (first + words - 1);
    store64(last, load64(last) & low_bits(high - low - 64 * (words - 1)));
}

static void or_bits_bitmap(const uint8_t *p, int64_t low, int64_t high, uint8_t *out, int64_t shift) {
    while (low < high) {
        int64_t target = shift + low, taken = min64(64 - (low & 63), high - low);
        uint64_t word = load64(p + 8 * (low >> 6)) >> (low & 63) & low_bits(taken);
        or64(out + 8 * (target >> 6), word << (target & 63));
        if ((target & 63) + taken > 64) or64(out + 8 * (target >> 6) + 8, word >> (64 - (target & 63)));
        low += taken;
    }
}

static void or_bits(const container_t *c, const uint8_t *p, int64_t low, int64_t high, uint8_t *out, int64_t shift) {
    if (c->runs) {
        for (int64_t r = run_lower_bound(p, c->runs, low); r < c->runs; r++) {
            int64_t first = load16(p + 4 * r), stop = first + load16(p + 4 * r + 2) + 1;
            if (first >= high) break;
            set_bit_range(out, shift + max64(first, low), shift + min64(stop, high));
        }
    } else if (c->count <= ARRAY_MAX) {
        for (int64_t k = array_lower_bound(p, c->count, low); k < c->count; k++) {
            int64_t value = load16(p + 2 * k);
            if (value >= high) break;
            out[(shift + value) >> 3] |= (uint8_t)(1 << ((shift + value) & 7));
        }
    } else {
        or_bits_bitmap(p, low, high, out, shift);
    }
}

static inline void clear_words(uint8_t *out, int64_t from, int64_t to) {
    if (from < to) memset(out + 8 * from, 0, (size_t)(8 * (to - from)));
}

/* Set bit i of out, least significant first, to (start + i in rows) ^ invert for i < n and to 0 above; out has ceil(n / 64)
 * words. Words are cleared one by one: clearing all of out first would double the writes for dense sets. */
static void rows_fill_bits(const rows_t *rows, int64_t start, int64_t n, uint8_t *out, int invert) {
    int64_t stop = start + n, words = n / 64 + (n % 64 != 0), cleared = 0;
    if (!n) return;
    for (int64_t i = rows_find(rows, start >> CHUNK_BITS); i < rows->n; i++) {
        const container_t *c = rows->items + i;
        int64_t base = c->key << CHUNK_BITS, shift = base - start;
        if (base >= stop) break;
        int64_t low = max64(start - base, 0), high = min64(stop - base, CHUNK_ROWS), end = (shift + high + 63) / 64;
        if (!c->runs && c->count > ARRAY_MAX && !(low & 63) && !((shift + low) & 63)) {
            clear_words(out, cleared, (shift + low) / 64);
            copy_bits_bitmap(rows->data + c->at, low, high, out, shift);
        } else {
            clear_words(out, cleared, end);
            or_bits(c, rows->data + c->at, low, high, out, shift);
        }
        cleared = end;
    }
    clear_words(out, cleared, words);
    if (invert) {
        for (int64_t w = 0; w < words; w++) store64(out + 8 * w, ~load64(out + 8 * w));
        store64(out + 8 * (words - 1), load64(out + 8 * (words - 1)) & low_bits(n - 64 * (words - 1)));
    }
}

/* Write the positions of the set bits of a word. `roomy`: at least 72 places are left; positions are then written in groups
 * of eight, because a branch for each bit is mispredicted, and up to seven places after the last one are overwritten. */
static inline int64_t *write_word(uint64_t word, int64_t first, int64_t *out, int roomy) {
    int64_t n = __builtin_popcountll(word);
    if (!roomy) {
        for (; word; word &= word - 1) *out++ = first + __builtin_ctzll(word);
        return out;
    }
    int64_t *end = out + n;
    while (out < end) {
        for (int k = 0; k < 8; k++, word &= word - 1) out[k] = first + __builtin_ctzll(word | UINT64_C(1) << 63);
        out += 8;
    }
    return end;
}

static inline int64_t *write_bitmap_plain(const uint8_t *p, int64_t base, int64_t *out, const int64_t *room_end) {
    for (int64_t w = 0; w < CHUNK_WORDS; w++)
        out = write_word(load64(p + 8 * w), base + 64 * w, out, room_end - out >= 72);
    return out;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("popcnt,bmi")))
static int64_t *write_bitmap_hardware(const uint8_t *p, int64_t base, int64_t *out, const int64_t *room_end) {
    return write_bitmap_plain(p, base, out, room_end);
}
static inline int64_t *write_bitmap(const uint8_t *p, int64_t base, int64_t *out, const int64_t *room_end) {
    int fast = __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi");
    return fast ? write_bitmap_hardware(p, base, out, room_end) : write_bitmap_plain(p, base, out, room_end);
}
#else
#define write_bitmap write_bitmap_plain
#endif

/* Write all positions in ascending order; out has rows->count places. */
static void rows_positions(const rows_t *rows, int64_t *out) {
    const int64_t *room_end = out + rows->count;
    for (int64_t i = 0; i < rows->n; i++) {
        const container_t *c = rows->items + i;
        const uint8_t *p = rows->data + c->at;
        int64_t base = c->key << CHUNK_BITS;
        if (c->runs) {
            for (int64_t r = 0; r < c->runs; r++) {
                int64_t first = base + load16(p + 4 * r), length = (int64_t)load16(p + 4 * r + 2) + 1;
                for (int64_t k = 0; k < length; k++) *out++ = first + k;
            }
        } else if (c->count <= ARRAY_MAX) {
            for (int64_t k = 0; k < c->count; k++) *out++ = base + load16(p + 2 * k);
        } else {
            out = write_bitmap(p, base, out, room_end);
        }
    }
}

/* Write the non-empty chunks of `width` rows (64 to 65,536, a power of two): their number, indices and words. */
static int64_t rows_chunks(const rows_t *rows, int64_t width, int64_t *index, uint64_t *out) {
    uint64_t words[CHUNK_WORDS];
    int64_t n = 0, step = width / 64;
    for (int64_t i = 0; i < rows->n; i++) {
        expand(rows->items + i, rows->data, words);
        for (int64_t w = 0; w < CHUNK_WORDS; w += step) {
            uint64_t any = 0;
            for (int64_t k = 0; k < step; k++) any |= words[w + k];
            if (!any) continue;
            memcpy(out + n * step, words + w, (size_t)(8 * step));
            index[n++] = rows->items[i].key * (CHUNK_WORDS / step) + w / step;
        }
    }
    return n;
}

#endif
