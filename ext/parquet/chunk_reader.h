// Pages of one Parquet column chunk that is not repeated: headers, levels, PLAIN, encoded and dictionary values (Encodings.md
// of apache/parquet-format).
//
// An unexpected encoding, a length that does not fit, or a code outside of the dictionary ends in UNSUPPORTED. The caller
// then reads the column with PyArrow, which reports the error, if there is one. Every input buffer has SLACK readable bytes
// after its end, and every output buffer SLACK writable ones, so that short copies can be made in whole blocks.
//
// A chunk may be read with a mask of its rows (rows/compact.h). Rows that are not selected are dropped page by page, while a
// page is in a core's cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "codecs.h"
#include "crc32.h"
#include "encodings.h"
#include "lz4.h"
#include "memory/byte_copies.h"
#include "page_header.h"
#include "row_bits.h"
#include "rows/compact.h"
#include "runs.h"
#include "snappy.h"
#include "source.h"
#include "status.h"
#include "value_layout.h"
#include "value_marks.h"
#include "value_tests.h"
#include "workspace.h"
#include "zstd_library.h"

namespace delta_parquet {

// Files are read in windows of this size, or in whole pages if they are longer.
enum : int64_t { WINDOW_BYTES = 256 << 10 };

// Return whether all codes are below `length`. Otherwise the highest bit of `last - code`, or of the code, is set.
inline bool are_below(const uint32_t *codes, int64_t n, int64_t length) {
    if (length <= 0 || length > INT32_MAX) return n == 0;
    const uint32_t last = static_cast<uint32_t>(length - 1);
    uint32_t bits = 0;
    for (int64_t i = 0; i < n; i++) bits |= (last - codes[i]) | codes[i];
    return !(bits >> 31);
}

// Reads pages one by one: `next_page` decodes a page as far as no output is needed, and the `append` functions write its
// rows.
class ChunkReader {
   public:
    // `keep` is nullptr or a mask of the chunk's rows that selects `num_kept`. With a test, only rows that pass are selected,
    // and their bits in `passed`, which were zero, are set. If no values are appended, a test of nulls reads the levels
    // alone.
    ChunkReader(Workspace &space, const ChunkBytes &bytes, int codec, const ValueLayout &layout, int most_level, int64_t num_rows,
                const uint64_t *keep, int64_t num_kept, const Test *test = nullptr, uint64_t *passed = nullptr, bool appends = true)
        : space_(space), bytes_(bytes), codec_(codec == ZSTD && !ZstdLibrary::loaded() ? FOREIGN : codec), layout_(layout),
          width_(layout.width), most_(most_level),
          num_rows_(num_rows), test_(test), passed_(passed),
          has_value_test_(test && !test->is_of_levels()), is_of_levels_(test && test->is_of_levels() && !appends),
          keep_(keep), stop_(num_rows), kept_left_(num_kept) {}

    // Continue with the rows from `first`, which follow the rows read before, up to `stop`. The first bit of the mask is that
    // of row `first`.
    Status begin(int64_t first, int64_t stop, const uint64_t *keep, int64_t num_kept) {
        first_ = first;
        stop_ = stop;
        keep_ = keep;
        kept_left_ = num_kept;
        is_again_ = done_ > first;
        if (dictionary_ || dictionary_at_ < 0) return PAGE;
        // it was dropped
        const int64_t at = at_, body_at = body_at_;
        PageHeader page;
        at_ = dictionary_at_;
        const Status status = next_header(page) && page.type == DICTIONARY_PAGE ? read_dictionary(page) : UNSUPPORTED;
        at_ = at;
        body_at_ = body_at;
        return status;
    }

    Status next_page() {
        for (;;) {
            if (is_again_) {  // the current page has rows of this range too
                is_again_ = false;
            } else {
                if (done_ >= stop_) return DONE;
                page_at_ = at_;
                page_ = PageHeader();
                if (!next_header(page_)) return UNSUPPORTED;
                if (page_.type == DICTIONARY_PAGE) {
                    dictionary_at_ = page_at_;
                    const Status status = is_of_levels_ ? PAGE : read_dictionary(page_);
                    if (status != PAGE) return status;
                    continue;
                }
                // pages of other types contain no rows
                if ((page_.type != DATA_PAGE && page_.type != DATA_PAGE_V2) || page_.num_values == 0) continue;
                if (page_.num_values < 0 || page_.num_values > num_rows_ - done_) return UNSUPPORTED;
                rows_ = page_.num_values;
                done_ += rows_;
                is_decoded_ = false;
                count_met();
            }
            Status status = find_kept();
            if (status != PAGE) return status;
            if (kept_ && has_value_test_ && !test_->with_null && is_coded(page_) && dictionary_ && !has_match_) kept_ = 0;
            // a page without a selected row is not decompressed
            pass_over(!kept_);
            if (!kept_) continue;
            if (!is_decoded_) {
                const uint8_t *const body = body_of(page_, status);
                if (!body) return status;
                count_decoded();
                if ((status = data_page(page_, body)) != PAGE) return status;
                is_decoded_ = true;
            }
            if (test_ && (status = narrow()) != PAGE) return status;
            if (kept_) return PAGE;
        }
    }

