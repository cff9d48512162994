// The footers of many Parquet files: read in one call, stored as bytes and facts, with their statistics as columns.
//
// A file with an unsupported footer, or one that can't be read, has the layout -1; its footer is then read with PyArrow.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "footer.h"
#include "memory/byte_copies.h"
#include "platform/files.h"

namespace delta_parquet {

enum BoundKind { BOUND_INT32, BOUND_INT64, BOUND_FLOAT, BOUND_DOUBLE, BOUND_BYTES, BOUND_SIGNED_BYTES };

struct FooterOfFile {
    std::string bytes;  // without its length and magic
    FooterFacts facts;
    int64_t layout = -1;  // -1: to be read with PyArrow
};

// Bounds of one column of many files: numbers in `least` and `most`, or bytes that end at `least_ends` and `most_ends`.
struct BoundColumn {
    std::vector<int64_t> nulls;   // -1: unknown
    std::vector<uint8_t> known;   // whether there are bounds
    std::vector<int64_t> least, most, least_ends, most_ends;
    std::vector<double> least_number, most_number;
    std::string least_bytes, most_bytes;
};

class FooterWindow {
   public:
    // Read the footer of a file, and append it.
    void read(const char *path) {
        files_.emplace_back();
        FooterOfFile &file = files_.back();
        const int handle = file_open(path);
        if (handle < 0) return;
        const bool is_there = tail(handle, file.bytes);
        file_close(handle);
        if (!is_there || !parse(file)) {
            file.bytes.clear();
            file.facts = FooterFacts();
            return;
        }
        std::string key(file.facts.schema);
        key.append(1, '\0').append(file.facts.metadata).append(1, '\0').append(file.facts.created_by);
        const auto found = layouts_.emplace(std::move(key), static_cast<int64_t>(first_.size()));
        if (found.second) first_.push_back(static_cast<int64_t>(files_.size()) - 1);
        file.layout = found.first->second;
    }
    int64_t size() const { return static_cast<int64_t>(files_.size()); }
    const FooterOfFile &file(int64_t i) const { return files_[i]; }
    // Return the first file of each layout.
    const std::vector<int64_t> &first() const { return first_; }
    int64_t bytes() const {
        int64_t total = 0;
        for (const FooterOfFile &file : files_) {
            total += static_cast<int64_t>(sizeof file + file.bytes.size());
            for (const GroupFacts &group : file.facts.groups) total += static_cast<int64_t>(group.chunks.size() * sizeof(ChunkFacts));
        }
        return total;
    }

    // Write the statistics of a column of the files of a layout, in the order of the files.
    void column(int64_t layout, int64_t leaf, int64_t physical, int kind, bool has_bounds, BoundColumn &out) const {
        for (const FooterOfFile &file : files_)
            if (file.layout == layout) add(file.facts, leaf, physical, kind, has_bounds, out);
    }

   private:
    enum : int64_t { FIRST_READ = 16 << 10, END = 8, MOST_BYTES = int64_t(64) << 20 };

    static bool read_at(int handle, std::string &out, int64_t size, int64_t at) {
        out.resize(static_cast<size_t>(size));
        for (int64_t done = 0; done < size;) {
            const int64_t n = file_read_at(handle, &out[static_cast<size_t>(done)], static_cast<size_t>(size - done), at + done);
            if (n <= 0) return false;
            done += n;
        }
        return true;
    }

    static bool tail(int handle, std::string &out) {
        file_facts_t facts;
        if (file_facts(handle, &facts) || !facts.is_file || facts.size < END + 4) return false;
        const int64_t size = facts.size, first = size < FIRST_READ ? size : FIRST_READ;
        if (!read_at(handle, out, first, size - first)) return false;
        if (std::memcmp(out.data() + first - 4, "PAR1", 4)) return false;
        const int64_t length = load<uint32_t>(reinterpret_cast<const uint8_t *>(out.data()) + first - END);
        if (length > size - END - 4 || length > MOST_BYTES) return false;
        if (length + END > first) return read_at(handle, out, length, size - END - length);
        out.assign(out, static_cast<size_t>(first - END - length), static_cast<size_t>(length));
        out.shrink_to_fit();
        return true;
    }

