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

// Parts of the file.
struct Buffers {
    std::vector<uint64_t> offsets, sizes;
};

struct ColumnMetadata {
    // Of each page: its rows, its encoding, and where its buffers end.
    std::vector<uint64_t> rows, ends;
    std::vector<Encoding> encodings;
    // Of all pages, and of the column itself.
    Buffers buffers, own;
    Encoding own_encoding;
    // Of the first page that has not as many sizes of buffers as offsets.
    uint64_t num_offsets = 0, num_sizes = 0;

    // False for bytes that are no ColumnMetadata.
    bool parse(const uint8_t *data, int64_t size) {
        MessageReader in(data, 0, size);
        Field field;
        while (in.next(&field)) {
            bool good = true;
            if (field.number == 1) good = read_encoding(in, field, own_encoding);
            else if (field.number == 2) good = read_page(in, field);
            else if (field.number == 3) good = read_numbers(in, field, own.offsets);
            else if (field.number == 4) good = read_numbers(in, field, own.sizes);
            if (!good) return false;
        }
        if (num_offsets == num_sizes) {
            num_offsets = own.offsets.size();
            num_sizes = own.sizes.size();
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
        rows.push_back(0);
        encodings.emplace_back();
        const uint64_t offsets = buffers.offsets.size(), sizes = buffers.sizes.size();
        MessageReader part = in.inside(field);
        Field inner;
        while (part.next(&inner)) {
            bool good = true;
            if (inner.number == 1) good = read_numbers(part, inner, buffers.offsets);
            else if (inner.number == 2) good = read_numbers(part, inner, buffers.sizes);
            else if (inner.number == 3) good = inner.wire == lance::WIRE_VARINT, rows.back() = inner.value;
            else if (inner.number == 4) good = read_encoding(part, inner, encodings.back());
            if (!good) return false;
        }
        if (num_offsets == num_sizes) {
            num_offsets = buffers.offsets.size() - offsets;
            num_sizes = buffers.sizes.size() - sizes;
        }
        ends.push_back(buffers.offsets.size());
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