    // Drop the current page and its bytes. If it has rows of a later range, it is read again.
    void drop_page() {
        if (done_ > stop_) {
            at_ = page_at_;
            done_ -= rows_;
        }
        bytes_.forget();
    }
    void drop_dictionary() { dictionary_ = nullptr; }
    bool has_more_of_page() const { return done_ > stop_; }

    int64_t rows() const { return rows_; }
    // Return the number of rows up to the end of the current page.
    int64_t done() const { return done_; }
    int64_t nulls() const { return rows_ - values_; }
    // Return how many rows of the page are selected.
    int64_t kept() const { return kept_; }
    // Return whether the values of the page are codes of the dictionary.
    bool is_coded() const { return codes_; }
    int64_t dictionary_length() const { return dictionary_length_; }
    int64_t dictionary_bytes() const { return dictionary_bytes_; }
    const int32_t *dictionary_offsets() const { return dictionary_offsets_; }
    const uint8_t *dictionary_data() const { return dictionary_; }

    // Return the bytes of the page's strings, selected or not.
    int64_t text_bytes() {
        if (!codes_) return end_of_values_ - values_at_ - 4 * values_;
        const uint32_t *const code = codes();
        int64_t total = 0;
        for (int64_t i = 0; i < values_; i++) total += dictionary_offsets_[code[i] + 1] - dictionary_offsets_[code[i]];
        return total;
    }

    // Return the bytes of the selected strings, -1 if the page is damaged. Each string is examined.
    int64_t kept_text_bytes() { return codes_ ? count_kept_text(coded_texts()) : count_kept_text(plain_texts()); }

    // Write the values of the page's selected rows after `first` others; rows without a value are 0. Bits there were zero.
    bool append_fixed(uint8_t *out, int64_t first) {
        if (layout_.is_bits()) return append_booleans(out, first);
        out += first * width_;
        switch (width_) {
            case 1: return append_numbers<uint8_t>(out);
            case 2: return append_numbers<uint16_t>(out);
            case 4: return append_numbers<uint32_t>(out);
            case 8: return append_numbers<uint64_t>(out);
            default: return append_numbers<Wide>(out);
        }
    }

    // Write the codes of the page's selected rows.
    bool append_codes(uint8_t *out) { return append_rows<uint32_t>(code_scratch_, out); }

    // Write the strings of the page to `data + used`, and the end of each to `offsets[1 ...]`. Returns the end of the last
    // one, -1 if the page is damaged.
    int64_t append_text(int32_t *offsets, uint8_t *data, int64_t used) {
        uint8_t *const end = codes_ ? coded_text(offsets + 1, data, data + used) : plain_text(offsets + 1, data, data + used);
        return end ? end - data : -1;
    }

    // Set the validity bits of the page's selected rows in a bitmap of `num_rows`, after `first` rows with `nulls` nulls, and
    // add to `nulls`. Nothing is written before the first null. Returns false without memory.
    bool append_validity(uint8_t *bits, int64_t first, int64_t &nulls, int64_t num_rows) {
        const uint64_t *valid = valid_;
        int64_t found = 0;
        if (values_ < rows_ && kept_ == rows_) {
            found = rows_ - values_;
        } else if (values_ < rows_) {
            uint64_t *const inner = reinterpret_cast<uint64_t *>(space_.inner.room((rows_ + 63) / 64 * 8 + 8));
            if (!inner) return false;
            found = kept_ - compact_bits(reinterpret_cast<const uint8_t *>(valid_), 0, mask_, rows_, reinterpret_cast<uint8_t *>(inner));
            valid = inner;
        }
        if (!nulls) {
            if (!found) return true;
            std::memset(bits, 0, (num_rows + 7) / 8);
            std::memset(bits, 0xff, first / 8);
            for (int64_t i = first / 8 * 8; i < first; i++) bits[i >> 3] |= static_cast<uint8_t>(1 << (i & 7));
        }
        if (!found) set_bits(bits, first, kept_);
        else or_bits(bits, first, valid, kept_);
        nulls += found;
        return true;
    }

   protected:
    // Record whether the current page is skipped. Reading the bytes after a short page costs less than a further call.
    void pass_over(bool is_passed) { is_passed_ = is_passed && page_.compressed > 4 * HEADER_WINDOW_BYTES; }

    // Count the current page, but not again if it is read again for a later range.
    void count_met() {
        space_.pages->met += page_at_ >= met_end_;
        met_end_ = std::max(met_end_, page_at_ + 1);
    }
    void count_decoded() {
        space_.pages->decoded += page_at_ >= decoded_end_;
        decoded_end_ = std::max(decoded_end_, page_at_ + 1);
    }

    static bool is_coded(const PageHeader &page) { return page.encoding == RLE_DICTIONARY || page.encoding == PLAIN_DICTIONARY; }
    uint32_t *codes() { return reinterpret_cast<uint32_t *>(code_scratch_); }

