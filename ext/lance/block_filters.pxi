# Included by metadata.pyx: filters of blocks of 256 bits in Bloom filter indices; `delta_plugins.lance.index.zones` is their
# public API.

cdef extern from "parquet/block_filter.h" namespace "delta_parquet" nogil:
    uint64_t xxhash64(const uint8_t* bytes, size_t size)
    size_t block_of(uint64_t hash, uint64_t num_blocks)
    bint block_may_have(const uint8_t* block, uint64_t hash)
    const size_t BLOCK_BYTES


def may_have_any(const uint8_t[::1] filters not None, const int64_t[::1] ends not None, const uint8_t[::1] keys not None,
                 const int64_t[::1] key_ends not None, uint8_t[::1] found not None):
    """Find the filters that may have any of some keys.

    Parameters
    ----------
    filters : uint8[n]
        The filters, one after the other.
    ends : int64[num_filters + 1]
        0, and where each of them ends; they are blocks of 32 bytes.
    keys : uint8[m]
        The bytes of the keys, one after the other.
    key_ends : int64[num_keys + 1]
        0, and where each of them ends.
    found : uint8[num_filters]
        Zeros; set to 1 for each filter that may have a key. A filter without a bit may have any.

    Returns
    -------
    int
        -1, or the number of a filter that does not consist of blocks, or is not within the bytes.
    """
    cdef int64_t f, k, at, size, count = found.shape[0], num_keys = key_ends.shape[0] - 1
    cdef uint64_t hash
    cdef const uint8_t* block
    cdef const uint8_t* text = &keys[0] if keys.shape[0] else NULL
    if ends.shape[0] != count + 1 or num_keys < 0:
        return 0
    for k in range(num_keys):
        if not 0 <= key_ends[k] <= key_ends[k + 1] <= keys.shape[0]:
            raise ValueError("the ends of keys do not rise")
    for f in range(count):
        at, size = ends[f], ends[f + 1] - ends[f]
        if at < 0 or size <= 0 or size % <int64_t>BLOCK_BYTES or ends[f + 1] > filters.shape[0]:
            return f
    with nogil:
        for k in range(num_keys):
            hash = xxhash64(text + key_ends[k], key_ends[k + 1] - key_ends[k])
            for f in range(count):
                block = &filters[0] + ends[f]
                size = ends[f + 1] - ends[f]
                if not found[f] and block_may_have(block + block_of(hash, size // <int64_t>BLOCK_BYTES) * BLOCK_BYTES, hash):
                    found[f] = 1
        for f in range(count):
            if not found[f]:
                found[f] = not has_bit(&filters[0] + ends[f], ends[f + 1] - ends[f])
    return -1


cdef bint has_bit(const uint8_t* bytes, int64_t size) noexcept nogil:
    cdef int64_t i
    for i in range(size):
        if bytes[i]:
            return True
    return False
