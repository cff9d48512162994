// Many small Parquet files of a few schemas in one call: opened, read whole, the flat columns of the files of each schema decoded
// behind one another.
//
// A file that is not exactly as expected (a schema that none has, another encoding or codec, a row group that does not fit,
// damage, a file that can't be read) ends the run before it: nothing of it is in the output, and a complete reader takes it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "parquet_footer.h"
#include "parquet_pages.h"

namespace delta_parquet {

enum { MAGIC_BYTES = 4, TAIL_BYTES = 8 };
const int MOST_CODEC = 8, ZSTD_NUMBER = 6;  // of Parquet's numbers
enum PhysicalType { INT32 = 1, INT64 = 2, FLOAT = 4, DOUBLE_TYPE = 5, BYTE_ARRAY = 6 };
const int64_t KNOWN_ENCODINGS = 1 << PLAIN | 1 << PLAIN_DICTIONARY | 1 << RLE | 1 << 4 /* BIT_PACKED */ | 1 << DELTA_BINARY_PACKED |
                                1 << DELTA_LENGTH_BYTE_ARRAY | 1 << DELTA_BYTE_ARRAY | 1 << RLE_DICTIONARY | 1 << BYTE_STREAM_SPLIT;
const int64_t MOST_TEXT_OF_RUN = int64_t(64) << 20;

// Memory that keeps what it holds when it grows.
class Growing {
   public:
    Growing() = default;
    Growing(const Growing &) = delete;
    Growing &operator=(const Growing &) = delete;
    ~Growing() { std::free(data); }
    // Make room for `size` bytes and SLACK behind them.
    bool room(int64_t size) {
        if (size + SLACK <= size_) return true;
        const int64_t wanted = size + SLACK > 2 * size_ ? size + SLACK : 2 * size_;
        uint8_t *const grown = static_cast<uint8_t *>(std::realloc(data, wanted));
        if (!grown) return false;
        data = grown;
        size_ = wanted;
        return true;
    }
    uint8_t *data = nullptr;
    int64_t size() const { return size_; }

   private:
    int64_t size_ = 0;
};

// One column: which it is in the files, and what was decoded of it.
struct RunColumn {
    RunColumn(int leaf, int type, const ValueLayout &layout, int most_level) : leaf(leaf), type(type), layout(layout), most_level(most_level) {}
    const int leaf, type;
    const ValueLayout layout;
    const int most_level;
    Growing data, ends, bits;
    int64_t text = 0, nulls = 0;
    bool has_bits = false;
};

// What decompresses pages, by Parquet's number of the codec; nothing for those that are compiled in.
struct ForeignCodecs {
    Decompress decompress = nullptr;
    void *codecs[MOST_CODEC] = {};
    bool has(int64_t codec) const { return codec >= 0 && codec < MOST_CODEC && codecs[codec]; }
};

// The columns of the files of one schema.
class FileRun {
   public:
    FileRun(Workspace &space, const ForeignCodecs &foreign, const char *schema, size_t schema_size, const char *metadata,
            size_t metadata_size)
        : space_(space), foreign_(foreign), schema_(schema, schema_size), metadata_(metadata, metadata_size) {}
    ~FileRun() { for (RunColumn *c : columns_) delete c; }
    FileRun(const FileRun &) = delete;
    FileRun &operator=(const FileRun &) = delete;

    void add_column(int leaf, int type, int width, int stored, int most_level) {
        columns_.push_back(new RunColumn(leaf, type, ValueLayout{width, stored}, most_level));
    }
    int64_t rows() const { return rows_; }
    RunColumn &column(int64_t i) { return *columns_[i]; }
    bool fits(const FooterFacts &footer) const { return footer.schema == schema_ && footer.metadata == metadata_; }