    // Write a number for each selected row, from one for each value. `values` may be unaligned.
    template <class T>
    bool append_rows(const uint8_t *values, uint8_t *out) {
        const bool all = kept_ == rows_;
        if (values_ == rows_) {
            if (all) std::memcpy(out, values, rows_ * sizeof(T));
            else compact_fixed(values, sizeof(T), mask_, rows_, out);
            return true;
        }
        if (all) {
            spread<T>(values, valid_, rows_, out);
            return true;
        }
        // the mask of the values, and that of the selected rows
        const size_t words = (rows_ + 63) / 64 + 1;
        uint64_t *const inner = reinterpret_cast<uint64_t *>(space_.inner.room(2 * words * sizeof(uint64_t)));
        if (!inner) return false;
        const int64_t count = compact_bits(reinterpret_cast<const uint8_t *>(mask_), 0, valid_, rows_, reinterpret_cast<uint8_t *>(inner));
        uint8_t *const found = count == kept_ ? out : space_.spread.room(count * sizeof(T));
        if (!found) return false;
        compact_fixed(values, sizeof(T), inner, values_, found);
        if (count == kept_) return true;
        compact_bits(reinterpret_cast<const uint8_t *>(valid_), 0, mask_, rows_, reinterpret_cast<uint8_t *>(inner + words));
        spread<T>(found, inner + words, kept_, out);
        return true;
    }

    // Write a bit for each selected row.
    bool append_booleans(uint8_t *out, int64_t first) {
        const size_t words = (rows_ + 63) / 64 + 1;
        uint64_t *const inner = reinterpret_cast<uint64_t *>(space_.inner.room(2 * words * sizeof(uint64_t)));
        if (!inner) return false;
        const uint64_t *bits = reinterpret_cast<const uint64_t *>(values_at_);
        if (values_ < rows_) {
            mask_narrow(valid_, rows_, bits, values_, inner);
            bits = inner;
        }
        if (kept_ < rows_) {
            compact_bits(reinterpret_cast<const uint8_t *>(bits), 0, mask_, rows_, reinterpret_cast<uint8_t *>(inner + words));
            bits = inner + words;
        }
        or_bits(out, first, bits, kept_);
        return true;
    }

    // Write numbers whose layout in pages differs from that in memory.
    template <class T>
    bool append_converted(uint8_t *out) {
        if (values_ == rows_) {
            convert_values(layout_, values_at_, kept_ == rows_ ? nullptr : mask_, rows_, out);
            return true;
        }
        uint8_t *const values = space_.looked_up.room(values_ * sizeof(T));
        if (!values) return false;
        convert_values(layout_, values_at_, nullptr, values_, values);
        return append_rows<T>(values, out);
    }

    template <class T>
    bool append_numbers(uint8_t *out) {
        if (!codes_ && layout_.is_converted()) return append_converted<T>(out);
        if (!codes_) return end_of_values_ - values_at_ == values_ * static_cast<int64_t>(sizeof(T)) && append_rows<T>(values_at_, out);
        if (kept_ < rows_ && values_ == rows_) {  // only selected codes are looked up
            uint8_t *const kept = space_.spread.room(kept_ * sizeof(uint32_t));
            if (!kept) return false;
            compact_fixed(code_scratch_, sizeof(uint32_t), mask_, rows_, kept);
            look_up<T>(kept, kept_, out);
            return true;
        }
        if (values_ == rows_) {
            look_up<T>(code_scratch_, values_, out);
            return true;
        }
        uint8_t *const values = space_.looked_up.room(values_ * sizeof(T));
        if (!values) return false;
        look_up<T>(code_scratch_, values_, values);
        return append_rows<T>(values, out);
    }

    template <class T>
    void look_up(const uint8_t *codes, int64_t n, uint8_t *out) {
        const uint32_t *const code = reinterpret_cast<const uint32_t *>(codes);
        const T *const dictionary = reinterpret_cast<const T *>(dictionary_);
        T *const values = reinterpret_cast<T *>(out);
        for (int64_t i = 0; i < n; i++) values[i] = dictionary[code[i]];
    }

    // Write the strings of the selected rows. `next(text, size)` sets the next value, and returns false if there is none.
    template <class Next>
    uint8_t *append_strings(Next &next, int32_t *ends, uint8_t *data, uint8_t *out) {
        const bool all = kept_ == rows_;
        if (values_ == rows_) {
            return all ? append_strings<false, false>(next, ends, data, out) : append_strings<false, true>(next, ends, data, out);
        }
        return all ? append_strings<true, false>(next, ends, data, out) : append_strings<true, true>(next, ends, data, out);
    }

    template <bool nulls, bool masked, class Next>
    uint8_t *append_strings(Next &next, int32_t *ends, uint8_t *data, uint8_t *out) {
        for (int64_t i = 0, k = 0; i < rows_; i++) {
            const bool keep = !masked || (mask_[i >> 6] >> (i & 63) & 1);
            if (!nulls || (valid_[i >> 6] >> (i & 63) & 1)) {
                const uint8_t *text;
                size_t size;
                if (!next(text, size)) return nullptr;
                if (keep) {
                    copy_blocks(out, text, size);
                    out += size;
                }
            }
            ends[k] = static_cast<int32_t>(out - data);
            k += keep;
        }
        return out;
    }

