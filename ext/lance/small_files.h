// Small data files of versions 2.1 and 2.2, with the same columns: each is read whole, and the rows of all of them are appended
// to one column object for each requested column.
//
// A file that is not as expected ends the read: the caller then reads the files one by one, which reports what is wrong.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lance/columns.h"
#include "pages.h"
#include "platform/files.h"

namespace delta_lance {

// The layout of pages of one column: a page object that is used for one page after the other, and how it is opened.
struct PageLayout {
    Page *page = nullptr;
    uint64_t depth = 0;              // of the repetition index, 0 = none
    uint64_t num_rep = 0, num_def = 0;  // levels of a constant page
    bool has_value = false;          // whether the layout of a constant page has its value
};

class SmallFiles {
   public:
    SmallFiles(unsigned major, unsigned minor) : major_(major), minor_(minor) {}

    // Request a column of the files, which has `multiple` entries for each row.
    void add_column(Column *column, uint64_t index, uint64_t multiple) {
        wanted_.emplace_back();
        wanted_.back().column = column;
        wanted_.back().index = index;
        wanted_.back().multiple = multiple;
    }

    // Read a file and find its pages. False if it is not as expected, or can't be read.
    bool read(const char *path, uint64_t size, uint64_t rows) {
        if (size < FOOTER || size > MOST_BYTES - bytes_) return false;
        files_.emplace_back(size);
        bytes_ += size;
        uint8_t *const data = files_.back().data();
        const int handle = file_open(path);
        if (handle < 0) return false;
        const bool is_read = fill(handle, data, size);
        file_close(handle);
        return is_read && find_pages(data, size, rows);
    }

    // The layouts that were met and are not set, each with the number of its column.
    const std::vector<std::pair<size_t, const std::string *>> &unknown() const { return unknown_; }
    void set_layout(size_t i, const PageLayout &layout) { wanted_[unknown_[i].first].layouts[*unknown_[i].second] = layout; }

    // Append the rows of all files to the columns; the layouts have to be set.
    Error append(Context &context) {
        for (Wanted &wanted : wanted_)
            for (const PagePlace &place : wanted.pages) {
                if (!place.layout->page) return "the layout of a page is not set";
                Page &page = *place.layout->page;
                std::vector<Part> parts;
                if (Error e = open_page(context, *wanted.column, *place.layout, place, parts)) return e;
                if (Error e = wanted.column->append(context, page, {{0, place.rows}}, parts)) return e;
            }
        return nullptr;
    }

   private:
    // The bytes of all files, and the rows of a page, at most.
    enum : uint64_t { FOOTER = 40, MOST_BYTES = UINT64_C(64) << 20, MOST_ENTRIES = UINT64_C(1) << 24 };
    static constexpr char PAGE_KIND[] = "/lance.encodings21.PageLayout", COLUMN_KIND[] = "/lance.encodings.ColumnEncoding";

    struct PagePlace {
        uint64_t rows;
        PageLayout *layout;
        std::vector<Bytes> buffers;
    };
    struct Wanted {
        Column *column = nullptr;
        uint64_t index = 0, multiple = 1;
        std::unordered_map<std::string, PageLayout> layouts;
        std::vector<PagePlace> pages;
    };

    static bool fill(int handle, uint8_t *out, uint64_t size) {
        file_facts_t facts;
        if (file_facts(handle, &facts) || !facts.is_file) return false;
        for (uint64_t done = 0; done < size;) {
            const int64_t n = file_read_at(handle, out + done, size - done, static_cast<int64_t>(done));
            if (n <= 0) return false;
            done += static_cast<uint64_t>(n);
        }
        return true;
    }

    static bool is_in(uint64_t at, uint64_t n, uint64_t size) { return n <= size && at <= size - n; }

    static bool is_kind(const uint8_t *data, const Encoding &encoding, const char *kind) {
        const size_t length = std::strlen(kind);
        return encoding.is_direct && static_cast<size_t>(encoding.kind.size) == length && !std::memcmp(data + encoding.kind.start, kind, length);
    }

    // Append the buffers from one number to another.
    static bool buffers_of(const uint8_t *data, uint64_t size, const Buffers &buffers, size_t first, size_t last, std::vector<Bytes> &out) {
        for (size_t i = first; i < last; i++) {
            if (!is_in(buffers.offsets[i], buffers.sizes[i], size)) return false;
            out.push_back({data + buffers.offsets[i], buffers.sizes[i]});
        }
        return true;
    }

