// Results of decoding a page or a column chunk.
#pragma once

namespace delta_parquet {

// DAMAGED: the number of rows differs from that in the footer, but PyArrow may return a part of them without an error.
// BAD_CHECKSUM: the bytes of a page were changed, but PyArrow may decode them without an error.
enum Status { DONE = 0, PAGE = 1, UNSUPPORTED = 2, NO_MEMORY = 3, DAMAGED = 4, BAD_CHECKSUM = 5 };

}  // namespace delta_parquet
