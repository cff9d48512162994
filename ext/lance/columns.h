// The metadata of a column of a data file: its pages, their buffers and their encodings.
#pragma once

#include <cstdint>
#include <vector>

#include "lance/protobuf.h"

namespace delta_lance {

using lance::Field;
using lance::MessageReader;

// The bytes of a part of the metadata.
struct Place {
    int64_t start = 0, size = 0;
};

struct Encoding {
    Place kind, value;  // of google.protobuf.Any
    bool is_direct = false;
};

struct PageMetadata {
    uint64_t rows = 0;
    std::vector<uint64_t> offsets, sizes;
    Encoding encoding;
};

struct ColumnMetadata {
    std::vector<PageMetadata> pages;
    PageMetadata own;  // the column's buffers and encoding

    // False for bytes that are no ColumnMetadata.
    bool parse(const uint8_t *data, int64_t size) {
        MessageReader in(data, 0, size);
        Field field;
        while (in.next(&field)) {
            bool good = true;
            if (field.number == 1) good = read_encoding(in, field, own.encoding);
            else if (field.number == 2) good = read_page(in, field);
            else if (field.number == 3) good = read_numbers(in, field, own.offsets);
            else if (field.number == 4) good = read_numbers(in, field, own.sizes);
            if (!good) return false;
        }
        return !in.damaged;
    }

   private:
    static bool read_numbers(const MessageReader &in, const Field &field, std::vector<uint64_t> &out) {
        if (field.wire == lance::WIRE_VARINT) {
            out.push_back(field.value);
            return true;
        }
        if (field.wire != lance::WIRE_BYTES) return false;
        MessageReader packed = in.inside(field);
        while (packed.at < packed.end) {
            uint64_t value;
            if (!packed.varint(&value)) return false;
            out.push_back(value);
        }
        return true;
    }

    bool read_page(const MessageReader &in, const Field &field) {
        if (field.wire != lance::WIRE_BYTES) return false;
        pages.emplace_back();
        PageMetadata &page = pages.back();
        MessageReader part = in.inside(field);
        Field inner;
        while (part.next(&inner)) {
            bool good = true;
            if (inner.number == 1) good = read_numbers(part, inner, page.offsets);
            else if (inner.number == 2) good = read_numbers(part, inner, page.sizes);
            else if (inner.number == 3) good = inner.wire == lance::WIRE_VARINT, page.rows = inner.value;
            else if (inner.number == 4) good = read_encoding(part, inner, page.encoding);
            if (!good) return false;
        }
        return !part.damaged;
    }

    // Encoding{2 direct{1 Any{1 type_url, 2 value}}}
    static bool read_encoding(const MessageReader &in, const Field &field, Encoding &out) {
        if (field.wire != lance::WIRE_BYTES) return false;
        MessageReader part = in.inside(field);
        Field location;
        while (part.next(&location)) {
            if (location.number != 2) {
                out.is_direct = false;
                continue;
            }
            if (location.wire != lance::WIRE_BYTES) return false;
            MessageReader direct = part.inside(location);
            Field any;
            while (direct.next(&any)) {
                if (any.number != 1) continue;
                if (any.wire != lance::WIRE_BYTES) return false;
                out = {};
                out.is_direct = true;
                MessageReader content = direct.inside(any);
                Field value;
                while (content.next(&value)) {
                    if (value.number > 2) continue;
                    if (value.wire != lance::WIRE_BYTES) return false;
                    (value.number == 1 ? out.kind : out.value) = {value.start, value.size};
                }
                if (content.damaged) return false;
            }
            if (direct.damaged) return false;
        }
        return !part.damaged;
    }
};

// Read the number of rows of a FileDescriptor{1 schema, 2 length}.
inline bool read_length(const uint8_t *data, int64_t size, uint64_t &rows) {
    MessageReader in(data, 0, size);
    Field field;
    rows = 0;
    while (in.next(&field)) {
        if (field.number != 2) continue;
        if (field.wire != lance::WIRE_VARINT) return false;
        rows = field.value;
    }
    return !in.damaged;
}

}  // namespace delta_lance
