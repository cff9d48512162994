# Included by pages.pyx: codecs of pages, for tests.

def has_zstd():
    """Whether pages of zstd are decompressed here, by the system's library."""
    return ZstdLibrary.loaded() is not NULL


def has_libdeflate():
    """Whether pages of gzip are decompressed here, by the system's library."""
    return DeflateLibrary.loaded() is not NULL


def decompress_snappy(const uint8_t[::1] data, int64_t size, bint is_text):
    """Return the `size` plain bytes of a Snappy block; None if it does not have as many. For tests."""
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
    """Return the `size` plain bytes of gzip members; None if there are not as many, or without libdeflate. For tests."""
    cdef GzipContext context
    cdef Block source = Block(data.shape[0]), out = Block(size)
    cdef bint good
    if data.shape[0]:
        memcpy(source.data, &data[0], data.shape[0])
    with nogil:
        good = context.decompress(source.data, source.size, out.data, size)
    return out.cut(size).to_pybytes() if good else None
