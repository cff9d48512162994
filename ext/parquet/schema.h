// The schema of a Parquet file and its key-value metadata, parsed from their bytes in the footer (see `FooterFacts`).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "thrift.h"

namespace delta_parquet {

// One element of the schema; numbers are -1 if the footer does not contain them.
struct SchemaElement {
    std::string_view name;
    int64_t type = -1, length = -1, repetition = -1, children = -1, converted = -1, field_id = -1;
    int64_t logical = -1;  // the member of the union LogicalType; -2: several, or one of another form
    int64_t unit = -1;     // of a timestamp: the member of the union TimeUnit
    bool is_utc = false;   // of a timestamp
};

class SchemaReader : public ThriftReader {
   public:
    using ThriftReader::ThriftReader;

    bool elements(std::vector<SchemaElement> &out) {
        return each([&] { return element(out.emplace_back()); });
    }

    bool pairs(std::vector<std::pair<std::string_view, std::string_view>> &out) {
        return each([&] {
            auto &pair = out.emplace_back();
            return each_field([&](int16_t id, int type) {
                return id == 1 && type == BINARY   ? binary(pair.first)
                       : id == 2 && type == BINARY ? binary(pair.second)
                                                   : skip(type);
            });
        });
    }

   private:
    // Read a list of structs, which has to take all of the bytes.
    template <typename Item>
    bool each(Item item) {
        uint64_t count;
        int type;
        if (!list(count, type) || (type != STRUCT && count)) return false;
        for (; count; count--) {
            if (in_ >= end_ || !item()) return false;
        }
        return in_ == end_;
    }

    bool element(SchemaElement &out) {
        return each_field([&](int16_t id, int type) {
            if (id == 4 && type == BINARY) return binary(out.name);
            if (id == 10 && type == STRUCT) return logical(out);
            int64_t *const number_at = type != I32 ? nullptr
                                       : id == 1   ? &out.type
                                       : id == 2   ? &out.length
                                       : id == 3   ? &out.repetition
                                       : id == 5   ? &out.children
                                       : id == 6   ? &out.converted
                                       : id == 9   ? &out.field_id
                                                   : nullptr;
            return number_at ? number(*number_at) : skip(type);
        });
    }

    bool logical(SchemaElement &out) {
        return each_field([&](int16_t id, int type) {
            out.logical = type == STRUCT && out.logical == -1 ? id : UNKNOWN;
            if (id != TIMESTAMP || type != STRUCT) return skip(type);
            return each_field([&](int16_t part, int kind) {
                if (part == 1) out.is_utc = kind == TRUE;
                if (part != 2 || kind != STRUCT) return skip(kind);
                return each_field([&](int16_t unit, int inner) {
                    out.unit = unit;
                    return skip(inner);
                });
            });
        });
    }

    enum { TIMESTAMP = 8, UNKNOWN = -2 };
};

}  // namespace delta_parquet