    // The strings of the page, in order.
    struct CodedTexts {
        const uint32_t *code;
        const int32_t *ends;
        const uint8_t *dictionary;
        bool operator()(const uint8_t *&text, size_t &size) {
            const int32_t start = ends[*code];
            text = dictionary + start;
            size = ends[*code + 1] - start;
            code++;
            return true;
        }
    };
    struct PlainTexts {
        const uint8_t *in, *const end;
        int64_t left;
        bool operator()(const uint8_t *&text, size_t &size) {
            if (end - in < 4) return false;
            size = load<uint32_t>(in);
            text = in += 4;
            left--;
            // the remaining bytes also contain the lengths, 4 bytes each, of the strings that follow
            if (size > static_cast<uint64_t>(end - in) - 4 * static_cast<uint64_t>(left)) return false;
            in += size;
            return true;
        }
    };
    CodedTexts coded_texts() { return {codes(), dictionary_offsets_, dictionary_}; }
    PlainTexts plain_texts() const { return {values_at_, end_of_values_, values_}; }

    uint8_t *coded_text(int32_t *ends, uint8_t *data, uint8_t *out) {
        CodedTexts next = coded_texts();
        return append_strings(next, ends, data, out);
    }

    uint8_t *plain_text(int32_t *ends, uint8_t *data, uint8_t *out) {
        PlainTexts next = plain_texts();
        out = append_strings(next, ends, data, out);
        return next.in == end_of_values_ ? out : nullptr;
    }

    // Return the bytes of the selected strings, -1 if the page is damaged.
    template <class Next>
    int64_t count_kept_text(Next next) const {
        int64_t total = 0;
        for (int64_t i = 0; i < rows_; i++) {
            if (values_ < rows_ && !(valid_[i >> 6] >> (i & 63) & 1)) continue;
            const uint8_t *text;
            size_t size;
            if (!next(text, size)) return -1;
            if (kept_ == rows_ || (mask_[i >> 6] >> (i & 63) & 1)) total += size;
        }
        return total;
    }

    // Read the header of a page, and move to the next page.
    bool next_header(PageHeader &page) {
        for (int64_t n = HEADER_BYTES;; n *= 16) {
            const uint8_t *const in = bytes_.header(at_, std::min(n, bytes_.size() - at_), is_passed_);
            if (!in) return false;
            const int64_t held = bytes_.held(at_);
            PageHeaderReader thrift(in, in + held);
            if (thrift.page_header(page)) {
                body_at_ = at_ + (thrift.position() - in);
                if (page.compressed > bytes_.size() - body_at_ || page.uncompressed > INT32_MAX) return false;
                at_ = body_at_ + page.compressed;
                return true;
            }
            // the header may be longer
            if (held >= bytes_.size() - at_ || n >= MOST_HEADER_BYTES) return false;
            page = PageHeader();
        }
    }

    // Return the bytes of the page of a header; nullptr, and the reason, if they can't be used.
    const uint8_t *body_of(const PageHeader &page, Status &reason) {
        const uint8_t *const body = bytes_.from(body_at_, page.compressed);
        reason = UNSUPPORTED;
        if (!body || !page.has_checksum || !checks_pages()) return body;
        if (crc32_of_page(body, page.compressed) == static_cast<uint32_t>(page.checksum)) return body;
        reason = BAD_CHECKSUM;
        return nullptr;
    }

    Status read_dictionary(const PageHeader &page) {
        Status reason;
        const uint8_t *const body = body_of(page, reason);
        return body ? dictionary_page(page, body) : reason;
    }

    // Find the selected rows of the page.
    Status find_kept() {
        kept_ = rows_;
        const int64_t first = done_ - rows_ - first_, end = stop_ - first_;
        const bool is_within = first >= 0 && first + rows_ <= end;
        if (!keep_ && is_within) return PAGE;
        if (is_within && first % 64 == 0) {
            mask_ = keep_ + first / 64;
        } else {
            uint64_t *const words = reinterpret_cast<uint64_t *>(space_.mask.room((rows_ + 63) / 64 * 8));
            if (!words) return NO_MEMORY;
            // words of a long page that are entirely outside of the range are not computed
            const int64_t begin = first < 0 ? -first / 64 * 64 : 0, stop = std::min(rows_, end - first);
            std::memset(words, 0, (rows_ + 63) / 64 * 8);
            for (int64_t i = begin; i < stop; i += 64) words[i / 64] = kept_from(first + i, end);
            mask_ = words;
        }
        kept_ = mask_count(mask_, rows_);
        // room was made for `num_kept` rows: a mask that is changed concurrently must not cause writes beyond it
        if (kept_ > kept_left_) return UNSUPPORTED;
        kept_left_ -= kept_;
        return PAGE;
    }

    // Return which of 64 rows from `first` on, relative to the range, are selected; those outside of the range are not.
    uint64_t kept_from(int64_t first, int64_t end) const {
        if (first >= end || first <= -64) return 0;
        const int64_t left_out = first < 0 ? -first : 0, at = first + left_out;
        const uint64_t all = end - at < 64 ? (UINT64_C(1) << (end - at)) - 1 : ~UINT64_C(0);
        return (keep_ ? bits_from(reinterpret_cast<const uint8_t *>(keep_), at, end) : all) << left_out;
    }

