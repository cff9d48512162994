// Memory pages of the system, and how much memory there is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#undef TRUE /* names of other kernels */
#undef FALSE
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace delta_memory {

#ifdef _WIN32

inline size_t memory_of_process() {
    MEMORYSTATUSEX found = {};
    found.dwLength = sizeof found;
    return GlobalMemoryStatusEx(&found) ? static_cast<size_t>(found.ullTotalPhys) : 0;
}

inline void *map_pages(size_t size, bool) { return VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }

inline void unmap_pages(void *data, size_t) { VirtualFree(data, 0, MEM_RELEASE); }

inline void let_take_pages(void *data, size_t size) { VirtualAlloc(data, size, MEM_RESET, PAGE_READWRITE); }

inline void *huge_block(size_t size, size_t) { return std::malloc(size); }

#else

// Return the memory limit of the process in bytes: that of the system or of its control group.
inline size_t memory_of_process() {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t found = pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : 0;
    for (const char *path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
        std::FILE *const file = std::fopen(path, "re");
        if (!file) continue;
        unsigned long long limit;  // not a number if there is no limit; it may exceed the memory of the system
        if (std::fscanf(file, "%llu", &limit) == 1) found = std::min<size_t>(found, limit);
        std::fclose(file);
    }
    return found;
}

// Return fresh pages, nullptr if there is no memory. Those that are written whole are taken with one call, if the system has
// such a call: it takes two thirds of the time of a page fault for each.
inline void *map_pages(size_t size, bool is_written_whole) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_POPULATE
    if (is_written_whole) flags |= MAP_POPULATE;
#else
    (void)is_written_whole;
#endif
    void *const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    return data == MAP_FAILED ? nullptr : data;
}

inline void unmap_pages(void *data, size_t size) { munmap(data, size); }

// Let the system reclaim pages when it needs memory; until then they are reused.
inline void let_take_pages(void *data, size_t size) {
#ifdef MADV_FREE
    madvise(data, size, MADV_FREE);
#else
    (void)data, (void)size;
#endif
}

// Return a block that `std::free` releases, in huge pages where available; nullptr if there is no memory.
inline void *huge_block(size_t size, size_t huge_page) {
    void *data;
    if (posix_memalign(&data, huge_page, size)) return nullptr;
#ifdef MADV_HUGEPAGE
    madvise(data, size, MADV_HUGEPAGE);
#endif
    return data;
}

#endif

}  // namespace delta_memory
