// The fragments of a manifest as columns, and sequences of row ids as segments: no object a fragment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "lance/protobuf.h"

namespace lance {

// Where the ids or the versions of a fragment's rows are.
enum : uint8_t { NOWHERE = 0, INLINE = 1, EXTERNAL = 2, AS_COLUMN = 3 };
enum : int { ROW_IDS = 0, LAST_UPDATED = 1, CREATED = 2, NUM_SEQUENCES = 3 };

// Of each fragment: where a sequence is. An inline one is bytes of the manifest; an external one bytes of a file whose
// path is bytes of the manifest.
struct SequenceColumns {
    std::vector<uint8_t> place;
    std::vector<int64_t> start, size;        // of the sequence or of the path
    std::vector<uint64_t> file_start, file_size;  // of the sequence in its file

    void add() {
        place.push_back(NOWHERE);
        start.push_back(0);
        size.push_back(0);
        file_start.push_back(0);
        file_size.push_back(0);
    }
};

struct Fault {
    const char* what = nullptr;
    int64_t at = 0;
};

// Which fields are in which columns of a file, and how the file is encoded: few are different.
struct Layouts {
    std::unordered_map<std::string, int32_t> numbers;
    std::vector<int64_t> field_ends, column_ends;
    std::vector<int32_t> fields, columns;
    std::vector<uint32_t> major, minor;

    int32_t number_of(const std::vector<int32_t>& its_fields, const std::vector<int32_t>& its_columns, uint32_t its_major,
                      uint32_t its_minor) {
        const uint64_t head[3] = {its_major, its_minor, its_fields.size()};
        std::string key(reinterpret_cast<const char*>(head), sizeof head);
        key.append(reinterpret_cast<const char*>(its_fields.data()), its_fields.size() * 4);
        key.append(reinterpret_cast<const char*>(its_columns.data()), its_columns.size() * 4);
        const auto found = numbers.emplace(std::move(key), int32_t(major.size()));
        if (found.second) {
            fields.insert(fields.end(), its_fields.begin(), its_fields.end());
            columns.insert(columns.end(), its_columns.begin(), its_columns.end());
            field_ends.push_back(int64_t(fields.size()));
            column_ends.push_back(int64_t(columns.size()));
            major.push_back(its_major);
            minor.push_back(its_minor);
        }
        return found.first->second;
    }
};

// Which layouts the files of a fragment have, in their order.
struct Shapes {
    std::unordered_map<std::string, int32_t> numbers;
    std::vector<int64_t> ends;
    std::vector<int32_t> layouts;

    int32_t number_of(const int32_t* its_layouts, int64_t count) {
        std::string key(reinterpret_cast<const char*>(its_layouts), size_t(count) * 4);
        const auto found = numbers.emplace(std::move(key), int32_t(ends.size()));
        if (found.second) {
            layouts.insert(layouts.end(), its_layouts, its_layouts + count);
            ends.push_back(int64_t(layouts.size()));
        }
        return found.first->second;
    }
};

struct FragmentColumns {
    // of each fragment
    std::vector<uint64_t> id, physical_rows;
    std::vector<int64_t> file_ends;
    std::vector<int32_t> shape;
    std::vector<uint8_t> has_rows, has_overlays;
    std::vector<int32_t> deletion_kind;  // -1: no rows are deleted
    std::vector<uint64_t> deletion_version, deletion_id, num_deleted;
    std::vector<int64_t> deletion_base;  // -1: the dataset's own
    SequenceColumns sequences[NUM_SEQUENCES];
    std::vector<int64_t> start, stop;  // the bytes of the field that has the fragment, with its number and its length
    // of each file
    std::vector<int64_t> path_ends;
    std::vector<uint8_t> paths;
    std::vector<int32_t> layout;
    std::vector<uint64_t> file_size;
    std::vector<int64_t> file_base;
    Layouts layouts;
    Shapes shapes;
    // the fields of the manifest that are no fragments
    std::vector<uint8_t> rest;
    Fault fault;

