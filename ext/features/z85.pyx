"""Z85 text to bytes and back; `delta_plugins.deletion_vectors.z85` is its public API."""

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memset

from delta_core.api import CorruptTableError

include "memory/arrow_strings.pxi"

cdef bytes ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
cdef const char* LETTERS = ALPHABET
cdef uint8_t[256] DIGITS

cdef int _i
for _i in range(256):
    DIGITS[_i] = 255
for _i in range(85):
    DIGITS[<uint8_t>LETTERS[_i]] = _i


cdef int64_t decode_groups(const uint8_t* text, int64_t groups, uint8_t* out) noexcept nogil:
    """Decode groups of 5 letters to 4 bytes each; return -1, or the index of the first invalid group."""
    cdef int64_t i
    cdef int k
    cdef uint64_t value
    cdef uint8_t bad
    for i in range(groups):
        value = bad = 0
        for k in range(5):
            value = value * 85 + DIGITS[text[5 * i + k]]
            bad |= DIGITS[text[5 * i + k]]
        # Digits are below 85 < 128, so the top bit is set only by a letter outside of the alphabet.
        if bad & 128 or value >> 32:
            return i
        for k in range(4):
            out[4 * i + k] = <uint8_t>(value >> (24 - 8 * k))
    return -1


def decode(const uint8_t[::1] text):
    cdef int64_t groups = text.shape[0] // 5, bad = -1
    if text.shape[0] % 5:
        raise CorruptTableError(f"Z85 text comes in groups of 5 letters, not {text.shape[0]} letters")
    out = PyBytes_FromStringAndSize(NULL, 4 * groups)
    cdef uint8_t* target = <uint8_t*>PyBytes_AS_STRING(out)
    if groups:
        with nogil:
            bad = decode_groups(&text[0], groups, target)
    if bad >= 0:
        raise CorruptTableError(f"letters {5 * bad} to {5 * bad + 4} are not Z85: {bytes(text[5 * bad:5 * bad + 5])!r}")
    return out


def encode(const uint8_t[::1] data):
    cdef int64_t i, groups = data.shape[0] // 4
    cdef uint32_t value
    cdef int k
    if data.shape[0] % 4:
        raise InvalidArgumentError(f"Z85 takes a multiple of 4 bytes, not {data.shape[0]}")
    out = PyBytes_FromStringAndSize(NULL, 5 * groups)
    cdef uint8_t* target = <uint8_t*>PyBytes_AS_STRING(out)
    with nogil:
        for i in range(groups):
            value = 0
            for k in range(4):
                value = value << 8 | data[4 * i + k]
            for k in range(4, -1, -1):
                target[5 * i + k] = LETTERS[value % 85]
                value = value // 85
    return out


cdef int64_t decode_ends(const strings_t* texts, uint8_t* out) noexcept nogil:
    """Decode the last 20 letters of each text to 16 bytes (zeros for null); return -1, or the first invalid row."""
    cdef int64_t i
    cdef text_t text
    memset(out, 0, 16 * texts.n)
    for i in range(texts.n):
        text = string_at(texts, i)
        if text.size >= 0 and (text.size < 20 or decode_groups(text.data + text.size - 20, 4, out + 16 * i) >= 0):
            return i
    return -1


def decode_uuids(source):
    cdef Strings texts = Strings(source, 0)
    cdef int64_t n = texts.array.n, bad = -1
    cdef uint8_t[:, ::1] view
    out = np.empty((n, 16), np.uint8)
    if n:
        view = out
        with nogil:
            bad = decode_ends(&texts.array, &view[0, 0])
    return out, bad


cdef uint8_t* write_name(text_t text, const uint8_t* raw, uint8_t* out) noexcept nogil:
    """Write `<prefix>/deletion_vector_<uuid>.bin` and return its end."""
    cdef const char* hexadecimal = "0123456789abcdef"
    cdef int i
    if text.size > 20:
        memcpy(out, text.data, text.size - 20)
        out += text.size - 20
        out[0] = c"/"
        out += 1
    memcpy(out, <const char*>b"deletion_vector_", 16)
    out += 16
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            out[0] = c"-"
            out += 1
        out[0] = hexadecimal[raw[i] >> 4]
        out[1] = hexadecimal[raw[i] & 15]
        out += 2
    memcpy(out, <const char*>b".bin", 4)
    return out + 4


def vector_names(source, const uint8_t[:, ::1] uuids):
    """Return offsets and bytes of the file name of each text, from its decoded `uuids`."""
    cdef Strings texts = Strings(source, 0)
    cdef int64_t i, n = texts.array.n
    cdef text_t text
    cdef uint8_t* target
    offsets = np.zeros(n + 1, np.int64)
    cdef int64_t[::1] ends = offsets
    if uuids.shape[0] != n or uuids.shape[1] != 16:
        raise InvalidArgumentError(f"{n} texts come with {uuids.shape[0]} UUIDs of {uuids.shape[1]} bytes")
    for i in range(n):
        text = string_at(&texts.array, i)
        # 56 = deletion_vector_ (16), the UUID (36) and .bin (4)
        ends[i + 1] = ends[i] + (0 if text.size < 20 else 56 if text.size == 20 else 56 + text.size - 19)
    data = PyBytes_FromStringAndSize(NULL, ends[n])
    target = <uint8_t*>PyBytes_AS_STRING(data)
    with nogil:
        for i in range(n):
            text = string_at(&texts.array, i)
            if text.size >= 20:
                target = write_name(text, &uuids[i, 0], target)
    return offsets, data
