/* Many files of a local disk at once: the entries of a folder, and files found and deleted by their paths below a root.

No symbolic link is followed below the root: every folder of a path is opened separately, so that nothing outside of the
root can be reached, even if folders are replaced meanwhile. */
#ifndef DELTA_FOLDERS_H
#define DELTA_FOLDERS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/arrow_strings.h"

enum { ENTRY_FILE = 0, ENTRY_FOLDER = 1, ENTRY_LINK = 2, ENTRY_OTHER = 3 };

typedef struct { int64_t end, size, modified_ms, kind; } entry_t;

typedef struct {
    uint8_t *names;   /* consecutive */
    entry_t *entries;
    int64_t used, room, n, capacity;
} entries_t;

static int64_t modified_ms(const struct stat *s) {
#ifdef __APPLE__
    return (int64_t)s->st_mtimespec.tv_sec * 1000 + s->st_mtimespec.tv_nsec / 1000000;
#else
    return (int64_t)s->st_mtim.tv_sec * 1000 + s->st_mtim.tv_nsec / 1000000;
#endif
}

static int entries_add(entries_t *out, const char *prefix, size_t prefix_size, const char *name, const entry_t *entry) {
    size_t size = strlen(name);
    int64_t needed = out->used + (int64_t)(prefix_size + size);
    if (needed > out->room) {
        int64_t room = needed * 2 + 4096;
        uint8_t *grown = realloc(out->names, (size_t)room);
        if (!grown) return ENOMEM;
        out->names = grown;
        out->room = room;
    }
    if (out->n == out->capacity) {
        int64_t capacity = out->capacity * 2 + 64;
        entry_t *grown = realloc(out->entries, (size_t)capacity * sizeof(entry_t));
        if (!grown) return ENOMEM;
        out->entries = grown;
        out->capacity = capacity;
    }
    memcpy(out->names + out->used, prefix, prefix_size);
    memcpy(out->names + out->used + prefix_size, name, size);
    out->used = needed;
    out->entries[out->n] = *entry;
    out->entries[out->n++].end = needed;
    return 0;
}

/* List a folder that is not a link; each name has the prefix. Returns 0 or an error number. */
static int list_entries(const char *folder, const char *prefix, size_t prefix_size, entries_t *out) {
    int handle = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (handle < 0) return errno;
    DIR *dir = fdopendir(handle);
    if (!dir) {
        int error = errno;
        close(handle);
        return error;
    }
    int error = 0;
    for (;;) {
        errno = 0;
        struct dirent *found = readdir(dir);
        if (!found) {
            error = errno;
            break;
        }
        const char *name = found->d_name;
        if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) continue;
        entry_t entry = {0, 0, 0, ENTRY_OTHER};
        if (found->d_type == DT_DIR || found->d_type == DT_LNK) {
            entry.kind = found->d_type == DT_DIR ? ENTRY_FOLDER : ENTRY_LINK;
        } else {
            struct stat s;
            if (fstatat(handle, name, &s, AT_SYMLINK_NOFOLLOW)) {
                if (errno == ENOENT) continue; /* deleted meanwhile */
                error = errno;
                break;
            }
            entry.size = (int64_t)s.st_size;
            entry.modified_ms = modified_ms(&s);
            if (S_ISREG(s.st_mode)) entry.kind = ENTRY_FILE;
            else if (S_ISDIR(s.st_mode)) entry.kind = ENTRY_FOLDER;
            else if (S_ISLNK(s.st_mode)) entry.kind = ENTRY_LINK;
        }
        error = entries_add(out, prefix, prefix_size, name, &entry);
        if (error) break;
    }
    closedir(dir);
    return error;
}

/* Whether an entry that is not known to be a file is a folder, or a link to one. */
static int is_folder(int handle, const struct dirent *entry) {
    if (entry->d_type == DT_DIR) return 1;
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) return 0;
    struct stat s;
    return !fstatat(handle, entry->d_name, &s, 0) && S_ISDIR(s.st_mode);
}