    bool fail(const char* what, int64_t at) {
        fault.what = what;
        fault.at = at;
        return false;
    }
};

inline bool read_u32(const Field& field, uint32_t* out) {
    *out = uint32_t(field.value);
    return field.wire == WIRE_VARINT && field.value <= UINT32_MAX;
}

// Numbers of a repeated int32 field: one, or a packed list.
inline bool read_numbers(const MessageReader& reader, const Field& field, std::vector<int32_t>* out) {
    if (field.wire == WIRE_VARINT) {
        out->push_back(int32_t(uint32_t(field.value)));
        return int64_t(int32_t(uint32_t(field.value))) == int64_t(field.value);
    }
    if (field.wire != WIRE_BYTES) return false;
    MessageReader inner = reader.inside(field);
    uint64_t value;
    while (inner.at < inner.end) {
        if (!inner.varint(&value) || int64_t(int32_t(uint32_t(value))) != int64_t(value)) return false;
        out->push_back(int32_t(uint32_t(value)));
    }
    return true;
}

struct FileNumbers {
    std::vector<int32_t> fields, columns;  // used again for each file
};

inline bool read_file(FragmentColumns& out, MessageReader reader, FileNumbers& numbers) {
    const int64_t at = reader.at;
    const size_t path_start = out.paths.size();
    uint32_t major = 0, minor = 0, base = 0;
    uint64_t size = 0;
    int64_t base_or_none = -1;
    bool good = true;
    numbers.fields.clear();
    numbers.columns.clear();
    Field field;
    while (good && reader.next(&field)) switch (field.number) {
            case 1:
                good = field.wire == WIRE_BYTES;
                if (!good) break;
                out.paths.resize(path_start);
                out.paths.insert(out.paths.end(), reader.data + field.start, reader.data + field.start + field.size);
                break;
            case 2: good = read_numbers(reader, field, &numbers.fields); break;
            case 3: good = read_numbers(reader, field, &numbers.columns); break;
            case 4: good = read_u32(field, &major); break;
            case 5: good = read_u32(field, &minor); break;
            case 6:
                good = field.wire == WIRE_VARINT;
                size = field.value;
                break;
            case 7:
                good = read_u32(field, &base);
                base_or_none = base;
                break;
            default: break;
        }
    if (!good || reader.damaged) return out.fail("a DataFile can't be decoded", at);
    out.path_ends.push_back(int64_t(out.paths.size()));
    out.layout.push_back(out.layouts.number_of(numbers.fields, numbers.columns, major, minor));
    out.file_size.push_back(size);
    out.file_base.push_back(base_or_none);
    return true;
}

inline bool read_deletion(FragmentColumns& out, MessageReader reader) {
    const int64_t at = reader.at;
    if (out.deletion_kind.back() < 0) out.deletion_kind.back() = 0;
    bool good = true;
    uint32_t number = 0;
    Field field;
    while (good && reader.next(&field)) {
        if (field.number > 7 || field.number == 5 || field.number == 6) continue;
        good = field.wire == WIRE_VARINT;
        if (!good) break;
        switch (field.number) {
            case 1:
                good = field.value <= 1;  // others would be a kind of file that is not known
                out.deletion_kind.back() = int32_t(field.value);
                break;
            case 2: out.deletion_version.back() = field.value; break;
            case 3: out.deletion_id.back() = field.value; break;
            case 4: out.num_deleted.back() = field.value; break;
            case 7:
                good = read_u32(field, &number);
                out.deletion_base.back() = number;
                break;
            default: break;
        }
    }
    if (!good || reader.damaged) return out.fail("a DeletionFile can't be decoded", at);
    return true;
}

inline bool read_external(SequenceColumns& out, MessageReader reader) {
    Field field;
    while (reader.next(&field)) {
        if (field.number > 3) continue;
        if (field.wire != (field.number == 1 ? WIRE_BYTES : WIRE_VARINT)) return false;
        if (field.number == 1) {
            out.start.back() = field.start;
            out.size.back() = field.size;
        } else {
            (field.number == 2 ? out.file_start : out.file_size).back() = field.value;
        }
    }
    return !reader.damaged;
}

// Fields 5 to 10 and 12 to 14: of three alternatives the last one counts.
inline bool read_sequence(FragmentColumns& out, const MessageReader& reader, const Field& field) {
    if (field.wire != WIRE_BYTES) return false;
    const bool is_column = field.number >= 12;
    const int which = is_column ? int(field.number) - 12 : int(field.number - 5) / 2;
    SequenceColumns& sequence = out.sequences[which];
    if (is_column) {
        sequence.place.back() = AS_COLUMN;
    } else if (field.number % 2) {
        sequence.place.back() = INLINE;
        sequence.start.back() = field.start;
        sequence.size.back() = field.size;
    } else {
        sequence.place.back() = EXTERNAL;
        return read_external(sequence, reader.inside(field));
    }
    return true;
}

inline bool read_fragment(FragmentColumns& out, MessageReader reader, FileNumbers& numbers) {
    const int64_t at = reader.at;
    const size_t first_file = out.layout.size();
    out.id.push_back(0);
    out.physical_rows.push_back(0);
    out.has_rows.push_back(0);
    out.has_overlays.push_back(0);
    out.deletion_kind.push_back(-1);
    out.deletion_version.push_back(0);
    out.deletion_id.push_back(0);
    out.num_deleted.push_back(0);
    out.deletion_base.push_back(-1);
    for (auto& sequence : out.sequences) sequence.add();
    bool good = true;
    Field field;
    while (good && reader.next(&field)) switch (field.number) {
            case 1:
                good = field.wire == WIRE_VARINT;
                out.id.back() = field.value;
                break;
            case 2:
                good = field.wire == WIRE_BYTES;
                if (good && !read_file(out, reader.inside(field), numbers)) return false;
                break;
            case 3:
                good = field.wire == WIRE_BYTES;
                if (good && !read_deletion(out, reader.inside(field))) return false;
                break;
            case 4:
                good = field.wire == WIRE_VARINT;
                out.physical_rows.back() = field.value;
                out.has_rows.back() = field.value != 0;
                break;
            case 5: case 6: case 7: case 8: case 9: case 10: case 12: case 13: case 14:
                good = read_sequence(out, reader, field);
                break;
            case 11: out.has_overlays.back() = 1; break;
            default: break;
        }
    if (!good || reader.damaged) return out.fail("a DataFragment can't be decoded", at);
    out.file_ends.push_back(int64_t(out.layout.size()));
    out.shape.push_back(out.shapes.number_of(out.layout.data() + first_file, int64_t(out.layout.size() - first_file)));
    return true;
}

inline bool read_manifest(FragmentColumns& out, const uint8_t* data, int64_t size) {
    MessageReader reader(data, 0, size);
    FileNumbers numbers;
    Field field;
    int64_t start = 0;
    while (reader.next(&field)) {
        if (field.number == 2) {
            if (field.wire != WIRE_BYTES) return out.fail("a DataFragment can't be decoded", start);
            if (!read_fragment(out, reader.inside(field), numbers)) return false;
            out.start.push_back(start);
            out.stop.push_back(reader.at);
        } else {
            out.rest.insert(out.rest.end(), data + start, data + reader.at);
        }
        start = reader.at;
    }
    return reader.damaged ? out.fail("no field can be read", start) : true;
}

// --- sequences of numbers ------------------------------------------------------------------

enum : uint8_t { RANGE = 1, WITH_HOLES = 2, WITH_BITMAP = 3, SORTED = 4, ARRAY = 5 };

struct Segment {
    uint64_t first, end;  // of a range, and the base of an array
    int64_t count;        // numbers
    int64_t start, size;  // the bytes of holes, of a bitmap, or of an array
    uint64_t version;     // of runs
    int32_t sequence;     // the index of the sequence that it belongs to
    uint8_t kind, width;  // bytes of each number of the array or of the holes
    uint64_t base;        // of holes
};

// Numbers that are stored as offsets from a base, or whole.
struct EncodedNumbers {
    uint64_t base = 0;
    int64_t start = 0, size = 0;
    uint8_t width = 8;