    // Add the rows of one file behind those before it; false, and nothing is added, if it is left to a complete reader.
    bool append(const uint8_t *data, int64_t size, const FooterFacts &footer) {
        const int64_t before = rows_;
        for (const RunColumn *c : columns_) marks_.push_back({c->text, c->nulls});
        bool good = true;
        for (const GroupFacts &group : footer.groups) {
            good = good && append(data, size, group);
            if (!good) break;
            rows_ += group.num_rows;
        }
        good = good && rows_ - before == footer.num_rows;
        if (!good) {
            rows_ = before;
            for (size_t i = 0; i < columns_.size(); i++) columns_[i]->text = marks_[i].text, columns_[i]->nulls = marks_[i].nulls;
        }
        marks_.clear();
        return good;
    }
    // What the columns hold.
    int64_t bytes() const {
        int64_t total = 0;
        for (const RunColumn *c : columns_) total += c->layout.width ? c->layout.bytes_of(rows_) : c->text + 4 * rows_;
        return total;
    }

   private:
    struct Mark { int64_t text, nulls; };

    bool append(const uint8_t *data, int64_t size, const GroupFacts &group) {
        if (group.num_rows > MOST_GROUP_ROWS || rows_ + group.num_rows > MOST_RUN_ROWS) return false;
        for (RunColumn *column : columns_) {
            if (static_cast<size_t>(column->leaf) >= group.chunks.size()) return false;
            if (!append(data, size, group.num_rows, group.chunks[column->leaf], *column)) return false;
        }
        return true;
    }

    bool append(const uint8_t *data, int64_t size, int64_t rows, const ChunkFacts &chunk, RunColumn &column) {
        if (!rows) return true;
        int64_t first = chunk.data_page;
        if (chunk.dictionary_page > 0 && chunk.dictionary_page < first) first = chunk.dictionary_page;
        const bool is_foreign = foreign_.has(chunk.codec);
        if (!chunk.is_plain || chunk.type != column.type || chunk.num_values != rows ||
            (chunk.codec != 0 && chunk.codec != 1 && !is_foreign) || chunk.encodings & ~KNOWN_ENCODINGS || first < MAGIC_BYTES || chunk.compressed <= 0 || chunk.uncompressed <= 0 ||
            first > size || chunk.compressed > size - first) return false;
        space_.decompress = foreign_.decompress;
        space_.codec = is_foreign ? foreign_.codecs[chunk.codec] : nullptr;
        const int codec = chunk.codec == ZSTD_NUMBER ? ZSTD : is_foreign ? FOREIGN : chunk.codec == 1 ? SNAPPY : UNCOMPRESSED;
        ChunkReader reader(space_, ChunkBytes(data + first, chunk.compressed), codec, column.layout, column.most_level, rows, nullptr, rows);
        Status status;
        int64_t done = 0;
        while ((status = reader.next_page()) == PAGE) {
            const int64_t at = rows_ + done;
            if (!(column.layout.width ? append_fixed(reader, column, at) : append_text(reader, column, at))) return false;
            if (!append_validity(reader, column, at)) return false;
            done += reader.rows();
        }
        return status == DONE && done == rows;
    }

    bool append_fixed(ChunkReader &reader, RunColumn &column, int64_t at) {
        const int64_t size = column.layout.bytes_of(at + reader.rows());
        if (!column.data.room(size)) return false;
        if (column.layout.is_bits()) {
            uint8_t *const bits = column.data.data;
            if (at % 8) bits[at / 8] &= static_cast<uint8_t>((1 << at % 8) - 1);
            std::memset(bits + (at + 7) / 8, 0, size - (at + 7) / 8);
        }
        return reader.append_fixed(column.data.data, at);
    }

    bool append_text(ChunkReader &reader, RunColumn &column, int64_t at) {
        const int64_t more = reader.text_bytes();
        if (more < 0 || column.text + more > MOST_TEXT_OF_RUN || !column.data.room(column.text + more) ||
            !column.ends.room((at + reader.rows() + 1) * sizeof(int32_t))) return false;
        int32_t *const ends = reinterpret_cast<int32_t *>(column.ends.data);
        if (!at) ends[0] = 0;
        const int64_t end = reader.append_text(ends + at, column.data.data, column.text);
        if (end < 0) return false;
        column.text = end;
        return true;
    }