    // Return the plain bytes of a page's body, or of a part of it; nullptr if they can't be decompressed.
    const uint8_t *plain(const uint8_t *body, int64_t size, int64_t uncompressed, bool compressed, Scratch &scratch) {
        if (!compressed || codec_ == UNCOMPRESSED) return size == uncompressed ? body : nullptr;
        if (!size && !uncompressed) return body;  // a page of nulls alone
        uint8_t *const out = scratch.room(uncompressed);
        if (!out) return nullptr;
        const bool good = codec_ == SNAPPY ? (width_ ? snappy_decompress<false>(body, size, out, uncompressed)
                                                     : snappy_decompress<true>(body, size, out, uncompressed))
                          : codec_ == ZSTD ? space_.decompressors->zstd.decompress(body, size, out, uncompressed)
                          : codec_ == LZ4  ? lz4_decompress(body, size, out, uncompressed)
                          // zlib accepts streams without the header of gzip too
                          : codec_ == GZIP ? space_.decompressors->gzip.decompress(body, size, out, uncompressed) ||
                                                 decompress_foreign(body, size, out, uncompressed)
                                           : decompress_foreign(body, size, out, uncompressed);
        return good ? out : nullptr;
    }

    bool decompress_foreign(const uint8_t *body, int64_t size, uint8_t *out, int64_t uncompressed) {
        return space_.decompress && space_.decompress(space_.codec, body, size, out, uncompressed);
    }

    enum : int64_t { BIG_DICTIONARY = 1 << 20 };

    Status dictionary_page(const PageHeader &page, const uint8_t *body) {
        if (dictionary_ || (page.encoding != PLAIN && page.encoding != PLAIN_DICTIONARY)) return UNSUPPORTED;
        const int64_t count = page.num_values;
        // strings are moved together: within their block if it is large, because a second block would take long to fill
        const bool is_moved = !width_ && page.uncompressed >= BIG_DICTIONARY;
        Scratch &block = is_moved ? space_.dictionary : space_.dictionary_page;
        const uint8_t *const in = plain(body, page.compressed, page.uncompressed, true, block);
        if (count < 0 || count > INT32_MAX / 8 || !in) return UNSUPPORTED;
        if (width_) {
            if (layout_.is_bits() || page.uncompressed != count * layout_.page_bytes() || !are_in_range(in, count)) return UNSUPPORTED;
            // values are read as numbers, which have to be aligned
            uint8_t *const aligned = space_.dictionary.room(count * width_);
            if (!aligned) return NO_MEMORY;
            if (layout_.is_converted()) convert_values(layout_, in, nullptr, count, aligned);
            else std::memcpy(aligned, in, page.uncompressed);
            dictionary_ = aligned;
        } else {
            if (page.uncompressed < 4 * count) return UNSUPPORTED;
            uint8_t *const text = space_.dictionary.room(page.uncompressed);
            int32_t *const ends = reinterpret_cast<int32_t *>(space_.dictionary_ends.room((count + 1) * sizeof(int32_t)));
            if (!text || !ends) return NO_MEMORY;
            const uint8_t *p = in, *const end = in + page.uncompressed;
            int64_t used = 0;
            ends[0] = 0;
            for (int64_t i = 0; i < count; i++) {
                if (end - p < 4) return UNSUPPORTED;
                const uint32_t size = load<uint32_t>(p);
                p += 4;
                if (size > static_cast<uint64_t>(end - p)) return UNSUPPORTED;
                if (is_moved) std::memmove(text + used, p, size);
                else copy_blocks(text + used, p, size);
                p += size;
                used += size;
                ends[i + 1] = static_cast<int32_t>(used);
            }
            dictionary_ = text;
            dictionary_offsets_ = ends;
            dictionary_bytes_ = used;
        }
        dictionary_length_ = count;
        return has_value_test_ ? match_dictionary() : PAGE;
    }

    // Test each distinct value once.
    Status match_dictionary() {
        matches_ = space_.matches.room(dictionary_length_);
        if (!matches_) return NO_MEMORY;
        if (width_) {
            mark_values(dictionary_, dictionary_length_, width_, *test_, matches_);
        } else {
            for (int64_t i = 0; i < dictionary_length_; i++) {
                const int32_t start = dictionary_offsets_[i];
                matches_[i] = test_->passes(dictionary_ + start, dictionary_offsets_[i + 1] - start);
            }
        }
        const void *const first = std::memchr(matches_, 1, dictionary_length_);
        has_match_ = first != nullptr;
        only_match_ = NO_CODE;
        if (first) {
            const int64_t at = static_cast<const uint8_t *>(first) - matches_;
            if (!std::memchr(matches_ + at + 1, 1, dictionary_length_ - at - 1)) only_match_ = static_cast<uint32_t>(at);
        }
        return PAGE;
    }

