/* The portable roaring formats of 32 and 64 bits (RoaringFormatSpec): bytes to containers that refer to them, and
 * containers to bytes.
 *
 * Bytes of files are checked in full before they are used: every length against the remaining bytes, keys and values for
 * their order, counts against the values. No memory is allocated by a length that was not checked.
 */
#ifndef DELTA_ROARING_FORMAT_H
#define DELTA_ROARING_FORMAT_H

#include "containers.h"

enum { COOKIE_NO_RUNS = 12346, COOKIE_RUNS = 12347, OFFSETS_FROM = 4 };
enum { PARSE_FAULT = -1, PARSE_NO_MEMORY = 0, PARSE_OK = 1 };

typedef struct { const char *what; int64_t at; } fault_t;

static int fail(fault_t *fault, const char *what, int64_t at) {
    fault->what = what;
    fault->at = at;
    return PARSE_FAULT;
}

static int check_array(const uint8_t *p, int64_t count) {
    int bad = 0;
    for (int64_t i = 1; i < count; i++) bad |= load16(p + 2 * i) <= load16(p + 2 * i - 2);
    return !bad;
}

static int check_runs(const uint8_t *p, int64_t runs, int64_t count) {
    int64_t stop = 0, total = 0;
    for (int64_t i = 0; i < runs; i++) {
        int64_t first = load16(p + 4 * i), length = (int64_t)load16(p + 4 * i + 2) + 1;
        if (first < stop) return 0;
        stop = first + length;
        total += length;
    }
    return stop <= CHUNK_ROWS && total == count;
}

/* Read one 32-bit bitmap at *pos, add bucket << 32 to its positions, and move *pos after it. */
static int parse_bitmap32(const uint8_t *buf, int64_t size, int64_t *pos, int64_t bucket, rows_t *out, fault_t *fault) {
    const int64_t start = *pos;
    int64_t at = start, n, flags = -1;
    if (size - at < 8) return fail(fault, "a bitmap's header is cut off", at);
    uint32_t cookie = load32(buf + at);
    if ((cookie & 0xffff) == COOKIE_RUNS) {
        n = (int64_t)(cookie >> 16) + 1;
        flags = at + 4;
        at = flags + (n + 7) / 8;
    } else if (cookie == COOKIE_NO_RUNS) {
        n = load32(buf + at + 4);
        if (n > CHUNK_ROWS) return fail(fault, "a bitmap claims more than 65,536 containers", at + 4);
        at += 8;
    } else {
        return fail(fault, "the cookie is neither 12346 nor 12347", at);
    }
    int64_t heads = at, offsets = flags < 0 || n >= OFFSETS_FROM ? heads + 4 * n : -1;
    at = heads + 4 * n + (offsets < 0 ? 0 : 4 * n);
    if (at > size) return fail(fault, "the container headers are cut off", min64(heads, size));
    for (int64_t i = 0, last_key = -1; i < n; i++) {
        int64_t key = load16(buf + heads + 4 * i), count = (int64_t)load16(buf + heads + 4 * i + 2) + 1, runs = 0;
        if (key <= last_key) return fail(fault, "container keys don't ascend", heads + 4 * i);
        last_key = key;
        if (offsets >= 0 && load32(buf + offsets + 4 * i) != at - start)
            return fail(fault, "a container's offset isn't where the container lies", offsets + 4 * i);
        if (flags >= 0 && buf[flags + i / 8] >> (i % 8) & 1) {
            if (size - at < 2) return fail(fault, "a run container is cut off", at);
            runs = load16(buf + at);
            at += 2;
            if (size - at < 4 * runs) return fail(fault, "a run container is cut off", at);
            if (!check_runs(buf + at, runs, count))
                return fail(fault, "runs overlap, pass row 65,535 or don't add up to the container's cardinality", at);
        } else if (count <= ARRAY_MAX) {
            if (size - at < 2 * count) return fail(fault, "an array container is cut off", at);
            if (!check_array(buf + at, count)) return fail(fault, "an array container's values don't ascend", at);
        } else {
            if (size - at < CHUNK_BYTES) return fail(fault, "a bitmap container is cut off", at);
            if (popcount(buf + at, CHUNK_WORDS) != count)
                return fail(fault, "a bitmap container's bits don't add up to its cardinality", at);
        }
        if (!rows_push(out, bucket << 16 | key, at, count, runs)) return PARSE_NO_MEMORY;
        at += payload_bytes(out->items + out->n - 1);
    }
    *pos = at;
    return PARSE_OK;
}