    bool read(MessageReader reader) {
        Field field, inner;
        while (reader.next(&field)) {
            if (field.number > 3) continue;
            if (field.wire != WIRE_BYTES) return false;
            width = uint8_t(1 << field.number);
            base = 0;
            start = size = 0;
            MessageReader below = reader.inside(field);
            while (below.next(&inner)) {
                if (inner.number == 1 && field.number < 3) {
                    if (inner.wire != WIRE_VARINT) return false;
                    base = inner.value;
                } else if (inner.number == 2) {
                    if (inner.wire != WIRE_BYTES) return false;
                    start = inner.start;
                    size = inner.size;
                }
            }
            if (below.damaged || size % width) return false;
        }
        return !reader.damaged;
    }

    int64_t count() const { return size / width; }
};

inline uint64_t number_at(const uint8_t* data, uint8_t width, int64_t i) {
    if (width == 2) {
        uint16_t value;
        std::memcpy(&value, data + 2 * i, 2);
        return value;
    }
    if (width == 4) {
        uint32_t value;
        std::memcpy(&value, data + 4 * i, 4);
        return value;
    }
    uint64_t value;
    std::memcpy(&value, data + 8 * i, 8);
    return value;
}

inline int64_t bits_in(const uint8_t* data, uint64_t from, uint64_t to) {
    int64_t count = 0;
    while (from < to && from % 8) {
        count += data[from / 8] >> (from % 8) & 1;
        ++from;
    }
    for (; from + 8 <= to; from += 8) count += __builtin_popcount(data[from / 8]);
    for (; from < to; ++from) count += data[from / 8] >> (from % 8) & 1;
    return count;
}

struct SegmentColumns {
    std::vector<Segment> segments;
    std::vector<int64_t> ends;  // of each sequence: the number of segments up to its last one
    Fault fault;
    int64_t bad_sequence = 0;