    // Deselect the rows of the page that do not pass.
    Status narrow() {
        const int64_t words = (rows_ + 63) / 64;
        // in whole words: bits for the rows and for the values, and a flag for each value
        uint8_t *const room = space_.passing.room(2 * 8 * words + 64 * words);
        if (!room) return NO_MEMORY;
        uint64_t *const bits = reinterpret_cast<uint64_t *>(room), *const dense = bits + words;
        if (!has_value_test_) {
            const uint64_t flipped = test_->kind == HAS_VALUE ? 0 : ~UINT64_C(0);
            for (int64_t w = 0; w < words; w++) bits[w] = (values_ == rows_ ? ~UINT64_C(0) : valid_[w]) ^ flipped;
        } else {
            const bool has_nulls = values_ < rows_;
            if (!mark_page(room + 2 * 8 * words, has_nulls ? dense : bits)) return UNSUPPORTED;
            if (has_nulls) mask_narrow(valid_, rows_, dense, values_, bits);
            for (int64_t w = 0; has_nulls && test_->with_null && w < words; w++) bits[w] |= ~valid_[w];
        }
        for (int64_t w = 0; w < words; w++) bits[w] &= mask_of(w);
        mask_ = bits;
        kept_ = mask_count(bits, rows_);
        or_bits(passed_, done_ - rows_, bits, rows_);
        return PAGE;
    }

    // Set a bit for each of the page's values that passes; returns false if the page is damaged. `flags` has a byte for each
    // value.
    bool mark_page(uint8_t *flags, uint64_t *bits) {
        if (codes_) {
            const uint32_t *const code = codes(), only = only_match_;
            // if a single value passes, its code is compared with many codes at a time
            if (only != NO_CODE) {
                for (int64_t i = 0; i < values_; i++) flags[i] = code[i] == only;
            } else {
                for (int64_t i = 0; i < values_; i++) flags[i] = matches_[code[i]];
            }
        } else if (layout_.is_bits()) {
            mark_booleans(bits);
            return true;
        } else if (layout_.is_converted()) {
            mark_converted(flags);
        } else if (width_) {
            if (end_of_values_ - values_at_ != values_ * width_) return false;
            mark_values(values_at_, values_, width_, *test_, flags);
        } else if (!mark_texts(values_at_, end_of_values_, values_, *test_, flags)) {
            return false;
        }
        const int64_t words = (values_ + 63) / 64;
        std::memset(flags + values_, 0, 64 * words - values_);
        for (int64_t w = 0; w < words; w++) {
            uint64_t word = 0;
            for (int i = 0; i < 8; i++) word |= (load<uint64_t>(flags + 64 * w + 8 * i) * 0x0102040810204080u >> 56) << 8 * i;
            bits[w] = word;
        }
        return true;
    }

    // The same for booleans: false and true are tested once each.
    void mark_booleans(uint64_t *bits) const {
        alignas(8) static const uint8_t BOTH[16] = {0, 1};  // of a size that compilers accept for every width
        uint8_t passing[2];
        mark_values(BOTH, 2, 1, *test_, passing);
        const uint64_t of_false = passing[0] ? ~UINT64_C(0) : 0, of_true = passing[1] ? ~UINT64_C(0) : 0;
        for (int64_t w = 0; 64 * w < values_; w++) {
            const uint64_t word = load<uint64_t>(values_at_ + 8 * w);
            bits[w] = (word & of_true) | (~word & of_false);
        }
        if (values_ % 64) bits[values_ / 64] &= (UINT64_C(1) << values_ % 64) - 1;
    }

    // The same for numbers whose layout in pages differs from that in memory.
    void mark_converted(uint8_t *flags) const {
        enum : int64_t { BLOCK = 512 };  // fits into a core's cache
        alignas(Wide) uint8_t block[BLOCK * sizeof(Wide)];
        const int bytes = layout_.page_bytes();
        const ValueLayout layout{width_ > 8 && bytes <= 8 ? 8 : width_, layout_.stored};
        for (int64_t i = 0; i < values_; i += BLOCK) {
            const int64_t n = std::min<int64_t>(BLOCK, values_ - i);
            convert_values(layout, values_at_ + i * bytes, nullptr, n, block);
            mark_values(block, n, layout.width, *test_, flags + i);
        }
    }

    // Return whether numbers that take more bytes in pages than in memory fit into the latter.
    bool are_in_range(const uint8_t *in, int64_t n) const { return !layout_.is_converted() || width_ > 2 || fit_into(in, n, width_); }

    uint64_t mask_of(int64_t word) const { return keep_ ? mask_[word] : ~UINT64_C(0); }

    Status data_page(const PageHeader &page, const uint8_t *body) {
        const uint8_t *in, *end, *levels_at = nullptr, *levels_end = nullptr;
        if (is_of_levels_ && !most_) return count_values(nullptr, nullptr);
        if (page.type == DATA_PAGE_V2) {
            if (page.repetition_bytes != 0 || page.definition_bytes < 0 || page.definition_bytes > page.compressed ||
                page.definition_bytes > page.uncompressed || (most_ == 0 && page.definition_bytes)) return UNSUPPORTED;
            levels_at = body;
            levels_end = body + page.definition_bytes;
            if (is_of_levels_) return count_values(levels_at, levels_end);
            const int64_t size = page.uncompressed - page.definition_bytes;
            in = plain(levels_end, page.compressed - page.definition_bytes, size, page.is_compressed, space_.page);
            if (!in) return UNSUPPORTED;
            end = in + size;
        } else {
            int64_t size_of_page = page.uncompressed;
            in = is_of_levels_ ? plain_levels(page, body, size_of_page) : plain(body, page.compressed, page.uncompressed, true, space_.page);
            if (!in) return UNSUPPORTED;
            end = in + size_of_page;
            if (most_) {
                if (page.level_encoding != RLE || end - in < 4) return UNSUPPORTED;
                const uint32_t size = load<uint32_t>(in);
                in += 4;
                if (size > static_cast<uint64_t>(end - in)) return UNSUPPORTED;
                levels_at = in;
                levels_end = in += size;
            }
        }
        Status status = count_values(levels_at, levels_end);
        return status == PAGE && !is_of_levels_ ? find_values(page, in, end) : status;
    }

