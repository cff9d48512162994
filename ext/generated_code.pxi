# Included below the headers of a kernel that is compiled at -O3. The functions of its module, which call the kernel a few
# times a batch, take as long to compile at -O3 as the kernel does, and are not faster.
cdef extern from *:
    """
    #if defined(__GNUC__) && !defined(__clang__)
    #pragma GCC optimize("O1")
    #endif
    """