    bool append_validity(ChunkReader &reader, RunColumn &column, int64_t at) {
        if (!reader.nulls() && !column.has_bits) return true;
        const int64_t held = column.bits.size();
        if (!column.bits.room((at + reader.rows() + 7) / 8)) return false;
        if (column.bits.size() > held) std::memset(column.bits.data + held, 0, column.bits.size() - held);
        if (!column.has_bits) {
            for (int64_t i = 0; i < at; i++) column.bits.data[i >> 3] |= static_cast<uint8_t>(1 << (i & 7));
            column.has_bits = true;
        }
        int64_t nulls = 1;  // the bits before are written
        if (!reader.append_validity(column.bits.data, at, nulls, 0)) return false;
        column.nulls += nulls - 1;
        return true;
    }

    enum : int64_t { MOST_GROUP_ROWS = int64_t(1) << 20, MOST_RUN_ROWS = int64_t(1) << 22 };

    Workspace &space_;
    const ForeignCodecs &foreign_;
    const std::string schema_, metadata_;
    std::vector<RunColumn *> columns_;
    std::vector<Mark> marks_;
    int64_t rows_ = 0;
};

// Files one behind the other, each added to the run of its schema.
class FileRuns {
   public:
    FileRuns() = default;
    ~FileRuns() { for (FileRun *run : runs_) delete run; }
    FileRuns(const FileRuns &) = delete;
    FileRuns &operator=(const FileRuns &) = delete;

    FileRun *add(const char *schema, size_t schema_size, const char *metadata, size_t metadata_size) {
        runs_.push_back(new FileRun(space_, foreign_, schema, schema_size, metadata, metadata_size));
        return runs_.back();
    }
    void add_codec(int codec, Decompress decompress, void *object) {
        foreign_.decompress = decompress;
        if (codec >= 0 && codec < MOST_CODEC) foreign_.codecs[codec] = object;
    }
    FileRun &run(int64_t i) { return *runs_[i]; }
    int64_t rows() const {
        int64_t total = 0;
        for (const FileRun *run : runs_) total += run->rows();
        return total;
    }
    int64_t bytes() const {
        int64_t total = 0;
        for (const FileRun *run : runs_) total += run->bytes();
        return total;
    }

    // Read a file; return the number of its run, -1 if it is left to a complete reader, as all further ones are then.
    int64_t read(const char *path, int64_t size) {
        if (is_ended_) return -1;
        is_ended_ = true;
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) return -1;
        const uint8_t *const data = content(file, size);
        close(file);
        FooterFacts footer;
        if (!data || !parse(data, size, footer)) return -1;
        for (size_t i = 0; i < runs_.size(); i++) {
            if (!runs_[i]->fits(footer)) continue;
            if (!runs_[i]->append(data, size, footer)) return -1;
            is_ended_ = false;
            return static_cast<int64_t>(i);
        }
        return -1;
    }

   private:
    const uint8_t *content(int file, int64_t size) {
        struct stat facts;
        // a file of another size than the log specifies is looked at by a complete reader
        if (size < MAGIC_BYTES + TAIL_BYTES || fstat(file, &facts) || facts.st_size != size) return nullptr;
        Source source;
        source.file = file;
        return read_source(files_, source, 0, size);
    }

    static bool parse(const uint8_t *data, int64_t size, FooterFacts &footer) {
        if (std::memcmp(data + size - MAGIC_BYTES, "PAR1", MAGIC_BYTES) || std::memcmp(data, "PAR1", MAGIC_BYTES)) return false;
        const int64_t length = load<uint32_t>(data + size - TAIL_BYTES);
        if (length > size - TAIL_BYTES - MAGIC_BYTES) return false;
        const uint8_t *const end = data + size - TAIL_BYTES;
        FooterReader reader(end - length, end);
        return reader.footer(footer) && footer.is_plain;
    }

    Workspace space_, files_;
    ForeignCodecs foreign_;
    std::vector<FileRun *> runs_;
    bool is_ended_ = false;
};

}  // namespace delta_parquet
