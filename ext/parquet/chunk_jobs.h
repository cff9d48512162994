// Column chunks decoded as a whole into memory of the caller: numbers, strings, or codes of a dictionary.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "chunk_reader.h"

namespace delta_parquet {

struct Rows {
    int64_t nulls = 0, kept = 0;
    // Rows are written from the first page with a value on: a column of nulls alone takes neither time nor memory.
    bool is_written = false;
};

// Count the rows of the current page if it and all pages before contain nulls alone; returns whether nothing is written.
inline bool pass_nulls(const ChunkReader &reader, const uint8_t *bits, Rows &rows) {
    if (rows.is_written || !bits || reader.nulls() < reader.rows()) return false;
    rows.nulls = rows.kept += reader.kept();
    return true;
}

// Write the rows that were counted before the first value; `row_bytes` is 0 if the caller writes all rows.
inline void begin_rows(Rows &rows, uint8_t *out, int64_t row_bytes, uint8_t *bits, int64_t num_kept) {
    if (rows.is_written) return;
    rows.is_written = true;
    if (!rows.kept) return;
    std::memset(out, 0, rows.kept * row_bytes);
    std::memset(bits, 0, (num_kept + 7) / 8);
}

// Append the validity of the selected rows of the page. `bits`, for all selected rows, may be nullptr if no row is null.
inline bool count_page(ChunkReader &reader, uint8_t *bits, int64_t num_kept, Rows &rows) {
    if (bits && !reader.append_validity(bits, rows.kept, rows.nulls, num_kept)) return false;
    rows.kept += reader.kept();
    return true;
}

// Read every page of a chunk of numbers, or of a range of its rows. `out` is nullptr if rows are only tested; strings are
// then allowed.
inline Status read_values(ChunkReader &reader, const ValueLayout &layout, int64_t num_kept, uint8_t *out, uint8_t *bits, Rows &rows) {
    Status status;
    while ((status = reader.next_page()) == PAGE) {
        if (out && pass_nulls(reader, bits, rows)) continue;
        if (out && !rows.is_written && layout.is_bits()) std::memset(out, 0, layout.bytes_of(num_kept));
        if (out) begin_rows(rows, out, layout.is_bits() ? 0 : layout.width, bits, num_kept);
        if (out && !reader.append_fixed(out, rows.kept)) return UNSUPPORTED;
        if (!count_page(reader, bits, num_kept, rows)) return NO_MEMORY;
    }
    return status;
}

// Read every page of a chunk of strings as codes.
inline Status read_codes(ChunkReader &reader, int64_t num_kept, uint8_t *out, uint8_t *bits, Rows &rows) {
    Status status;
    while ((status = reader.next_page()) == PAGE) {
        if (pass_nulls(reader, bits, rows)) continue;
        begin_rows(rows, out, sizeof(uint32_t), bits, num_kept);
        if (!reader.is_coded() || !reader.append_codes(out + rows.kept * sizeof(uint32_t))) return UNSUPPORTED;
        if (!count_page(reader, bits, num_kept, rows)) return NO_MEMORY;
    }
    return status;
}

// Room for at most this many bytes of strings of one page may remain unused.
enum : int64_t { MOST_SPARE = 2 << 20 };

// Read pages of strings while there is room. Returns PAGE if the current page needs room for `more` bytes; -1 for a damaged
// page.
inline Status read_text(ChunkReader &reader, int64_t num_kept, int32_t *ends, uint8_t *data, int64_t room, uint8_t *bits,
                        Rows &rows, int64_t &used, int64_t &more, bool has_page) {
    Status status = PAGE;
    while (has_page || (status = reader.next_page()) == PAGE) {
        if (!has_page) {
            if (pass_nulls(reader, bits, rows)) continue;
            begin_rows(rows, reinterpret_cast<uint8_t *>(ends + 1), sizeof(int32_t), bits, num_kept);
            more = reader.text_bytes();
            // for a long page, room is made for the selected strings only
            if (used + more > room && more > MOST_SPARE && reader.kept() < reader.rows()) more = reader.kept_text_bytes();
            if (more < 0 || used + more > room) return PAGE;
        }
        has_page = false;
        const int64_t end = reader.append_text(ends + rows.kept, data, used);
        if (end < 0) return UNSUPPORTED;
        used = end;
        if (!count_page(reader, bits, num_kept, rows)) return NO_MEMORY;
    }
    return status;
}

// Strings whose total size is not known in advance.
class Text {
   public:
    Text() = default;
    Text(const Text &) = delete;
    Text &operator=(const Text &) = delete;
    ~Text() { std::free(data_); }
    uint8_t *data() const { return data_; }
    int64_t room() const { return room_; }
    // Make room, and copy the `used` bytes at `from`, which may be in the old room.
    bool grow(int64_t room, const uint8_t *from, int64_t used) {
        uint8_t *const data = static_cast<uint8_t *>(std::malloc(room + SLACK));
        if (!data) return false;
        if (used) std::memcpy(data, from, used);
        std::free(data_);
        data_ = data;
        room_ = room;
        return true;
    }
    // Transfer the first `used` bytes to the caller, which frees them with `free`.
    uint8_t *release(int64_t used) {
        uint8_t *const data = data_, *const cut = static_cast<uint8_t *>(std::realloc(data, used + SLACK));
        data_ = nullptr;
        room_ = 0;
        return cut ? cut : data;
    }

