// A check of the column chunks' metadata in the footer of a Parquet file.
//
// PyArrow parses a footer with care, but examines the metadata of a column chunk only when it is requested, and ends the
// process if it is damaged: no exception reaches Python. Therefore it is requested only from footers that pass this check.
#pragma once

#include <cstdint>
#include <vector>

#include "thrift.h"

namespace delta_parquet {

enum Problem { SOUND = 0, TORN, NO_COLUMN_METADATA, COLUMN_COUNT, COLUMN_TYPE, CODEC, HISTOGRAM, TEXT_BYTES, BOUND, ENCRYPTED };

// A leaf of the schema.
struct Leaf {
    int64_t type, length;
    size_t definition, repetition;
};

class FooterCheck {
   public:
    FooterCheck(const uint8_t *in, const uint8_t *end) : in_(in), end_(end) {}
    // The place of the problem.
    int64_t group = 0, column = 0;

    // FileMetaData: the schema is field 2, the row groups are field 4.
    Problem check() {
        return structure([&](int id, int type) {
            if (id == 2 && type == LIST) return schema();
            if (id == 4 && type == LIST)
                return each(STRUCT, [&](uint64_t i) { group = i; return row_group(); });
            return skip(type, 0);
        });
    }

   private:
    enum { STOP = 0, TRUE = 1, FALSE = 2, BYTE = 3, I16 = 4, I32 = 5, I64 = 6, DOUBLE = 7, BINARY = 8, LIST = 9, SET = 10,
           MAP = 11, STRUCT = 12, MOST_NESTED = 64 };
    enum { BOOLEAN = 0, INT32 = 1, INT64 = 2, INT96 = 3, FLOAT = 4, DOUBLES = 5, BYTE_ARRAY = 6, FIXED = 7 };
    enum { OPTIONAL = 1, REPEATED = 2, LAST_CODEC = 7 };
    struct Node { int64_t type = -1, length = 0, repetition = 0, children = 0; };

    // SchemaElements: the nodes of a tree from its root on, each before its children.
    Problem schema() {
        std::vector<Node> nodes;
        const Problem found = each(STRUCT, [&](uint64_t) {
            nodes.emplace_back();
            return element(nodes.back());
        });
        if (found) return found;
        struct Level { int64_t left; size_t definition, repetition; };
        std::vector<Level> open;
        for (size_t i = 0; i < nodes.size(); i++) {
            const Node &node = nodes[i];
            while (!open.empty() && !open.back().left) open.pop_back();
            if (i && open.empty()) return TORN;
            Level level{node.children, 0, 0};
            if (i) {
                open.back().left--;
                level.definition = open.back().definition + (node.repetition == OPTIONAL || node.repetition == REPEATED);
                level.repetition = open.back().repetition + (node.repetition == REPEATED);
            }
            if (node.children > 0) open.push_back(level);
            else if (i) leaves_.push_back({node.type, node.length, level.definition, level.repetition});
        }
        return SOUND;
    }

    Problem element(Node &node) {
        return structure([&](int id, int type) {
            if (type == I32 && id == 1) return number(node.type);
            if (type == I32 && id == 2) return number(node.length);
            if (type == I32 && id == 3) return number(node.repetition);
            if (type == I32 && id == 5) return number(node.children);
            return skip(type, 0);
        });
    }

    Problem row_group() {
        column = 0;
        uint64_t columns = 0;
        const Problem found = structure([&](int id, int type) {
            if (id != 1 || type != LIST) return skip(type, 0);
            return each(STRUCT, [&](uint64_t i) {
                column = i;
                columns = i + 1;
                return i < leaves_.size() ? chunk(leaves_[i]) : COLUMN_COUNT;
            });
        });
        return found ? found : columns == leaves_.size() ? SOUND : COLUMN_COUNT;
    }

    Problem chunk(const Leaf &leaf) {
        bool has_metadata = false;
        const Problem found = structure([&](int id, int type) {
            if (id == 8 || id == 9) return ENCRYPTED;
            if (id != 3 || type != STRUCT) return skip(type, 0);
            has_metadata = true;
            return column_metadata(leaf);
        });
        return found ? found : has_metadata ? SOUND : NO_COLUMN_METADATA;
    }