    // Read the footer, the number of rows, and the metadata of the requested columns.
    bool find_pages(const uint8_t *data, uint64_t size, uint64_t rows) {
        const uint8_t *const footer = data + size - FOOTER;
        const uint64_t end = size - FOOTER, metadata = load<uint64_t>(footer), table = load<uint64_t>(footer + 8), globals = load<uint64_t>(footer + 16);
        const uint64_t num_globals = load<uint32_t>(footer + 24), num_columns = load<uint32_t>(footer + 28);
        if (std::memcmp(footer + 36, "LANC", 4) || load<uint16_t>(footer + 32) != major_ || load<uint16_t>(footer + 34) != minor_) return false;
        if (metadata > end || !is_in(table, 16 * num_columns, end) || !is_in(globals, 16 * num_globals, end) || !num_globals) return false;
        uint64_t found = 0, at = load<uint64_t>(data + globals), length = load<uint64_t>(data + globals + 8);
        if (!is_in(at, length, size) || !read_length(data + at, static_cast<int64_t>(length), found) || found != rows) return false;
        for (size_t i = 0; i < wanted_.size(); i++) {
            const uint64_t index = wanted_[i].index;
            if (index >= num_columns) return false;
            at = load<uint64_t>(data + table + 16 * index);
            length = load<uint64_t>(data + table + 16 * index + 8);
            if (!is_in(at, length, size) || !add_pages(i, data, size, data + at, length, rows)) return false;
        }
        return true;
    }

    bool add_pages(size_t number, const uint8_t *data, uint64_t size, const uint8_t *metadata, uint64_t length, uint64_t rows) {
        Wanted &wanted = wanted_[number];
        ColumnMetadata found;
        std::vector<Bytes> own;
        if (!found.parse(metadata, static_cast<int64_t>(length)) || found.num_offsets != found.num_sizes) return false;
        if (!buffers_of(data, size, found.own, 0, found.own.offsets.size(), own)) return false;
        if (!is_kind(metadata, found.own_encoding, COLUMN_KIND) || rows > MOST_ENTRIES / wanted.multiple) return false;
        uint64_t left = rows * wanted.multiple;
        for (size_t i = 0; i < found.rows.size(); i++) {
            const Encoding &encoding = found.encodings[i];
            PagePlace place = {found.rows[i], nullptr, {}};
            if (place.rows > left || !is_kind(metadata, encoding, PAGE_KIND)) return false;
            if (!buffers_of(data, size, found.buffers, i ? found.ends[i - 1] : 0, found.ends[i], place.buffers)) return false;
            left -= place.rows;
            const std::string key(reinterpret_cast<const char *>(metadata) + encoding.value.start, static_cast<size_t>(encoding.value.size));
            const auto layout = wanted.layouts.try_emplace(key);
            // entries of the map, and their keys, stay where they are
            if (layout.second) unknown_.push_back({number, &layout.first->first});
            place.layout = &layout.first->second;
            if (place.rows) wanted.pages.push_back(std::move(place));
        }
        return !left;
    }

    static Error open_page(Context &context, const Column &column, const PageLayout &layout, const PagePlace &place, std::vector<Part> &parts) {
        static constexpr char BUFFERS[] = "it has buffers that its layout does not have";
        Page &page = *layout.page;
        const std::vector<Bytes> &buffers = place.buffers;
        page.num_rows = place.rows;
        if (page.layout == MINI_BLOCK) {
            const bool has_dictionary = page.dictionary >= 0, has_index = layout.depth > 0;
            if (buffers.size() != size_t(2) + has_dictionary + has_index) return BUFFERS;
            page.data_size = buffers[1].size;
            if (Error e = page.find_chunks(buffers[0], has_index ? buffers.back() : Bytes(), layout.depth, page.data_size)) return e;
            if (has_dictionary) {
                page.entries = Values();
                if (Error e = column.read_dictionary(context, page, buffers[2])) return e;
            }
            parts.push_back({0, buffers[1]});
            return nullptr;
        }
        if (page.layout == FULL_ZIP) {
            if (buffers.empty() || buffers.size() > 2) return BUFFERS;
            page.data_size = buffers[0].size;
            page.row_starts.clear();
            if (buffers.size() == 2)
                if (Error e = page.find_rows(buffers[1])) return e;
            std::vector<Range> ranges;
            if (Error e = page.plan({{0, place.rows}}, 0, ranges)) return e;
            parts.push_back({0, buffers[0]});
            return nullptr;
        }
        // a value in a buffer is left to the caller
        if (buffers.size() != 0 && buffers.size() != 2) return BUFFERS;
        const bool has_levels = buffers.size() == 2;
        if (Error e = page.open_constant(context, layout.has_value, has_levels ? buffers[0] : Bytes(), has_levels ? buffers[1] : Bytes(), layout.num_rep, layout.num_def)) return e;
        if (!has_levels && !layout.has_value && page.layers.kinds()[0] == NULLABLE_ITEM) page.fill_levels(1);
        return nullptr;
    }

    unsigned major_, minor_;
    uint64_t bytes_ = 0;
    std::vector<std::vector<uint8_t>> files_;
    std::vector<Wanted> wanted_;
    std::vector<std::pair<size_t, const std::string *>> unknown_;
};

}  // namespace delta_lance