    bool fail(const char* what, int64_t at) {
        fault.what = what;
        fault.at = at;
        return false;
    }
};

inline bool ascend(const uint8_t* data, const EncodedNumbers& numbers, uint64_t first, uint64_t end) {
    uint64_t before = 0;
    for (int64_t i = 0; i < numbers.count(); ++i) {
        const uint64_t offset = number_at(data + numbers.start, numbers.width, i);
        const uint64_t value = numbers.base + offset;
        if (value < offset || value < first || value >= end || (i && value <= before)) return false;
        before = value;
    }
    return true;
}

inline bool fit(const uint8_t* data, const EncodedNumbers& numbers, bool sorted) {
    uint64_t before = 0;
    for (int64_t i = 0; i < numbers.count(); ++i) {
        const uint64_t offset = number_at(data + numbers.start, numbers.width, i);
        if (numbers.base + offset < offset || (sorted && i && offset <= before)) return false;
        before = offset;
    }
    return true;
}

// One U64Segment. Its count is known without a look at the numbers, so that a range of any length takes no memory.
inline const char* read_segment(MessageReader reader, Segment* out) {
    Field field, inner;
    EncodedNumbers numbers;
    while (reader.next(&field)) {
        if (field.number > 5) continue;
        if (field.wire != WIRE_BYTES) return "a segment can't be decoded";
        *out = Segment{0, 0, 0, 0, 0, out->version, out->sequence, uint8_t(field.number), 8, 0};
        numbers = EncodedNumbers();
        if (field.number >= SORTED) {
            if (!numbers.read(reader.inside(field))) return "an array of a segment can't be decoded";
            continue;
        }
        MessageReader below = reader.inside(field);
        while (below.next(&inner)) {
            if (inner.number > 3) continue;
            if (inner.wire != (inner.number == 3 ? WIRE_BYTES : WIRE_VARINT)) return "a segment can't be decoded";
            if (inner.number == 1) out->first = inner.value;
            if (inner.number == 2) out->end = inner.value;
            if (inner.number == 3 && field.number == WITH_HOLES && !numbers.read(below.inside(inner)))
                return "holes of a segment can't be decoded";
            if (inner.number == 3 && field.number == WITH_BITMAP) {
                out->start = inner.start;
                out->size = inner.size;
            }
        }
        if (below.damaged) return "a segment can't be decoded";
    }
    if (reader.damaged) return "a segment can't be decoded";
    if (!out->kind) return "a segment has no kind";
    if (out->kind == RANGE || out->kind == WITH_HOLES || out->kind == WITH_BITMAP) {
        if (out->end < out->first) return "a range of a segment ends before it starts";
        if (out->end - out->first > uint64_t(INT64_MAX)) return "a range of a segment is too long";
        out->count = int64_t(out->end - out->first);
    }
    if (out->kind == WITH_BITMAP) {
        if (uint64_t(out->count) > uint64_t(out->size) * 8) return "a bitmap of a segment is shorter than its range";
        out->count = bits_in(reader.data + out->start, 0, uint64_t(out->count));
    } else if (out->kind != RANGE) {
        out->start = numbers.start;
        out->size = numbers.size;
        out->width = numbers.width;
        out->base = numbers.base;
        if (out->kind == WITH_HOLES) {
            if (!ascend(reader.data, numbers, out->first, out->end)) return "holes of a segment are not ascending in its range";
            out->count -= numbers.count();
        } else {
            if (!fit(reader.data, numbers, out->kind == SORTED)) return "an array of a segment has too large or unsorted numbers";
            out->count = numbers.count();
        }
    }
    return nullptr;
}

// The segments of one RowIdSequence, or of one RowDatasetVersionSequence.
inline bool read_segments(SegmentColumns& out, const uint8_t* data, int64_t start, int64_t size, int32_t sequence,
                          bool has_versions) {
    MessageReader reader(data, start, size);
    Field field, inner;
    while (reader.next(&field)) {
        if (field.number != 1) continue;
        if (field.wire != WIRE_BYTES) return out.fail("a segment can't be decoded", field.start);
        Segment segment{};
        segment.sequence = sequence;
        MessageReader span = reader.inside(field);
        if (has_versions) {
            MessageReader run = span;
            span = MessageReader(data, field.start, 0);
            while (run.next(&inner)) {
                if (inner.number > 2) continue;
                if (inner.wire != (inner.number == 1 ? WIRE_BYTES : WIRE_VARINT))
                    return out.fail("a run of versions can't be decoded", field.start);
                if (inner.number == 1) span = run.inside(inner);
                if (inner.number == 2) segment.version = inner.value;
            }
            if (run.damaged) return out.fail("a run of versions can't be decoded", field.start);
        }
        const char* fault = read_segment(span, &segment);
        if (fault) return out.fail(fault, field.start);
        out.segments.push_back(segment);
    }
    if (reader.damaged) return out.fail("a segment can't be decoded", start);
    out.ends.push_back(int64_t(out.segments.size()));
    return true;
}

// The numbers `from` to `to` (not included) of a segment, in its order. `to` is at most the segment's count.
inline void write_numbers(const uint8_t* data, const Segment& segment, int64_t from, int64_t to, uint64_t* out) {
    const uint8_t* bytes = data + segment.start;
    switch (segment.kind) {
        case RANGE:
            for (int64_t i = from; i < to; ++i) *out++ = segment.first + uint64_t(i);
            return;
        case SORTED:
        case ARRAY:
            for (int64_t i = from; i < to; ++i) *out++ = segment.base + number_at(bytes, segment.width, i);
            return;
        case WITH_HOLES: {
            const int64_t holes = segment.size / segment.width;
            int64_t hole = 0, i = 0;
            uint64_t value = segment.first;
            // between two holes the numbers are consecutive
            while (i < to) {
                const uint64_t stop = hole < holes ? segment.base + number_at(bytes, segment.width, hole) : segment.end;
                const int64_t run = std::min(int64_t(stop - value), to - i);
                for (int64_t k = std::max<int64_t>(0, from - i); k < run; ++k) *out++ = value + uint64_t(k);
                i += run;
                value = stop + 1;
                ++hole;
            }
            return;
        }
        default: {
            int64_t i = 0;
            for (uint64_t bit = 0; i < to; ++bit) {
                if (!(bytes[bit / 8] >> (bit % 8) & 1)) continue;
                if (i >= from) *out++ = segment.first + bit;
                ++i;
            }
        }
    }
}

// Runs of consecutive ids, each with the row of its first one: what a search for ids looks at.
struct IdRanges {
    std::vector<uint64_t> first, last;
    std::vector<int64_t> offset;
    std::vector<int32_t> sequence;