    Problem column_metadata(const Leaf &leaf) {
        int64_t stored = -1, codec = -1;
        const Problem found = structure([&](int id, int type) {
            if (id == 1 && type == I32) return number(stored);
            if (id == 4 && type == I32) return number(codec);
            if (id == 12 && type == STRUCT) return statistics(leaf);
            if (id == 16 && type == STRUCT) return sizes(leaf);
            return skip(type, 0);
        });
        if (found) return found;
        if (stored != leaf.type) return COLUMN_TYPE;
        return codec >= 0 && codec <= LAST_CODEC ? SOUND : CODEC;
    }

    // Statistics: max (field 1), min (2), max_value (5), min_value (6).
    Problem statistics(const Leaf &leaf) {
        return structure([&](int id, int type) {
            if ((id != 1 && id != 2 && id != 5 && id != 6) || type != BINARY) return skip(type, 0);
            uint64_t size;
            if (!read_varint(in_, end_, size) || !pass(size)) return TORN;
            return size >= width(leaf) ? SOUND : BOUND;
        });
    }

    static uint64_t width(const Leaf &leaf) {
        switch (leaf.type) {
            case BOOLEAN: return 1;
            case INT32: case FLOAT: return 4;
            case INT64: case DOUBLES: return 8;
            case INT96: return 12;
            case FIXED: return leaf.length < 0 ? 0 : static_cast<uint64_t>(leaf.length);
            default: return 0;
        }
    }

    // SizeStatistics: bytes of text (field 1), histograms of repetition (2) and definition levels (3).
    Problem sizes(const Leaf &leaf) {
        return structure([&](int id, int type) {
            if (id == 1 && type == I64 && leaf.type != BYTE_ARRAY) return TEXT_BYTES;
            if ((id != 2 && id != 3) || type != LIST) return skip(type, 0);
            uint64_t count = 0;
            const Problem found = each(I64, [&](uint64_t i) { count = i + 1; return skip(I64, 0); });
            const size_t levels = (id == 2 ? leaf.repetition : leaf.definition) + 1;
            return found ? found : !count || count == levels ? SOUND : HISTOGRAM;
        });
    }

    // --- Thrift's compact protocol ---

    template <class Field>
    Problem structure(Field field) {
        int id = 0;
        while (in_ < end_) {
            const uint8_t head = *in_++;
            const int type = head & 15;
            if (type == STOP) return SOUND;
            int64_t given = id + (head >> 4);
            if (!(head >> 4) && number(given)) return TORN;
            id = static_cast<int16_t>(given);
            if (const Problem found = field(id, type)) return found;
        }
        return TORN;
    }

    template <class Item>
    Problem each(int wanted, Item item) {
        uint64_t count;
        int type;
        if (!list(count, type) || (count && type != wanted)) return TORN;
        for (uint64_t i = 0; i < count; i++)
            if (const Problem found = item(i)) return found;
        return SOUND;
    }

    bool list(uint64_t &count, int &type) {
        if (in_ >= end_) return false;
        const uint8_t head = *in_++;
        type = head & 15;
        count = head >> 4;
        // an item takes at least one byte
        return count < 15 || (read_varint(in_, end_, count) && count <= static_cast<uint64_t>(end_ - in_));
    }

    Problem number(int64_t &value) {
        uint64_t zigzag;
        if (!read_varint(in_, end_, zigzag)) return TORN;
        value = static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
        return SOUND;
    }

    bool pass(uint64_t n) {
        if (n > static_cast<uint64_t>(end_ - in_)) return false;
        in_ += n;
        return true;
    }

    Problem skip(int type, int depth) {
        uint64_t n;
        if (depth > MOST_NESTED) return TORN;
        switch (type) {
            case TRUE: case FALSE: return SOUND;
            case BYTE: return pass(1) ? SOUND : TORN;
            case I16: case I32: case I64: return read_varint(in_, end_, n) ? SOUND : TORN;
            case DOUBLE: return pass(8) ? SOUND : TORN;
            case BINARY: return read_varint(in_, end_, n) && pass(n) ? SOUND : TORN;
            case LIST: case SET: {
                int inner;
                if (!list(n, inner)) return TORN;
                for (uint64_t i = 0; i < n; i++)
                    // in lists a boolean takes a byte
                    if (inner == TRUE || inner == FALSE ? !pass(1) : skip(inner, depth + 1) != SOUND) return TORN;
                return SOUND;
            }
            case STRUCT: return structure([&](int, int inner) { return skip(inner, depth + 1); });
            default: return TORN;  // footers contain no maps
        }
    }

    const uint8_t *in_, *end_;
    std::vector<Leaf> leaves_;
};

}  // namespace delta_parquet