   private:
    uint8_t *data_ = nullptr;
    int64_t room_ = 0;
};

enum Form { NUMBERS = 0, STRINGS = 1, CODES = 2 };

// One chunk to decode. The caller provides memory for the selected rows: for numbers or codes, or for one more end than
// strings; for validity bits, if a row may be null; and for `room` bytes of strings.
struct ChunkJob {
    int64_t offset = 0, size = 0;
    int codec = UNCOMPRESSED, most_level = 0, form = NUMBERS;
    ValueLayout layout;
    void *decompressor = nullptr;
    uint8_t *out = nullptr, *bits = nullptr, *text = nullptr;
    int64_t room = 0;
    // only the rows that pass, whose bits are set in `passed`; if `out` is nullptr, no values are written
    const Test *test = nullptr;
    uint64_t *passed = nullptr;
    // results
    Status status = UNSUPPORTED;
    int64_t nulls = 0, used = 0, kept = 0;
    bool is_null = false;  // all rows are null, and `out` and `bits` are not written
    Text grown;  // the strings, if they exceeded `room`; for codes, those of the dictionary
    Text ends;   // for codes: the ends of the dictionary's strings, `length` + 1 numbers
    int64_t length = 0;
};

// Read every page of a chunk of strings, and append to the strings of the rows that were read before.
inline Status read_strings(ChunkReader &reader, int64_t num_kept, int64_t most_text, ChunkJob &job, Rows &rows) {
    int32_t *const ends = reinterpret_cast<int32_t *>(job.out);
    if (!job.text && !job.grown.data() && !job.grown.grow(0, nullptr, 0)) return NO_MEMORY;
    const bool is_grown = job.grown.data() != nullptr;
    uint8_t *data = is_grown ? job.grown.data() : job.text;
    int64_t room = is_grown ? job.grown.room() : job.room, more = 0;
    bool has_page = false;
    Status status;
    if (!rows.kept) ends[0] = 0;
    while ((status = read_text(reader, num_kept, ends, data, room, job.bits, rows, job.used, more, has_page)) == PAGE) {
        if (more < 0 || job.used + more > most_text) return UNSUPPORTED;
        room = job.used ? 2 * (job.used + more) : more;
        if (!job.grown.grow(room, data, job.used)) return NO_MEMORY;
        data = job.grown.data();
        has_page = true;
    }
    return status;
}

inline Status keep_dictionary(const ChunkReader &reader, ChunkJob &job) {
    job.length = reader.dictionary_length();
    job.used = reader.dictionary_bytes();
    if (!job.length) return DONE;
    const uint8_t *const ends = reinterpret_cast<const uint8_t *>(reader.dictionary_offsets());
    const int64_t size = (job.length + 1) * static_cast<int64_t>(sizeof(int32_t));
    return job.ends.grow(size, ends, size) && job.grown.grow(job.used, reader.dictionary_data(), job.used) ? DONE : NO_MEMORY;
}

// Decode the current range of a reader, which has `num_kept` selected rows.
inline void read_rows(ChunkReader &reader, int64_t stop, int64_t num_kept, int64_t most_text, ChunkJob &job) {
    Rows rows;
    Status status = job.form == NUMBERS ? read_values(reader, job.layout, num_kept, job.out, job.bits, rows)
                    : job.form == CODES ? read_codes(reader, num_kept, job.out, job.bits, rows)
                                        : read_strings(reader, num_kept, most_text, job, rows);
    if (status == DONE && (reader.done() < stop || (!job.test && rows.kept != num_kept))) status = UNSUPPORTED;
    job.kept = rows.kept;
    job.nulls = rows.nulls;
    job.is_null = rows.kept && rows.nulls == rows.kept && !rows.is_written;
    job.status = status;
}

// Decode a chunk, or the rows of it that a mask selects.
inline void run_job(Workspace &space, const Source &source, int64_t num_rows, const uint64_t *keep, int64_t num_kept,
                    int64_t most_text, ChunkJob &job) {
    space.codec = job.decompressor;
    ChunkReader reader(space, ChunkBytes(space.chunk, source, job.offset, job.size, WINDOW_BYTES), job.codec, job.layout,
                       job.most_level, num_rows, keep, num_kept, job.test, job.passed, job.out != nullptr);
    read_rows(reader, num_rows, num_kept, most_text, job);
    if (job.status == DONE && job.form == CODES) job.status = keep_dictionary(reader, job);
}

// One of several chunks that are decoded as one.
struct ChunkPart {
    int64_t offset = 0, size = 0, num_rows = 0;
    int codec = UNCOMPRESSED, most_level = 0;
    void *decompressor = nullptr;
};

// Decode chunks of consecutive row groups as one: numbers, or strings that are not requested as codes.
inline void run_joined(Workspace &space, const Source &source, const ChunkPart *parts, int64_t count, int64_t num_rows,
                       int64_t most_text, ChunkJob &job) {
    Rows rows;
    int64_t stop = 0;
    job.status = UNSUPPORTED;
    if (job.form == CODES) return;
    for (int64_t i = 0; i < count; i++) {
        const ChunkPart &part = parts[i];
        space.codec = part.decompressor;
        ChunkReader reader(space, ChunkBytes(space.chunk, source, part.offset, part.size, WINDOW_BYTES), part.codec, job.layout,
                           part.most_level, part.num_rows, nullptr, part.num_rows);
        const Status status = job.form == NUMBERS ? read_values(reader, job.layout, num_rows, job.out, job.bits, rows)
                                                  : read_strings(reader, num_rows, most_text, job, rows);
        stop += part.num_rows;
        job.status = status == DONE && rows.kept != stop ? UNSUPPORTED : status;
        if (job.status != DONE) return;
    }
    job.kept = rows.kept;
    job.nulls = rows.nulls;
    job.is_null = rows.kept && rows.nulls == rows.kept && !rows.is_written;
}

inline void run_jobs(Workspace &space, const Source &source, int64_t num_rows, const uint64_t *keep, int64_t num_kept,
                     int64_t most_text, ChunkJob *jobs, int64_t count) {
    for (int64_t i = 0; i < count; i++) run_job(space, source, num_rows, keep, num_kept, most_text, jobs[i]);
}

}  // namespace delta_parquet
