// Results of decoding a page or a column chunk.
#pragma once

namespace delta_parquet {

// DAMAGED: other rows than the footer specifies, where a complete reader may return a part of them without an error.
// BAD_CHECKSUM: a page whose bytes are not those that were written, which a complete reader may decode without an error.
enum Status { DONE = 0, PAGE = 1, UNSUPPORTED = 2, NO_MEMORY = 3, DAMAGED = 4, BAD_CHECKSUM = 5 };

}  // namespace delta_parquet
