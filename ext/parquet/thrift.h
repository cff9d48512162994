// Thrift's compact protocol (thrift-compact-protocol.md of apache/thrift), the encoding of Parquet's footers and page
// headers. No Python; no byte after the end is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace delta_parquet {

inline bool read_varint(const uint8_t *&in, const uint8_t *end, uint64_t &value) {
    value = 0;
    for (int shift = 0; shift < 64 && in < end; shift += 7) {
        const uint8_t byte = *in++;
        value |= static_cast<uint64_t>(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

// The base of readers of structs. Each function returns false if the bytes end too early, or are not valid Thrift.
class ThriftReader {
   public:
    ThriftReader(const uint8_t *in, const uint8_t *end) : in_(in), end_(end) {}
    const uint8_t *position() const { return in_; }

   protected:
    enum { STOP = 0, TRUE = 1, FALSE = 2, BYTE = 3, I16 = 4, I32 = 5, I64 = 6, DOUBLE = 7, BINARY = 8, LIST = 9, SET = 10,
           MAP = 11, STRUCT = 12, MOST_NESTED = 24 };

    // Read a struct: `read` is called with the number and the type of each field, and reads or skips it.
    template <class Read>
    bool each_field(Read read) {
        int16_t id = 0;
        int type;
        while (field(id, type)) {
            if (type == STOP) return true;
            if (!read(id, type)) return false;
        }
        return false;
    }

    // Read a list of structs: `read` is called for each.
    template <class Read>
    bool each_struct(Read read) {
        uint64_t count;
        if (!structs(count)) return false;
        for (; count; count--)
            if (!read()) return false;
        return true;
    }

    // Read the header of a list of structs; the list can't have more structs than the remaining bytes.
    bool structs(uint64_t &count) {
        int type;
        return list(count, type) && type == STRUCT && count <= static_cast<uint64_t>(end_ - in_);
    }

    // Read the header of a field. Its number is relative to that of the field before, or stored.
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

    // Read the header of a list.
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

    bool binary(std::string_view &out) {
        uint64_t n;
        if (!read_varint(in_, end_, n)) return false;
        const uint8_t *const start = in_;
        if (!pass(n)) return false;
        out = text(start);
        return true;
    }

    // Return the bytes that were read since `start`.
    std::string_view text(const uint8_t *start) const {
        return {reinterpret_cast<const char *>(start), static_cast<size_t>(in_ - start)};
    }

    bool pass(uint64_t n) {
        if (n > static_cast<uint64_t>(end_ - in_)) return false;
        in_ += n;
        return true;
    }

    bool skip(int type, int depth = 0) {
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
            case STRUCT: return each_field([&](int16_t, int field_type) { return skip(field_type, depth + 1); });
            default: return false;
        }
    }

    const uint8_t *in_, *const end_;

   private:
    // Within a container a boolean takes a byte.
    bool skip_item(int type, int depth) { return type == TRUE || type == FALSE ? pass(1) : skip(type, depth); }
};

}  // namespace delta_parquet
