// Shared libraries of the system that are loaded at run time, so that the extensions depend on none of them.
#pragma once

#include <initializer_list>

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#define HAS_DLOPEN 1
#endif

namespace delta_parquet {

// Load the first of some libraries that exists; nullptr if none does. It is never unloaded.
inline void *load_library(std::initializer_list<const char *> names) {
#ifdef HAS_DLOPEN
    for (const char *name : names)
        if (void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
#else
    (void)names;
#endif
    return nullptr;
}

// Set a pointer to a function of a library; nullptr if the library is nullptr or lacks the function.
template <class Function>
inline void find_function(void *library, const char *name, Function *&function) {
#ifdef HAS_DLOPEN
    function = library ? reinterpret_cast<Function *>(dlsym(library, name)) : nullptr;
#else
    (void)library, (void)name;
    function = nullptr;
#endif
}

}  // namespace delta_parquet