    // Return the plain bytes of a page of version 1 up to the end of its levels, or all of them, and set `size` to their
    // number.
    const uint8_t *plain_levels(const PageHeader &page, const uint8_t *body, int64_t &size) {
        if (codec_ != SNAPPY || page.uncompressed < 4) return plain(body, page.compressed, size, true, space_.page);
        uint8_t *const out = space_.page.room(size);
        if (!out || !snappy_prefix(body, page.compressed, out, page.uncompressed, 4)) return nullptr;
        size = 4 + static_cast<int64_t>(load<uint32_t>(out));
        return size <= page.uncompressed && snappy_prefix(body, page.compressed, out, page.uncompressed, size) ? out : nullptr;
    }

    // Read the definition levels, unless all are equal, and count the rows that have a value.
    Status count_values(const uint8_t *in, const uint8_t *end) {
        values_ = rows_;
        if (!most_) return PAGE;
        const int width = bit_width(most_);
        const uint32_t most = most_;
        uint32_t level;
        if (is_one_run(in, end, width, rows_, level) && level == most) return PAGE;
        const size_t size = (rows_ + 63) / 64 * 8;
        uint8_t *const bits = space_.valid.room(size);
        if (!bits) return NO_MEMORY;
        std::memset(bits, 0, size + SLACK);
        if (width == 1) {
            if (!decode_bits(in, end, rows_, bits)) return UNSUPPORTED;
        } else {
            uint32_t *const found = reinterpret_cast<uint32_t *>(space_.levels.room(rows_ * sizeof(uint32_t)));
            if (!found) return NO_MEMORY;
            if (!decode_runs(in, end, width, rows_, found)) return UNSUPPORTED;
            int64_t above = 0;
            for (int64_t i = 0; i < rows_; i++) {
                bits[i >> 3] |= static_cast<uint8_t>((found[i] == most) << (i & 7));
                above += found[i] > most;
            }
            if (above) return UNSUPPORTED;
        }
        valid_ = reinterpret_cast<const uint64_t *>(bits);
        values_ = mask_count(valid_, rows_);
        return PAGE;
    }

    Status find_values(const PageHeader &page, const uint8_t *in, const uint8_t *end) {
        values_at_ = in;
        end_of_values_ = end;
        codes_ = is_coded(page);
        if (!codes_) {
            if (layout_.is_bits()) return find_booleans(page, in, end);
            if (page.encoding != PLAIN) {
                const Status status = make_plain(page.encoding, in, end);
                if (status != PAGE) return status;
                in = values_at_;
                end = end_of_values_;
            }
            if (!layout_.is_converted()) return width_ || end - in >= 4 * values_ ? PAGE : UNSUPPORTED;
            return end - in == values_ * layout_.page_bytes() && are_in_range(in, values_) ? PAGE : UNSUPPORTED;
        }
        if (layout_.is_bits()) return UNSUPPORTED;
        code_scratch_ = space_.codes.room(rows_ * sizeof(uint32_t));
        if (!code_scratch_) return NO_MEMORY;
        if (!values_) return PAGE;
        if (!dictionary_ || in >= end || *in > 32) return UNSUPPORTED;
        if (!decode_runs(in + 1, end, *in, values_, codes())) return UNSUPPORTED;
        return are_below(codes(), values_, dictionary_length_) ? PAGE : UNSUPPORTED;
    }

    // The most bytes of the texts of a page of DELTA_BYTE_ARRAY.
    enum : int64_t { MOST_PAGE_TEXT = int64_t(64) << 20 };

    // Decode values of another encoding into PLAIN values.
    Status make_plain(int64_t encoding, const uint8_t *in, const uint8_t *end) {
        values_at_ = end_of_values_ = end;
        if (!values_) return PAGE;
        if (encoding == DELTA_LENGTH_BYTE_ARRAY && !width_) return join_texts(nullptr, in, end);
        const int bytes = layout_.page_bytes();
        if (encoding == DELTA_BYTE_ARRAY && (!width_ || layout_.stored < 0)) {
            uint8_t *const prefixes = space_.spread.room(values_ * sizeof(uint32_t));
            if (!prefixes) return NO_MEMORY;
            return decode_deltas<uint32_t>(in, end, values_, prefixes) ? join_texts(reinterpret_cast<uint32_t *>(prefixes), in, end) : UNSUPPORTED;
        }
        const bool is_split = encoding == BYTE_STREAM_SPLIT && width_, is_delta = encoding == DELTA_BINARY_PACKED && layout_.is_integer();
        if (!is_split && !is_delta) return UNSUPPORTED;
        if (is_split && end - in != values_ * bytes) return UNSUPPORTED;
        uint8_t *const out = space_.codes.room(values_ * bytes);
        if (!out) return NO_MEMORY;
        if (is_split) join_streams(in, values_, bytes, out);
        else if (!(bytes == 4 ? decode_deltas<uint32_t>(in, end, values_, out) : decode_deltas<uint64_t>(in, end, values_, out))) return UNSUPPORTED;
        if (is_delta && in != end) return UNSUPPORTED;
        values_at_ = out;
        end_of_values_ = out + values_ * bytes;
        return PAGE;
    }

