// Zstandard frames (RFC 8878), decompressed with the system's libzstd if it is installed.
//
// A context is reused from page to page, and no call needs the interpreter's lock. Without the library, pages are decompressed
// with the function that the caller provides (codecs.h: FOREIGN).
#pragma once

#include <cstddef>
#include <cstdint>

#include "system_library.h"

namespace delta_parquet {

class ZstdLibrary {
   public:
    // Return the library, loaded at the first call; nullptr if it is not installed.
    static const ZstdLibrary *loaded() {
        static const ZstdLibrary library;
        return library.create && library.free && library.decompress ? &library : nullptr;
    }
    void *(*create)() = nullptr;
    size_t (*free)(void *) = nullptr;
    // Returns the number of bytes written, or an error code, which is greater than the size of any buffer.
    size_t (*decompress)(void *context, void *out, size_t size, const void *in, size_t n) = nullptr;

   private:
    ZstdLibrary() {
        void *const library = load_library({"libzstd.so.1", "libzstd.1.dylib"});
        find_function(library, "ZSTD_createDCtx", create);
        find_function(library, "ZSTD_freeDCtx", free);
        find_function(library, "ZSTD_decompressDCtx", decompress);
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
    // Decompress `n` bytes into exactly `size` bytes. Returns false if the sizes differ, if the input is damaged, or without the
    // library.
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
