// The footer of a Parquet file (parquet.thrift, Thrift's compact protocol): what it takes to find its column chunks.
//
// A footer that holds what this reader does not support (encryption, columns in other files), or that is damaged, is not parsed:
// a complete reader then specifies what is wrong, if anything. No Python, and nothing is read behind the footer's end.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "parquet_pages.h"

namespace delta_parquet {

// One column chunk; numbers are -1 if the footer does not have them.
struct ChunkFacts {
    int64_t type = -1, codec = -1, encodings = 0;  // encodings: bit e is set for encoding e
    int64_t num_values = -1, uncompressed = -1, compressed = -1;
    int64_t data_page = -1, dictionary_page = -1;
    int64_t column_index = -1, column_index_size = -1, offset_index = -1, offset_index_size = -1;
    int64_t bloom_filter = -1, bloom_filter_size = -1;
    int64_t null_count = -1;
    std::string_view least, most;  // as PLAIN writes them
    bool has_least = false, has_most = false;
    bool has_uncoded_pages = false;  // of another encoding than dictionaries, if the footer specifies that
    bool is_plain = true;  // neither encrypted nor in another file
};

struct GroupFacts {
    int64_t num_rows = -1;
    std::vector<ChunkFacts> chunks;
};

struct FooterFacts {
    int64_t num_rows = -1;
    std::vector<GroupFacts> groups;
    std::string_view schema, metadata;  // the footer's bytes of its schema, and of its key-value metadata
    std::string_view created_by;
    bool has_orders = false;  // bounds are in the order of the columns' types
    bool is_plain = true;
};

class FooterReader {
   public:
    FooterReader(const uint8_t *in, const uint8_t *end) : in_(in), end_(end) {}

    bool footer(FooterFacts &out) {
        int16_t id = 0;
        int type;
        while (field(id, type)) {
            if (type == STOP) return out.num_rows >= 0 && !out.schema.empty();
            const uint8_t *const start = in_;
            bool good;
            if (id == 2 && type == LIST) {
                good = skip(type, 0);
                out.schema = text(start);
            } else if (id == 3 && type == I64) {
                good = number(out.num_rows);
            } else if (id == 4 && type == LIST) {
                good = groups(out);
            } else if (id == 5 && type == LIST) {
                good = skip(type, 0);
                out.metadata = text(start);
            } else if (id == 6 && type == BINARY) {
                good = binary(out.created_by);
            } else if (id == 7 && type == LIST) {
                good = skip(type, 0);
                out.has_orders = true;
            } else {
                if (id == 8) out.is_plain = false;  // encrypted
                good = skip(type, 0);
            }
            if (!good) return false;
        }
        return false;
    }

   protected:
    enum { STOP = 0, TRUE = 1, FALSE = 2, BYTE = 3, I16 = 4, I32 = 5, I64 = 6, DOUBLE = 7, BINARY = 8, LIST = 9, SET = 10,
           MAP = 11, STRUCT = 12, MOST_NESTED = 24 };

    std::string_view text(const uint8_t *start) const {
        return {reinterpret_cast<const char *>(start), static_cast<size_t>(in_ - start)};
    }

    bool groups(FooterFacts &out) {
        uint64_t count;
        int type;
        if (!list(count, type) || type != STRUCT || count > static_cast<uint64_t>(end_ - in_)) return false;
        for (uint64_t i = 0; i < count; i++) {
            GroupFacts &group = out.groups.emplace_back();
            int16_t id = 0;
            while (true) {
                if (!field(id, type)) return false;
                if (type == STOP) break;
                const bool good = id == 1 && type == LIST  ? chunks(group)
                                  : id == 3 && type == I64 ? number(group.num_rows)
                                                           : skip(type, 0);
                if (!good) return false;
            }
            if (group.num_rows < 0) return false;
        }
        return true;
    }

    bool chunks(GroupFacts &group) {
        uint64_t count;
        int type;
        if (!list(count, type) || type != STRUCT || count > static_cast<uint64_t>(end_ - in_)) return false;
        group.chunks.reserve(count < static_cast<uint64_t>(end_ - in_) / 16 ? count : 0);  // a chunk takes more bytes
        for (uint64_t i = 0; i < count; i++) {
            ChunkFacts &chunk = group.chunks.emplace_back();
            int16_t id = 0;
            while (true) {
                if (!field(id, type)) return false;
                if (type == STOP) break;
                if (id == 1 || id == 8 || id == 9) chunk.is_plain = false;
                const bool good = id == 3 && type == STRUCT ? facts(chunk)
                                  : id == 4 && type == I64  ? number(chunk.offset_index)
                                  : id == 5 && type == I32  ? number(chunk.offset_index_size)
                                  : id == 6 && type == I64  ? number(chunk.column_index)
                                  : id == 7 && type == I32  ? number(chunk.column_index_size)
                                                            : skip(type, 0);
                if (!good) return false;
            }
        }
        return true;
    }

