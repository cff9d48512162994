// A Parquet file cut into one file for each of its row groups. Pages do not contain their own offsets, only the footer does.
//
// The result equals, byte for byte, the files that PyArrow writes of single row groups. No Python; no byte after the end is
// read.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "footer.h"

namespace delta_parquet {

class RowGroupFiles : private FooterReader {
   public:
    std::string bytes;          // the consecutive files
    std::vector<int64_t> ends;  // the end of each

    // The whole file, and its footer within it.
    RowGroupFiles(const uint8_t *file, const uint8_t *footer, const uint8_t *end)
        : FooterReader(footer, end), file_(file), footer_(footer), end_of_footer_(end) {}

    // Returns false if the file has content that can't be moved (indexes, Bloom filters, encryption), or is damaged.
    bool cut() {
        const uint8_t *rows = nullptr, *rows_end = nullptr, *first_group = nullptr, *list_start = nullptr;
        uint64_t count = 0;
        int16_t id = 0;
        int type;
        while (true) {
            if (!field(id, type)) return false;
            if (type == STOP) break;
            if (id == 3 && type == I64) {
                int64_t all;
                rows = in_;
                if (!number(all)) return false;
                rows_end = in_;
            } else if (id == 4 && type == LIST) {
                int inner;
                if (!rows) return false;
                list_start = in_;
                if (!list(count, inner) || inner != STRUCT || count > static_cast<uint64_t>(end_of_footer_ - in_)) return false;
                first_group = in_;
                for (uint64_t i = 0; i < count; i++)
                    if (!skip(STRUCT)) return false;
                break;
            } else if (!skip(type)) {
                return false;
            }
        }
        if (!first_group) return false;
        const uint8_t *const rest = in_;
        bytes.reserve(2 * static_cast<size_t>(end_of_footer_ - file_));
        int64_t at = 4;
        in_ = first_group;
        for (uint64_t i = 0; i < count; i++) {
            const uint8_t *const group = in_;
            int64_t num_rows = -1, size = 0;
            if (!measure(num_rows, size) || size < 0 || size > footer_ - file_ - at) return false;
            const uint8_t *const next = in_;
            put("PAR1", 4);
            put(file_ + at, size);
            const size_t start = bytes.size();
            put(footer_, rows - footer_);
            put_number(num_rows);
            put(rows_end, list_start - rows_end);
            bytes.push_back(static_cast<char>(1 << 4 | STRUCT));
            in_ = copied_ = group;
            moved_ = at - 4;
            if (!move_group()) return false;
            put(copied_, in_ - copied_);
            put(rest, end_of_footer_ - rest);
            const uint32_t length = static_cast<uint32_t>(bytes.size() - start);
            const uint8_t tail[8] = {static_cast<uint8_t>(length), static_cast<uint8_t>(length >> 8),
                                     static_cast<uint8_t>(length >> 16), static_cast<uint8_t>(length >> 24),
                                     'P', 'A', 'R', '1'};
            put(tail, 8);
            ends.push_back(static_cast<int64_t>(bytes.size()));
            in_ = next;
            at += size;
        }
        return at == footer_ - file_;
    }

   private:
    void put(const void *from, int64_t size) { bytes.append(static_cast<const char *>(from), static_cast<size_t>(size)); }

    void put_number(int64_t value) {
        uint64_t zigzag = static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
        for (; zigzag > 127; zigzag >>= 7) bytes.push_back(static_cast<char>(zigzag | 128));
        bytes.push_back(static_cast<char>(zigzag));
    }

    // Set the rows of a row group, and add the bytes of its pages.
    bool measure(int64_t &num_rows, int64_t &size) {
        GroupFacts facts;
        if (!group(facts)) return false;
        for (const ChunkFacts &chunk : facts.chunks) {
            if (chunk.compressed < 0 || chunk.compressed > end_of_footer_ - file_) return false;
            size += chunk.compressed;
        }
        num_rows = facts.num_rows;
        return true;
    }

    bool move_group() {
        return each_field([&](int16_t id, int type) {
            if (id == 1 && type == LIST) return each_struct([&] { return move_chunk(); });
            if (id == 5 && type == I64) return move_number();
            return id == 7 && type == I16 ? replace_number(0) : skip(type);
        });
    }

    bool move_chunk() {
        return each_field([&](int16_t id, int type) {
            return id == 2 && type == I64 ? move_number() : id == 3 && type == STRUCT && move_metadata();
        });
    }

    bool move_metadata() {
        return each_field([&](int16_t id, int type) {
            if (id == 14 || id == 15) return false;  // a Bloom filter
            return (id == 9 || id == 10 || id == 11) && type == I64 ? move_number() : skip(type);
        });
    }

    // An offset in the file; 0 is none.
    bool move_number() {
        const uint8_t *const start = in_;
        int64_t value;
        if (!number(value)) return false;
        if (!value) return true;
        if (value < 4 + moved_) return false;
        in_ = start;
        return replace_number(value - moved_);
    }

    bool replace_number(int64_t value) {
        put(copied_, in_ - copied_);
        put_number(value);
        int64_t old;
        if (!number(old)) return false;
        copied_ = in_;
        return true;
    }

    const uint8_t *const file_, *const footer_, *const end_of_footer_;
    const uint8_t *copied_ = nullptr;
    int64_t moved_ = 0;
};

}  // namespace delta_parquet