typedef struct {
    char **names;   /* ascending */
    int64_t n, room, count;   /* count: with those that are left out */
} first_t;

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Add a name: at its place if only `limit` names are kept, else at the end. */
static int first_add(first_t *out, const char *name, int64_t limit) {
    out->count++;
    if (limit >= 0 && out->n == limit && (!limit || strcmp(name, out->names[out->n - 1]) >= 0)) return 0;
    if (out->n == out->room) {
        int64_t room = out->room * 2 + 64;
        char **grown = realloc(out->names, (size_t)room * sizeof(char *));
        if (!grown) return ENOMEM;
        out->names = grown;
        out->room = room;
    }
    char *copy = strdup(name);
    if (!copy) return ENOMEM;
    int64_t at = out->n;
    if (limit >= 0) {
        int64_t first = 0;
        while (first < at) {
            int64_t middle = (first + at) / 2;
            if (strcmp(out->names[middle], copy) < 0) first = middle + 1;
            else at = middle;
        }
        if (out->n == limit) free(out->names[--out->n]);
        memmove(out->names + at + 1, out->names + at, (size_t)(out->n - at) * sizeof(char *));
    }
    out->names[at] = copy;
    out->n++;
    return 0;
}

/* Find the first files of a folder from a name on, at most `limit`, -1: all. Returns 0 or an error number. */
static int first_names(const char *folder, const char *start, int64_t limit, first_t *out) {
    DIR *dir = opendir(folder);
    if (!dir) return errno;
    int error = 0;
    while (!error) {
        errno = 0;
        struct dirent *found = readdir(dir);
        if (!found) {
            error = errno;
            break;
        }
        const char *name = found->d_name;
        if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) continue;
        if (strcmp(name, start) < 0 || is_folder(dirfd(dir), found)) continue;
        error = first_add(out, name, limit);
    }
    closedir(dir);
    if (!error && limit < 0 && out->n) qsort(out->names, (size_t)out->n, sizeof(char *), compare_names);
    return error;
}

static void first_free(first_t *out) {
    for (int64_t i = 0; i < out->n; i++) free(out->names[i]);
    free(out->names);
}

static void entries_free(entries_t *e) {
    free(e->names);
    free(e->entries);
}

/* The folder that was opened last; consecutive paths are mostly in the same folder. */
typedef struct {
    int root, handle;
    char *folder;
    int64_t size, room;
} folder_t;

static void folder_close(folder_t *f) {
    if (f->handle >= 0 && f->handle != f->root) close(f->handle);
    f->handle = -1;
    f->size = -1;
}

static int is_dots(const char *part, size_t size) {
    return (size == 1 && part[0] == '.') || (size == 2 && part[0] == '.' && part[1] == '.');
}

/* Open the folder of a path (`size` bytes, without the name) below the root, one component at a time. Returns 0 or an
   error number. */
