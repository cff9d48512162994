/* Files of the local disk that are read. The other kernels do not depend on the system: they call these functions, and those
of memory.h.

A descriptor is one of the C library, as Python's are. Paths are UTF-8. */
#ifndef DELTA_PLATFORM_FILES_H
#define DELTA_PLATFORM_FILES_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

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

#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#else
#include <fcntl.h>
#include <unistd.h>
#endif

typedef struct {
    int64_t size;
    int is_file, is_folder; /* neither: a pipe, a socket or a device */
} file_facts_t;

#ifdef _WIN32

static inline int file_error(DWORD error) {
    switch (error) {
        case ERROR_FILE_NOT_FOUND:
        case ERROR_PATH_NOT_FOUND:
        case ERROR_INVALID_NAME:
        case ERROR_BAD_PATHNAME:
        case ERROR_BAD_NETPATH:
        case ERROR_BAD_NET_NAME: return ENOENT;
        case ERROR_ACCESS_DENIED:
        case ERROR_SHARING_VIOLATION:
        case ERROR_LOCK_VIOLATION: return EACCES;
        case ERROR_TOO_MANY_OPEN_FILES: return EMFILE;
        case ERROR_NOT_ENOUGH_MEMORY:
        case ERROR_OUTOFMEMORY: return ENOMEM;
        default: return EIO;
    }
}

/* Open a file; other processes may replace or delete it meanwhile, as on other systems. */
static inline int file_open(const char *path) {
    const int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    wchar_t *const wide = length ? (wchar_t *)malloc(sizeof(wchar_t) * (size_t)length) : NULL;
    if (!wide) {
        errno = length ? ENOMEM : ENOENT; /* no name has other bytes than UTF-8 */
        return -1;
    }
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, length);
    const DWORD shared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    const HANDLE handle = CreateFileW(wide, GENERIC_READ, shared, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    int descriptor = -1;
    if (handle == INVALID_HANDLE_VALUE) {
        int error = file_error(GetLastError());
        if (error == EACCES) {
            const DWORD attributes = GetFileAttributesW(wide);
            if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY) error = EISDIR;
        }
        errno = error;
    } else if ((descriptor = _open_osfhandle((intptr_t)handle, _O_RDONLY | _O_BINARY | _O_NOINHERIT)) < 0) {
        CloseHandle(handle);
        errno = EMFILE;
    }
    free(wide);
    return descriptor;
}

static inline void file_close(int descriptor) { _close(descriptor); }

static inline int64_t file_read_at(int descriptor, void *out, size_t size, int64_t at) {
    const HANDLE handle = (HANDLE)_get_osfhandle(descriptor);
    OVERLAPPED place = {0};
    DWORD count = 0;
    place.Offset = (DWORD)((uint64_t)at & 0xFFFFFFFFu);
    place.OffsetHigh = (DWORD)((uint64_t)at >> 32);
    if (handle == INVALID_HANDLE_VALUE) {
        errno = EBADF;
        return -1;
    }
    if (!ReadFile(handle, out, size > 0x40000000u ? 0x40000000u : (DWORD)size, &count, &place)) {
        const DWORD error = GetLastError();
        if (error == ERROR_HANDLE_EOF) return 0;
        errno = file_error(error);
        return -1;
    }
    return (int64_t)count;
}

static inline int64_t file_read(int descriptor, void *out, size_t size) {
    return _read(descriptor, out, size > 0x40000000u ? 0x40000000u : (unsigned)size);
}

/* Return 0, or -1 with the error number in errno. */
static inline int file_facts(int descriptor, file_facts_t *out) {
    struct _stat64 found;
    if (_fstat64(descriptor, &found)) return -1;
    out->size = found.st_size;
    out->is_file = (found.st_mode & _S_IFMT) == _S_IFREG;
    out->is_folder = (found.st_mode & _S_IFMT) == _S_IFDIR;
    return 0;
}

#else

/* Return a descriptor, or -1 with the error number in errno. A pipe without a writer is not waited for. */
static inline int file_open(const char *path) { return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); }

static inline void file_close(int descriptor) { close(descriptor); }

/* Read bytes from a place on, regardless of the position in the file. Returns how many there are, at most `size` and 0 at the
end of the file, or -1 with the error number in errno. */
static inline int64_t file_read_at(int descriptor, void *out, size_t size, int64_t at) {
    return pread(descriptor, out, size, (off_t)at);
}

/* Read the next bytes; the result is that of `file_read_at`. */
static inline int64_t file_read(int descriptor, void *out, size_t size) { return read(descriptor, out, size); }

/* Return 0, or -1 with the error number in errno. */
static inline int file_facts(int descriptor, file_facts_t *out) {
    struct stat found;
    if (fstat(descriptor, &found)) return -1;
    out->size = (int64_t)found.st_size;
    out->is_file = S_ISREG(found.st_mode);
    out->is_folder = S_ISDIR(found.st_mode);
    return 0;
}

#endif

#endif