    bool facts(ChunkFacts &chunk) {
        int16_t id = 0;
        int type;
        while (field(id, type)) {
            if (type == STOP) return true;
            bool good;
            if (id == 1 && type == I32) good = number(chunk.type);
            else if (id == 2 && type == LIST) good = encodings(chunk);
            else if (id == 4 && type == I32) good = number(chunk.codec);
            else if (id == 5 && type == I64) good = number(chunk.num_values);
            else if (id == 6 && type == I64) good = number(chunk.uncompressed);
            else if (id == 7 && type == I64) good = number(chunk.compressed);
            else if (id == 9 && type == I64) good = number(chunk.data_page);
            else if (id == 11 && type == I64) good = number(chunk.dictionary_page);
            else if (id == 12 && type == STRUCT) good = statistics(chunk);
            else if (id == 13 && type == LIST) good = page_encodings(chunk);
            else if (id == 14 && type == I64) good = number(chunk.bloom_filter);
            else if (id == 15 && type == I32) good = number(chunk.bloom_filter_size);
            else good = skip(type, 0);
            if (!good) return false;
        }
        return false;
    }

    // How many pages of a type have an encoding.
    bool page_encodings(ChunkFacts &chunk) {
        uint64_t count;
        int type;
        if (!list(count, type) || type != STRUCT || count > static_cast<uint64_t>(end_ - in_)) return false;
        for (uint64_t i = 0; i < count; i++) {
            int64_t page = -1, encoding = -1, pages = 0;
            int16_t id = 0;
            while (true) {
                if (!field(id, type)) return false;
                if (type == STOP) break;
                const bool good = id == 1 && type == I32   ? number(page)
                                  : id == 2 && type == I32 ? number(encoding)
                                  : id == 3 && type == I32 ? number(pages)
                                                           : skip(type, 0);
                if (!good) return false;
            }
            const bool is_coded = encoding == PLAIN_DICTIONARY || encoding == RLE_DICTIONARY;
            chunk.has_uncoded_pages |= (page == DATA_PAGE || page == DATA_PAGE_V2) && !is_coded && pages;
        }
        return true;
    }

    bool statistics(ChunkFacts &chunk) {
        int16_t id = 0;
        int type;
        while (field(id, type)) {
            if (type == STOP) return true;
            bool good;
            if (id == 3 && type == I64) good = number(chunk.null_count);
            else if (id == 5 && type == BINARY) good = chunk.has_most = binary(chunk.most);
            else if (id == 6 && type == BINARY) good = chunk.has_least = binary(chunk.least);
            else good = skip(type, 0);
            if (!good) return false;
        }
        return false;
    }

    bool binary(std::string_view &out) {
        uint64_t n;
        if (!read_varint(in_, end_, n)) return false;
        const uint8_t *const start = in_;
        if (!pass(n)) return false;
        out = text(start);
        return true;
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

    bool field(int16_t &id, int &type) {
        if (in_ >= end_) return false;
        const uint8_t head = *in_++;
        type = head & 15;
        if (type == STOP) return true;
        if (head >> 4) {
            id = static_cast<int16_t>(id + (head >> 4));
            return true;
        }
        int64_t given;
        if (!number(given)) return false;
        id = static_cast<int16_t>(given);
        return true;
    }

    bool list(uint64_t &count, int &type) {
        if (in_ >= end_) return false;
        const uint8_t head = *in_++;
        type = head & 15;
        count = head >> 4;
        return count < 15 || read_varint(in_, end_, count);
    }

    bool number(int64_t &value) {
        uint64_t zigzag;
        if (!read_varint(in_, end_, zigzag)) return false;
        value = static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
        return true;
    }

    bool pass(uint64_t n) {
        if (n > static_cast<uint64_t>(end_ - in_)) return false;
        in_ += n;
        return true;
    }

    bool skip(int type, int depth) {
        uint64_t n;
        int inner;
        if (depth > MOST_NESTED) return false;
        switch (type) {
            case TRUE: case FALSE: return true;
            case BYTE: return pass(1);
            case I16: case I32: case I64: return read_varint(in_, end_, n);
            case DOUBLE: return pass(8);
            case BINARY: return read_varint(in_, end_, n) && pass(n);
            case LIST: case SET:
                if (!list(n, inner)) return false;
                for (; n; n--) if (!skip_item(inner, depth + 1)) return false;
                return true;
            case MAP: {
                if (!read_varint(in_, end_, n)) return false;
                if (!n) return true;
                if (in_ >= end_) return false;
                const int key = *in_ >> 4, value = *in_ & 15;
                in_++;
                for (; n; n--) if (!skip_item(key, depth + 1) || !skip_item(value, depth + 1)) return false;
                return true;
            }
            case STRUCT: {
                int16_t id = 0;
                while (field(id, inner)) {
                    if (inner == STOP) return true;
                    if (!skip(inner, depth + 1)) return false;
                }
                return false;
            }
            default: return false;
        }
    }

    // Within a container a boolean takes a byte.
    bool skip_item(int type, int depth) { return type == TRUE || type == FALSE ? pass(1) : skip(type, depth); }

    const uint8_t *in_, *const end_;
};

}  // namespace delta_parquet
