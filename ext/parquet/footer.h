// The footer of a Parquet file (FileMetaData of parquet.thrift, in Thrift's compact protocol): the facts that are needed to
// find its column chunks.
//
// A footer with unsupported content (encryption, columns in other files), or a damaged one, is not parsed; it is then read
// with PyArrow, which reports the error, if there is one. No Python; no byte after the footer's end is read.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "page_header.h"
#include "thrift.h"

namespace delta_parquet {

// One column chunk; numbers are -1 if the footer does not have them.
struct ChunkFacts {
    int64_t type = -1, codec = -1, encodings = 0;  // encodings: bit e is set for encoding e
    int64_t num_values = -1, uncompressed = -1, compressed = -1;
    int64_t data_page = -1, dictionary_page = -1;
    int64_t column_index = -1, column_index_size = -1, offset_index = -1, offset_index_size = -1;
    int64_t bloom_filter = -1, bloom_filter_size = -1;
    int64_t null_count = -1;
    std::string_view least, most;  // encoded as PLAIN
    bool has_least = false, has_most = false;
    bool has_uncoded_pages = false;  // of other encodings than dictionaries, if the footer contains page counts
    bool is_plain = true;  // neither encrypted nor in another file
};

struct GroupFacts {
    int64_t num_rows = -1;
    std::vector<ChunkFacts> chunks;
};

struct FooterFacts {
    int64_t num_rows = -1;
    std::vector<GroupFacts> groups;
    std::string_view schema, metadata;  // the bytes of the schema and of the key-value metadata in the footer
    std::string_view created_by;
    bool has_orders = false;  // bounds are in the order of the columns' types
    bool is_plain = true;
};

class FooterReader : public ThriftReader {
   public:
    using ThriftReader::ThriftReader;

    bool footer(FooterFacts &out) {
        const bool good = each_field([&](int16_t id, int type) {
            const uint8_t *const start = in_;
            if (id == 2 && type == LIST) return skip(type) && (out.schema = text(start), true);
            if (id == 3 && type == I64) return number(out.num_rows);
            if (id == 4 && type == LIST) return each_struct([&] { return group(out.groups.emplace_back()); });
            if (id == 5 && type == LIST) return skip(type) && (out.metadata = text(start), true);
            if (id == 6 && type == BINARY) return binary(out.created_by);
            if (id == 7 && type == LIST) out.has_orders = true;
            if (id == 8) out.is_plain = false;  // encrypted
            return skip(type);
        });
        return good && out.num_rows >= 0 && !out.schema.empty();
    }

   protected:
    bool group(GroupFacts &group) {
        const bool good = each_field([&](int16_t id, int type) {
            return id == 1 && type == LIST ? chunks(group) : id == 3 && type == I64 ? number(group.num_rows) : skip(type);
        });
        return good && group.num_rows >= 0;
    }

    bool chunks(GroupFacts &group) {
        uint64_t count;
        if (!structs(count)) return false;
        group.chunks.reserve(count < static_cast<uint64_t>(end_ - in_) / 16 ? count : 0);  // a chunk takes more bytes than this
        for (; count; count--)
            if (!chunk(group.chunks.emplace_back())) return false;
        return true;
    }

   private:
    bool chunk(ChunkFacts &chunk) {
        return each_field([&](int16_t id, int type) {
            if (id == 1 || id == 8 || id == 9) chunk.is_plain = false;
            return id == 3 && type == STRUCT ? facts(chunk)
                   : id == 4 && type == I64  ? number(chunk.offset_index)
                   : id == 5 && type == I32  ? number(chunk.offset_index_size)
                   : id == 6 && type == I64  ? number(chunk.column_index)
                   : id == 7 && type == I32  ? number(chunk.column_index_size)
                                             : skip(type);
        });
    }

    bool facts(ChunkFacts &chunk) {
        return each_field([&](int16_t id, int type) {
            if (id == 1 && type == I32) return number(chunk.type);
            if (id == 2 && type == LIST) return encodings(chunk);
            if (id == 4 && type == I32) return number(chunk.codec);
            if (id == 5 && type == I64) return number(chunk.num_values);
            if (id == 6 && type == I64) return number(chunk.uncompressed);
            if (id == 7 && type == I64) return number(chunk.compressed);
            if (id == 9 && type == I64) return number(chunk.data_page);
            if (id == 11 && type == I64) return number(chunk.dictionary_page);
            if (id == 12 && type == STRUCT) return statistics(chunk);
            if (id == 13 && type == LIST) return each_struct([&] { return page_encoding(chunk); });
            if (id == 14 && type == I64) return number(chunk.bloom_filter);
            if (id == 15 && type == I32) return number(chunk.bloom_filter_size);
            return skip(type);
        });
    }

    // The number of pages of a type with an encoding.
    bool page_encoding(ChunkFacts &chunk) {
        int64_t page = -1, encoding = -1, pages = 0;
        const bool good = each_field([&](int16_t id, int type) {
            return id == 1 && type == I32   ? number(page)
                   : id == 2 && type == I32 ? number(encoding)
                   : id == 3 && type == I32 ? number(pages)
                                            : skip(type);
        });
        const bool is_coded = encoding == PLAIN_DICTIONARY || encoding == RLE_DICTIONARY;
        chunk.has_uncoded_pages |= (page == DATA_PAGE || page == DATA_PAGE_V2) && !is_coded && pages;
        return good;
    }

    bool statistics(ChunkFacts &chunk) {
        return each_field([&](int16_t id, int type) {
            if (id == 3 && type == I64) return number(chunk.null_count);
            if (id == 5 && type == BINARY) return chunk.has_most = binary(chunk.most);
            if (id == 6 && type == BINARY) return chunk.has_least = binary(chunk.least);
            return skip(type);
        });
    }

    bool encodings(ChunkFacts &chunk) {
        uint64_t count;
        int type;
        if (!list(count, type) || type != I32) return false;
        for (uint64_t i = 0; i < count; i++) {
            int64_t encoding;
            if (!number(encoding)) return false;
            chunk.encodings |= encoding >= 0 && encoding < 62 ? int64_t(1) << encoding : int64_t(1) << 62;
        }
        return true;
    }
};

}  // namespace delta_parquet