    static bool parse(FooterOfFile &file) {
        const uint8_t *const start = reinterpret_cast<const uint8_t *>(file.bytes.data());
        FooterReader reader(start, start + file.bytes.size());
        if (!reader.footer(file.facts) || !file.facts.is_plain || !file.facts.has_orders) return false;
        int64_t rows = 0;
        for (const GroupFacts &group : file.facts.groups) rows += group.num_rows;
        return rows == file.facts.num_rows;
    }

    template <typename T>
    static bool number(std::string_view text, T &out) {
        if (text.size() != sizeof(T)) return false;
        std::memcpy(&out, text.data(), sizeof(T));
        return true;
    }

    // Return whether a is below b; signed ones are compared as numbers in two's complement, most significant byte first.
    static bool is_less(std::string_view a, std::string_view b, bool is_signed) {
        if (!is_signed) return a < b;
        const bool minus = !a.empty() && (a[0] & 0x80), other = !b.empty() && (b[0] & 0x80);
        if (minus != other) return minus;
        const size_t size = a.size() > b.size() ? a.size() : b.size();
        for (size_t i = 0; i < size; i++) {
            const uint8_t x = digit(a, i, size, minus), y = digit(b, i, size, minus);
            if (x != y) return x < y;
        }
        return false;
    }
    static uint8_t digit(std::string_view text, size_t i, size_t size, bool minus) {
        const size_t missing = size - text.size();
        return i < missing ? (minus ? 0xFF : 0) : static_cast<uint8_t>(text[i - missing]);
    }

    static bool integer(std::string_view text, int kind, int64_t &out) {
        int32_t small;
        if (kind == BOUND_INT64) return number(text, out);
        if (!number(text, small)) return false;
        out = small;
        return true;
    }
    static bool real(std::string_view text, int kind, double &out) {
        float small;
        if (kind == BOUND_DOUBLE) return number(text, out);
        if (!number(text, small)) return false;
        out = small;
        return true;
    }

    static void add(const FooterFacts &footer, int64_t leaf, int64_t physical, int kind, bool has_bounds, BoundColumn &out) {
        int64_t nulls = 0, least = 0, most = 0;
        double low = 0, high = 0;
        std::string_view first, last;
        bool known = has_bounds, any = false;
        for (const GroupFacts &group : footer.groups) {
            const bool is_there = static_cast<size_t>(leaf) < group.chunks.size();
            const ChunkFacts *const chunk = is_there ? &group.chunks[static_cast<size_t>(leaf)] : nullptr;
            if (!chunk || !chunk->is_plain || chunk->type != physical || chunk->null_count < 0) {
                nulls = -1;
                known = false;
                continue;
            }
            if (nulls >= 0) nulls += chunk->null_count;
            if (!known || chunk->null_count == chunk->num_values) continue;
            if (!chunk->has_least || !chunk->has_most) {
                known = false;
            } else if (kind <= BOUND_INT64) {
                int64_t a, b;
                known = integer(chunk->least, kind, a) && integer(chunk->most, kind, b);
                if (known && (!any || a < least)) least = a;
                if (known && (!any || b > most)) most = b;
            } else if (kind <= BOUND_DOUBLE) {
                double a, b;
                known = real(chunk->least, kind, a) && real(chunk->most, kind, b) && a == a && b == b;
                if (known && (!any || a < low)) low = a;
                if (known && (!any || b > high)) high = b;
            } else {
                if (!any || is_less(chunk->least, first, kind == BOUND_SIGNED_BYTES)) first = chunk->least;
                if (!any || is_less(last, chunk->most, kind == BOUND_SIGNED_BYTES)) last = chunk->most;
            }
            any = true;
        }
        known = known && any;
        out.nulls.push_back(nulls);
        out.known.push_back(known);
        if (kind <= BOUND_INT64) {
            out.least.push_back(known ? least : 0);
            out.most.push_back(known ? most : 0);
        } else if (kind <= BOUND_DOUBLE) {
            out.least_number.push_back(known ? low : 0);
            out.most_number.push_back(known ? high : 0);
        } else {
            if (known) {
                out.least_bytes.append(first);
                out.most_bytes.append(last);
            }
            out.least_ends.push_back(static_cast<int64_t>(out.least_bytes.size()));
            out.most_ends.push_back(static_cast<int64_t>(out.most_bytes.size()));
        }
    }

    std::deque<FooterOfFile> files_;  // a deque: the facts point into the bytes, which must not move
    std::vector<int64_t> first_;
    std::unordered_map<std::string, int64_t> layouts_;
};

}  // namespace delta_parquet
