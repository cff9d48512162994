// Codecs of pages (CompressionCodec of parquet.thrift), and the function that decompresses those without a decoder here.
#pragma once

#include <cstdint>

namespace delta_parquet {

enum Codec { UNCOMPRESSED = 0, SNAPPY = 1, FOREIGN = 2, ZSTD = 3, LZ4 = 4, GZIP = 5 };
// Decompresses exactly `size` bytes with a library that this code is not linked to.
using Decompress = int (*)(void *codec, const uint8_t *in, int64_t n, uint8_t *out, int64_t size);

}  // namespace delta_parquet