/* Read a whole buffer (bits = 32 or 64) into containers that refer to it; bytes after the set are an error unless
 * `trailing`. */
static int parse_rows(const uint8_t *buf, int64_t size, int bits, int trailing, rows_t *out, fault_t *fault) {
    int64_t pos = 0, last = -1;
    int status = PARSE_OK;
    out->data = (uint8_t *)buf;
    if (bits == 32) {
        status = parse_bitmap32(buf, size, &pos, 0, out, fault);
    } else {
        if (size < 8) return fail(fault, "the bucket count is cut off", 0);
        uint64_t buckets = load64(buf);
        if (buckets > (uint64_t)(size - 8) / 12) return fail(fault, "more buckets are claimed than the bytes can hold", 0);
        pos = 8;
        for (uint64_t i = 0; i < buckets && status == PARSE_OK; i++) {
            if (size - pos < 4) return fail(fault, "a bucket's key is cut off", pos);
            int64_t bucket = load32(buf + pos);
            if (bucket > INT32_MAX) return fail(fault, "a bucket key's top bit is set", pos);
            if (bucket <= last) return fail(fault, "bucket keys don't ascend", pos);
            last = bucket;
            pos += 4;
            status = parse_bitmap32(buf, size, &pos, bucket, out, fault);
        }
    }
    if (status == PARSE_OK && pos != size && !trailing) return fail(fault, "bytes follow the end of the set", pos);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

static int64_t array_runs(const uint8_t *p, int64_t count) {
    int64_t runs = 1;
    for (int64_t i = 1; i < count; i++) runs += load16(p + 2 * i) != load16(p + 2 * i - 2) + 1;
    return runs;
}

/* Copy to `out` with each container in its smallest kind; containers of files may be of another one. */
static int rows_compact(const rows_t *rows, rows_t *out) {
    uint64_t words[CHUNK_WORDS];
    for (int64_t i = 0; i < rows->n; i++) {
        const container_t *c = rows->items + i;
        if (!c->runs && c->count <= ARRAY_MAX && 2 + 4 * array_runs(rows->data + c->at, c->count) >= 2 * (int64_t)c->count) {
            if (!rows_add_copy(out, c, rows->data)) return 0;
        } else {
            expand(c, rows->data, words);
            if (!rows_add_words(out, c->key, words)) return 0;
        }
    }
    return 1;
}

/* Return the index after the last container of the bucket of container i. */
static int64_t bucket_end(const rows_t *rows, int64_t i) {
    int64_t bucket = rows->items[i].key >> 16;
    while (i < rows->n && rows->items[i].key >> 16 == bucket) i++;
    return i;
}

static int has_runs(const rows_t *rows, int64_t first, int64_t stop) {
    for (int64_t i = first; i < stop; i++)
        if (rows->items[i].runs) return 1;
    return 0;
}

static int64_t header_bytes(int64_t n, int runs) {
    return runs ? 4 + (n + 7) / 8 + 4 * n + (n >= OFFSETS_FROM ? 4 * n : 0) : 8 + 8 * n;
}

static int64_t bitmap32_bytes(const rows_t *rows, int64_t first, int64_t stop) {
    int64_t total = header_bytes(stop - first, has_runs(rows, first, stop));
    for (int64_t i = first; i < stop; i++) total += payload_bytes(rows->items + i) + (rows->items[i].runs ? 2 : 0);
    return total;
}

static uint8_t *write_bitmap32(const rows_t *rows, int64_t first, int64_t stop, uint8_t *p) {
    int64_t n = stop - first;
    int runs = has_runs(rows, first, stop);
    uint8_t *flags = p + 4, *heads = runs ? flags + (n + 7) / 8 : p + 8;
    uint8_t *offsets = !runs || n >= OFFSETS_FROM ? heads + 4 * n : NULL, *values = p + header_bytes(n, runs);
    if (runs) {
        store32(p, COOKIE_RUNS | (uint32_t)(n - 1) << 16);
        memset(flags, 0, (size_t)((n + 7) / 8));
    } else {
        store32(p, COOKIE_NO_RUNS);
        store32(p + 4, (uint32_t)n);
    }
    for (int64_t i = 0; i < n; i++) {
        const container_t *c = rows->items + first + i;
        store16(heads + 4 * i, (uint16_t)(c->key & 0xffff));
        store16(heads + 4 * i + 2, (uint16_t)(c->count - 1));
        if (offsets) store32(offsets + 4 * i, (uint32_t)(values - p));
        if (c->runs) {
            flags[i / 8] |= (uint8_t)(1 << (i % 8));
            store16(values, (uint16_t)c->runs);
            values += 2;
        }
        memcpy(values, rows->data + c->at, (size_t)payload_bytes(c));
        values += payload_bytes(c);
    }
    return values;
}

static int64_t rows_bytes(const rows_t *rows, int bits) {
    if (bits == 32) return bitmap32_bytes(rows, 0, rows->n);
    int64_t total = 8;
    for (int64_t i = 0, stop; i < rows->n; i = stop) {
        stop = bucket_end(rows, i);
        total += 4 + bitmap32_bytes(rows, i, stop);
    }
    return total;
}

/* Precondition: `rows` are a result of rows_compact, and p has rows_bytes(rows, bits). */
static void write_rows(const rows_t *rows, int bits, uint8_t *p) {
    if (bits == 32) { write_bitmap32(rows, 0, rows->n, p); return; }
    uint8_t *count = p;
    uint64_t buckets = 0;
    p += 8;
    for (int64_t i = 0, stop; i < rows->n; i = stop, buckets++) {
        stop = bucket_end(rows, i);
        store32(p, (uint32_t)(rows->items[i].key >> 16));
        p = write_bitmap32(rows, i, stop, p + 4);
    }
    store64(count, buckets);
}

/* ---- blocks: size (big-endian), magic number, 64-bit bitmap, CRC-32 of both (big-endian) --------------------- */

enum { BLOCK_FRAME = 12 };

static uint32_t crc32_of(const uint8_t *p, int64_t n) {
    static const uint32_t half[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = ~UINT32_C(0);
    for (int64_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = half[crc & 15] ^ (crc >> 4);
        crc = half[crc & 15] ^ (crc >> 4);
    }
    return ~crc;
}

static void store32_big(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Find a vector in `size` bytes: a payload alone, or one preceded by its size and followed by its checksum. Returns the
   first byte of the bitmap and its size in *length; NULL otherwise: a slower reader then reports the reason. */
static const uint8_t *find_bitmap(const uint8_t *p, int64_t size, uint32_t magic, int64_t *length) {
    if (size < 4) return NULL;
    if (load32(p) != magic) {
        if (size < BLOCK_FRAME) return NULL;
        uint32_t stated = 0, sum = 0;
        for (int i = 0; i < 4; i++) stated = stated << 8 | p[i];
        if ((int64_t)stated != size - 8 || load32(p + 4) != magic) return NULL;
        for (int i = 0; i < 4; i++) sum = sum << 8 | p[size - 4 + i];
        if (crc32_of(p + 4, size - 8) != sum) return NULL;
        p += 4;
        size -= 8;
    }
    *length = size - 4;
    return p + 4;
}

/* Precondition: `rows` are a result of rows_compact, and p has rows_bytes(rows, 64) + BLOCK_FRAME. */
static void write_block(const rows_t *rows, uint32_t magic, uint8_t *p) {
    int64_t size = rows_bytes(rows, 64) + 4;
    store32_big(p, (uint32_t)size);
    store32(p + 4, magic);
    write_rows(rows, 64, p + 8);
    store32_big(p + 4 + size, crc32_of(p + 4, size));
}

#endif
