// Counts of values by page headers alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "page_header.h"
#include "source.h"
#include "workspace.h"

namespace delta_parquet {

// Return the sum of the values that the page headers of a chunk specify, up to the page with the last of `num_values`. The
// sum is smaller if a header can't be parsed. Nothing else of the pages is read.
inline int64_t count_page_values(Workspace &space, const Source &source, int64_t offset, int64_t size, int64_t num_values) {
    enum : int64_t { HEADER_BYTES = 256, MOST_HEADER_BYTES = 1 << 20, HEADERS_BYTES = 4 << 10 };
    ChunkBytes bytes(space.chunk, source, offset, size, HEADERS_BYTES);
    int64_t found = 0;
    for (int64_t at = 0, n = HEADER_BYTES; found < num_values;) {
        const uint8_t *const in = bytes.from(at, std::min(n, size - at));
        if (!in) return found;
        const int64_t held = bytes.held(at);
        PageHeaderReader thrift(in, in + held);
        PageHeader page;
        if (!thrift.page_header(page)) {
            // the header may be longer
            if (held >= size - at || n >= MOST_HEADER_BYTES) return found;
            n *= 16;
            continue;
        }
        if ((page.type == DATA_PAGE || page.type == DATA_PAGE_V2) && page.num_values > 0) found += page.num_values;
        at += thrift.position() - in;
        if (page.compressed > size - at) return found;
        at += page.compressed;
        n = HEADER_BYTES;
    }
    return found;
}

}  // namespace delta_parquet