    // Write texts whose lengths precede all of their bytes (DELTA_LENGTH_BYTE_ARRAY). With `prefixes`, each begins with that
    // many bytes of the text before (DELTA_BYTE_ARRAY). Numbers, which have the same length each, are written without their
    // lengths.
    Status join_texts(const uint32_t *prefixes, const uint8_t *in, const uint8_t *end) {
        uint8_t *const room = space_.looked_up.room(values_ * sizeof(uint32_t));
        if (!room) return NO_MEMORY;
        if (!decode_deltas<uint32_t>(in, end, values_, room)) return UNSUPPORTED;
        const uint32_t *const lengths = reinterpret_cast<const uint32_t *>(room);
        int64_t taken = 0, total = 0, before = 0;
        for (int64_t i = 0; i < values_; i++) {
            const int64_t prefix = prefixes ? prefixes[i] : 0;
            if (prefix > before || lengths[i] > end - in - taken) return UNSUPPORTED;
            taken += lengths[i];
            before = prefix + lengths[i];
            if (width_ && before != layout_.page_bytes()) return UNSUPPORTED;
            total += before;
            if (prefixes && total > MOST_PAGE_TEXT) return UNSUPPORTED;
        }
        if (taken != end - in) return UNSUPPORTED;
        total += width_ ? 0 : 4 * values_;
        uint8_t *out = space_.codes.room(total);
        if (!out) return NO_MEMORY;
        values_at_ = out;
        end_of_values_ = out + total;
        const uint8_t *last = out;
        for (int64_t i = 0; i < values_; i++) {
            const uint32_t prefix = prefixes ? prefixes[i] : 0, size = prefix + lengths[i];
            if (!width_) {
                std::memcpy(out, &size, 4);
                out += 4;
            }
            if (prefix) std::memcpy(out, last, prefix);
            copy_blocks(out + prefix, in, lengths[i]);
            in += lengths[i];
            last = out;
            out += size;
        }
        return PAGE;
    }

    // Read the booleans of the page, one bit for each, in whole words.
    Status find_booleans(const PageHeader &page, const uint8_t *in, const uint8_t *end) {
        const size_t size = (values_ + 63) / 64 * 8;
        uint8_t *const bits = space_.codes.room(size);
        if (!bits) return NO_MEMORY;
        values_at_ = bits;
        end_of_values_ = bits + size;
        if (!values_) return PAGE;
        std::memset(bits, 0, size + SLACK);
        if (page.encoding == PLAIN) {
            if (end - in != (values_ + 7) / 8) return UNSUPPORTED;
            std::memcpy(bits, in, end - in);
            return PAGE;
        }
        if (page.encoding != RLE || end - in < 4 || load<uint32_t>(in) != static_cast<uint64_t>(end - in - 4)) return UNSUPPORTED;
        return decode_bits(in + 4, end, values_, bits) ? PAGE : UNSUPPORTED;
    }

    // Most page headers have at most HEADER_BYTES, and none more than MOST_HEADER_BYTES.
    enum : int64_t { HEADER_BYTES = 256, MOST_HEADER_BYTES = 16 << 20 };

    Workspace &space_;
    ChunkBytes bytes_;
    const int codec_;
    const ValueLayout layout_;
    const int width_, most_;
    const int64_t num_rows_;
    const Test *const test_;
    uint64_t *const passed_;
    const bool has_value_test_, is_of_levels_;  // whether values are tested; whether only levels are read
    // the rows of the range; the mask selects at most `kept_left_` more
    const uint64_t *keep_;
    int64_t first_ = 0, stop_, kept_left_;
    // the rows up to the end of the current page, and the offset of the next page
    int64_t done_ = 0, at_ = 0;
    // the current page
    PageHeader page_;
    int64_t page_at_ = 0, body_at_ = 0;
    int64_t met_end_ = 0, decoded_end_ = 0;  // the end of the last page that was counted
    bool is_again_ = false, is_decoded_ = false, is_passed_ = false;
    int64_t rows_ = 0, values_ = 0, kept_ = 0;
    const uint64_t *mask_ = nullptr;
    bool codes_ = false;
    const uint8_t *values_at_ = nullptr, *end_of_values_ = nullptr;
    uint8_t *code_scratch_ = nullptr;
    const uint64_t *valid_ = nullptr;  // which rows have a value, unless all have one
    // the dictionary
    const uint8_t *dictionary_ = nullptr;
    const int32_t *dictionary_offsets_ = nullptr;
    int64_t dictionary_length_ = 0, dictionary_bytes_ = 0, dictionary_at_ = -1;
    uint8_t *matches_ = nullptr;  // whether each of its values passes
    enum : uint32_t { NO_CODE = 0xffffffff };
    bool has_match_ = false;
    uint32_t only_match_ = NO_CODE;  // the code of the only value that passes
};

}  // namespace delta_parquet