    void add(uint64_t from, uint64_t to, int64_t row, int32_t number) {
        first.push_back(from);
        last.push_back(to);
        offset.push_back(row);
        sequence.push_back(number);
    }
};

inline void collect_ranges(const uint8_t* data, const SegmentColumns& columns, IdRanges& out) {
    int64_t row = 0;
    int32_t before = -1;
    for (const Segment& segment : columns.segments) {
        if (segment.sequence != before) row = 0;
        before = segment.sequence;
        const uint8_t* bytes = data + segment.start;
        const int64_t first_row = row;
        row += segment.count;
        if (!segment.count) continue;
        if (segment.kind == RANGE) {
            out.add(segment.first, segment.end - 1, first_row, segment.sequence);
        } else if (segment.kind == WITH_HOLES) {
            const int64_t holes = segment.size / segment.width;
            uint64_t value = segment.first;
            int64_t at = first_row;
            for (int64_t i = 0; i <= holes; ++i) {
                const uint64_t stop = i < holes ? segment.base + number_at(bytes, segment.width, i) : segment.end;
                if (value < stop) out.add(value, stop - 1, at, segment.sequence);
                at += int64_t(stop - value);
                value = stop + 1;
            }
        } else if (segment.kind == WITH_BITMAP) {
            const uint64_t bits = segment.end - segment.first;
            int64_t at = first_row;
            for (uint64_t bit = 0; bit < bits;) {
                if (!(bytes[bit / 8] >> (bit % 8) & 1)) {
                    ++bit;
                    continue;
                }
                const uint64_t start = bit;
                while (bit < bits && bytes[bit / 8] >> (bit % 8) & 1) ++bit;
                out.add(segment.first + start, segment.first + bit - 1, at, segment.sequence);
                at += int64_t(bit - start);
            }
        } else {
            for (int64_t i = 0; i < segment.count;) {
                const int64_t start = i;
                const uint64_t value = segment.base + number_at(bytes, segment.width, i);
                ++i;
                while (i < segment.count &&
                       segment.base + number_at(bytes, segment.width, i) == value + uint64_t(i - start))
                    ++i;
                out.add(value, value + uint64_t(i - 1 - start), first_row + start, segment.sequence);
            }
        }
    }
}

}  // namespace lance
