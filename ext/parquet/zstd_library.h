// The system's libzstd, if there is one: loaded when it is first needed, so that nothing depends on it.
//
// It is used through a context that is kept from page to page, without the interpreter's lock. Where it is missing, pages are
// decompressed by whatever library the caller has (codecs.h: FOREIGN).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#define HAS_DLOPEN 1
#endif

namespace delta_parquet {

class ZstdLibrary {
   public:
    // nullptr if there is none.
    static const ZstdLibrary *loaded() {
        static const ZstdLibrary library;
        return library.decompress ? &library : nullptr;
    }
    void *(*create)() = nullptr;
    size_t (*free)(void *) = nullptr;
    // Returns how many bytes were written, or an error: a number that no buffer has.
    size_t (*decompress)(void *context, void *out, size_t size, const void *in, size_t n) = nullptr;

   private:
    ZstdLibrary() {
#ifdef HAS_DLOPEN
        for (const char *name : {"libzstd.so.1", "libzstd.1.dylib"}) {
            void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (!library) continue;
            create = reinterpret_cast<void *(*)()>(dlsym(library, "ZSTD_createDCtx"));
            free = reinterpret_cast<size_t (*)(void *)>(dlsym(library, "ZSTD_freeDCtx"));
            const auto found = dlsym(library, "ZSTD_decompressDCtx");
            if (create && free) decompress = reinterpret_cast<size_t (*)(void *, void *, size_t, const void *, size_t)>(found);
            return;
        }
#endif
    }
};

class ZstdContext {
   public:
    ZstdContext() = default;
    ZstdContext(const ZstdContext &) = delete;
    ZstdContext &operator=(const ZstdContext &) = delete;
    ~ZstdContext() {
        if (context_) ZstdLibrary::loaded()->free(context_);
    }
    // Decompress exactly `size` bytes; false if there are fewer or more, if they are damaged, or without the library.
    bool decompress(const uint8_t *in, int64_t n, uint8_t *out, int64_t size) {
        const ZstdLibrary *const library = ZstdLibrary::loaded();
        if (!library || n < 0 || size < 0) return false;
        if (!context_ && !(context_ = library->create())) return false;
        return library->decompress(context_, out, static_cast<size_t>(size), in, static_cast<size_t>(n)) == static_cast<size_t>(size);
    }

   private:
    void *context_ = nullptr;
};

}  // namespace delta_parquet
