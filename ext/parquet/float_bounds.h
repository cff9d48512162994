// The bounds of floating-point columns in the footer of a Parquet file, replaced by NaN: for readers that take such bounds
// for bounds of all values, NaN included, the columns then have no bounds.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "thrift.h"

namespace delta_parquet {

class FloatBounds : ThriftReader {
   public:
    // The bytes are changed in place, and their lengths remain.
    FloatBounds(uint8_t *in, uint8_t *end) : ThriftReader(in, end), start_(in) {}

    // FileMetaData: the row groups are field 4, the program that wrote the file is field 6. False for a torn footer.
    bool find() {
        return each_field([&](int id, int type) {
            if (id == 6 && type == BINARY) return binary(writer_);
            return id == 4 && type == LIST ? each_struct([&] { return row_group(); }) : skip(type);
        });
    }

    std::string_view writer() const { return writer_; }

    // Replace the bounds that were found, or only those of columns with a NaN bound. Returns the number of replaced bounds.
    int64_t hide(bool only_nan) {
        const double nan8 = __builtin_nan("");
        const float nan4 = __builtin_nanf("");
        int64_t count = 0;
        for (const Column &column : found_) {
            if (only_nan && !column.has_nan) continue;
            for (size_t i = 0; i < column.count; i++, count++) {
                if (column.size == 8) std::memcpy(start_ + column.offsets[i], &nan8, 8);
                else std::memcpy(start_ + column.offsets[i], &nan4, 4);
            }
        }
        return count;
    }

   private:
    enum { FLOAT_TYPE = 4, DOUBLE_TYPE = 5 };
    enum { MOST_BOUNDS = 4 };
    struct Column {
        size_t size = 0, count = 0, offsets[MOST_BOUNDS];
        bool has_nan = false;
    };
    struct Bound { size_t offset, size; };

    bool row_group() {
        return each_field([&](int id, int type) {
            return id == 1 && type == LIST ? each_struct([&] { return chunk(); }) : skip(type);
        });
    }

    bool chunk() {
        return each_field([&](int id, int type) {
            return id == 3 && type == STRUCT ? column_metadata() : skip(type);
        });
    }

    bool column_metadata() {
        int64_t stored = -1;
        std::vector<Bound> bounds;
        const bool is_whole = each_field([&](int id, int type) {
            if (id == 1 && type == I32) return number(stored);
            return id == 12 && type == STRUCT ? statistics(bounds) : skip(type);
        });
        Column column;
        column.size = stored == FLOAT_TYPE ? 4 : stored == DOUBLE_TYPE ? 8 : 0;
        for (const Bound &bound : bounds) {
            if (!column.size || bound.size != column.size || column.count == MOST_BOUNDS) continue;
            column.offsets[column.count++] = bound.offset;
            column.has_nan |= is_nan(bound);
        }
        if (column.count) found_.push_back(column);
        return is_whole;
    }

    bool is_nan(const Bound &bound) const {
        double wide;
        float narrow;
        if (bound.size == 8) std::memcpy(&wide, start_ + bound.offset, 8);
        else std::memcpy(&narrow, start_ + bound.offset, 4);
        return bound.size == 8 ? wide != wide : narrow != narrow;
    }

    // Statistics: max (field 1), min (2), max_value (5), min_value (6).
    bool statistics(std::vector<Bound> &bounds) {
        return each_field([&](int id, int type) {
            if ((id != 1 && id != 2 && id != 5 && id != 6) || type != BINARY) return skip(type);
            std::string_view value;
            if (!binary(value)) return false;
            const size_t offset = reinterpret_cast<const uint8_t *>(value.data()) - start_;
            bounds.push_back({offset, value.size()});
            return true;
        });
    }

    uint8_t *const start_;
    std::string_view writer_;
    std::vector<Column> found_;
};

}  // namespace delta_parquet
