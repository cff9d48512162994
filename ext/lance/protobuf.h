// Fields of protobuf messages, read one after the other from bytes that may be damaged.
#pragma once

#include <cstdint>

namespace lance {

enum : uint32_t { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

// One field: its value if it is a number, otherwise the place of its bytes.
struct Field {
    uint32_t number, wire;
    uint64_t value;
    int64_t start, size;
};

// A part of a buffer: positions count from the start of the buffer, so that errors can report them.
struct MessageReader {
    const uint8_t* data;
    int64_t at, end;
    bool damaged = false;

    MessageReader(const uint8_t* bytes, int64_t start, int64_t size) : data(bytes), at(start), end(start + size) {}

    bool fail() {
        damaged = true;
        return false;
    }

    bool varint(uint64_t* out) {
        uint64_t value = 0;
        for (int shift = 0; at < end && shift < 70; shift += 7) {
            const uint8_t byte = data[at++];
            if (shift == 63 && byte > 1) return fail();
            value |= uint64_t(byte & 127) << shift;
            if (byte < 128) {
                *out = value;
                return true;
            }
        }
        return fail();
    }

    // Read the next field; false at the end of the message or if it is damaged.
    bool next(Field* out) {
        if (damaged || at >= end) return false;
        uint64_t tag, size;
        if (!varint(&tag)) return false;
        if (tag >> 32 || !(tag >> 3)) return fail();
        out->number = uint32_t(tag >> 3);
        out->wire = uint32_t(tag & 7);
        out->value = 0;
        switch (out->wire) {
            case WIRE_VARINT:
                out->start = at;
                if (!varint(&out->value)) return false;
                out->size = at - out->start;
                return true;
            case WIRE_FIXED64: size = 8; break;
            case WIRE_FIXED32: size = 4; break;
            case WIRE_BYTES:
                if (!varint(&size)) return false;
                break;
            default: return fail();
        }
        if (size > uint64_t(end - at)) return fail();
        out->start = at;
        out->size = int64_t(size);
        at += int64_t(size);
        return true;
    }

    MessageReader inside(const Field& field) const { return MessageReader(data, field.start, field.size); }
};

}  // namespace lance
