// Gzip members (RFC 1952), decompressed with the system's libdeflate if it is installed.
//
// A context is reused from page to page, and no call needs the interpreter's lock. Without the library, pages are decompressed
// with the function that the caller provides, which takes longer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "system_library.h"

namespace delta_parquet {

class DeflateLibrary {
   public:
    // Return the library, loaded at the first call; nullptr if it is not installed.
    static const DeflateLibrary *loaded() {
        static const DeflateLibrary library;
        return library.create && library.free && library.decompress ? &library : nullptr;
    }
    void *(*create)() = nullptr;
    void (*free)(void *) = nullptr;
    // Decompresses one member, and compares its CRC-32 and its size with those that follow it. Returns 0 for success.
    int (*decompress)(void *context, const void *in, size_t n, void *out, size_t size, size_t *taken, size_t *written) = nullptr;

   private:
    DeflateLibrary() {
        void *const library = load_library({"libdeflate.so.0", "libdeflate.so", "libdeflate.0.dylib", "libdeflate.dylib"});
        find_function(library, "libdeflate_alloc_decompressor", create);
        find_function(library, "libdeflate_free_decompressor", free);
        find_function(library, "libdeflate_gzip_decompress_ex", decompress);
    }
};

class GzipContext {
   public:
    GzipContext() = default;
    GzipContext(const GzipContext &) = delete;
    GzipContext &operator=(const GzipContext &) = delete;
    ~GzipContext() {
        if (context_) DeflateLibrary::loaded()->free(context_);
    }
    // Decompress `n` bytes, one member or several, into exactly `size` bytes. Returns false if the sizes differ, if a member is
    // damaged or followed by other bytes, or without the library.
    bool decompress(const uint8_t *in, int64_t n, uint8_t *out, int64_t size) {
        const DeflateLibrary *const library = DeflateLibrary::loaded();
        if (!library || n <= 0 || size < 0) return false;
        if (!context_ && !(context_ = library->create())) return false;
        size_t left = static_cast<size_t>(n), room = static_cast<size_t>(size);
        while (left) {
            size_t taken = 0, written = 0;
            if (library->decompress(context_, in, left, out, room, &taken, &written)) return false;
            in += taken;
            left -= taken;
            out += written;
            room -= written;
        }
        return !room;
    }

   private:
    void *context_ = nullptr;
};

}  // namespace delta_parquet
