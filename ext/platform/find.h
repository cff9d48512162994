// Search for a sequence of bytes with a call of the system.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

// Return the first occurrence of `part` in [at, stop), nullptr if there is none. Takes linear time, but on Windows.
inline const uint8_t *find_part(const uint8_t *at, const uint8_t *stop, const uint8_t *part, size_t size) {
#ifdef _WIN32
    const uint8_t *const found = std::search(at, stop, part, part + size);
    return found == stop && size ? nullptr : found;
#else
    return static_cast<const uint8_t *>(memmem(at, static_cast<size_t>(stop - at), part, size));
#endif
}
