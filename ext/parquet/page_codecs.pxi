# Included by pages.pyx: codecs of pages, for tests.

def has_zstd():
    """Return whether the system has libzstd, which decompresses pages of zstd here."""
    return ZstdLibrary.loaded() is not NULL


def has_libdeflate():
    """Return whether the system has libdeflate, which decompresses pages of gzip here."""
    return DeflateLibrary.loaded() is not NULL


def decompress_snappy(const uint8_t[::1] data, int64_t size, bint is_text):
    """Return the plain bytes of a Snappy block; None unless they are `size`. For tests."""
    cdef Block source = Block(data.shape[0]), out = Block(size)
    cdef bint good
    if data.shape[0]:
        memcpy(source.data, &data[0], data.shape[0])
    with nogil:
        if is_text:
            good = snappy_texts(source.data, source.size, out.data, size)
        else:
            good = snappy_numbers(source.data, source.size, out.data, size)
    return out.cut(size).to_pybytes() if good else None


def decompress_gzip(const uint8_t[::1] data, int64_t size):
    """Return the plain bytes of gzip members; None unless they are `size`, or without libdeflate. For tests."""
    cdef GzipContext context
    cdef Block source = Block(data.shape[0]), out = Block(size)
    cdef bint good
    if data.shape[0]:
        memcpy(source.data, &data[0], data.shape[0])
    with nogil:
        good = context.decompress(source.data, source.size, out.data, size)
    return out.cut(size).to_pybytes() if good else None