static int folder_open(folder_t *f, const uint8_t *path, int64_t size) {
    if (f->size == size && f->handle >= 0 && !memcmp(f->folder, path, (size_t)size)) return 0;
    folder_close(f);
    if (size + 1 > f->room) {
        char *grown = realloc(f->folder, (size_t)size * 2 + 256);
        if (!grown) return ENOMEM;
        f->folder = grown;
        f->room = size * 2 + 256;
    }
    if (size) memcpy(f->folder, path, (size_t)size);
    f->folder[size] = 0;
    int handle = f->root;
    for (int64_t start = 0; start < size;) {
        char *part = f->folder + start;
        char *end = memchr(part, '/', (size_t)(size - start));
        size_t length = end ? (size_t)(end - part) : (size_t)(size - start);
        if (!length || is_dots(part, length)) {
            if (handle != f->root) close(handle);
            return EXDEV;
        }
        part[length] = 0;
        int next = openat(handle, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int error = errno;
        if (end) part[length] = '/';
        if (handle != f->root) close(handle);
        if (next < 0) return error;
        handle = next;
        start += (int64_t)length + 1;
    }
    f->handle = handle;
    f->size = size;
    return 0;
}

/* Find the file of each path (with `sizes`) or delete it; `errors` are 0 or error numbers. Returns 0 or an error number of
   the root. */
static int visit_files(const char *root, const strings_t *paths, int64_t *sizes, int64_t *times, int32_t *errors) {
    folder_t f = {-1, -1, NULL, -1, 0};
    char *name = NULL;
    int64_t room = 0;
    int failed = 0;
    f.root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f.root < 0) return errno;
    for (int64_t i = 0; i < paths->n; i++) {
        text_t path = string_at(paths, i);
        int64_t cut = path.size;
        errors[i] = EXDEV;
        if (path.size <= 0 || memchr(path.data, 0, (size_t)path.size)) continue;
        while (cut > 0 && path.data[cut - 1] != '/') cut--;
        int64_t size = path.size - cut;
        if (size + 1 > room) {
            char *grown = realloc(name, (size_t)size * 2 + 256);
            if (!grown) {
                failed = ENOMEM;
                break;
            }
            name = grown;
            room = size * 2 + 256;
        }
        memcpy(name, path.data + cut, (size_t)size);
        name[size] = 0;
        if (!size || is_dots(name, (size_t)size) || cut == 1) continue;
        errors[i] = folder_open(&f, path.data, cut ? cut - 1 : 0);
        if (errors[i]) continue;
        if (!sizes) {
            if (unlinkat(f.handle, name, 0)) errors[i] = errno;
            continue;
        }
        struct stat s;
        if (fstatat(f.handle, name, &s, AT_SYMLINK_NOFOLLOW)) {
            errors[i] = errno;
        } else if (!S_ISREG(s.st_mode)) {
            errors[i] = ENOENT;
        } else {
            sizes[i] = (int64_t)s.st_size;
            times[i] = modified_ms(&s);
        }
    }
    folder_close(&f);
    close(f.root);
    free(f.folder);
    free(name);
    return failed;
}

/* Create the missing folders of a path. Returns 0 or an error number. */
static int make_folders(char *path) {
    char *end = strrchr(path, '/');
    if (!end || end == path) return ENOENT;
    *end = 0;
    int error = mkdir(path, 0777) && errno != EEXIST ? errno : 0;
    if (error == ENOENT) {
        error = make_folders(path);
        if (!error && mkdir(path, 0777) && errno != EEXIST) error = errno;
    }
    *end = '/';
    return error;
}

/* Create a file with its content, and its folder. Returns 0 or an error number. */
static int create_file(char *path, const uint8_t *data, int64_t size, int64_t *time) {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    int handle = open(path, flags, 0666);
    if (handle < 0 && errno == ENOENT) {
        const int error = make_folders(path);
        if (error) return error;
        handle = open(path, flags, 0666);
    }
    if (handle < 0) return errno;
    int error = 0;
    while (size > 0 && !error) {
        const ssize_t written = write(handle, data, (size_t)size);
        if (written >= 0) {
            data += written;
            size -= written;
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    struct stat s;
    if (!error && fstat(handle, &s)) error = errno;
    if (!error) *time = modified_ms(&s);
    if (close(handle) && !error && errno != EINTR) error = errno;
    return error;
}

/* Create files; `names` are their paths, each followed by a zero byte. Returns 0 or an error number, of file `*failed`. */
static int create_files(char *names, const int64_t *name_ends, const uint8_t *data, const int64_t *ends, int64_t n,
                        int64_t *times, int64_t *failed) {
    int64_t name = 0, start = 0;
    for (int64_t i = 0; i < n; i++) {
        const int error = create_file(names + name, data ? data + start : NULL, ends[i] - start, times + i);
        if (error) {
            *failed = i;
            return error;
        }
        name = name_ends[i];
        start = ends[i];
    }
    return 0;
}

/* Sync files and folders to the disk; `names` and the result as in `create_files`. */
static int sync_files(const char *names, const int64_t *name_ends, int64_t n, int64_t *failed) {
    int64_t name = 0;
    for (int64_t i = 0; i < n; i++) {
        const int handle = open(names + name, O_RDONLY | O_CLOEXEC);
        int error = handle < 0 ? errno : 0;
        while (!error && fsync(handle))
            if (errno != EINTR) error = errno;
        if (handle >= 0) close(handle);
        if (error) {
            *failed = i;
            return error;
        }
        name = name_ends[i];
    }
    return 0;
}

#endif
