// One Parquet column inside of structs, lists and maps: its values, and the levels that specify their rows (Dremel's
// encoding, Encodings.md of apache/parquet-format).
//
// A column chunk has an entry for each value, and for each null or empty struct, list or map without a value. The definition
// level of an entry is the number of optional or repeated fields around the value (its own included) that are present. Its
// repetition level is 0 at the first entry of a row, else the number, counted from outside, of the list that has a further
// element. As in chunk_reader.h, unexpected content ends in UNSUPPORTED.
#pragma once

#include "chunk_jobs.h"
#include "chunk_stream.h"

namespace delta_parquet {

// --- levels, a byte each ---

// Expand 8 numbers of `width` bits each to bytes.
template <int width>
inline uint64_t spread_bits(uint64_t x) {
    constexpr uint64_t of_8 = (UINT64_C(1) << width) - 1, of_4 = (UINT64_C(1) << 2 * width) - 1;
    constexpr uint64_t of_2 = (UINT64_C(1) << 4 * width) - 1;
    constexpr uint64_t eighths = of_8 * UINT64_C(0x0001000100010001), quarters = of_4 * UINT64_C(0x0000000100000001);
    x = (x & of_2) | (x >> 4 * width & of_2) << 32;
    x = (x & quarters) | (x >> 2 * width & quarters) << 16;
    return (x & eighths) | (x >> width & eighths) << 8;
}

// Up to 7 bytes after the last are read.
template <int width>
inline void unpack_levels(const uint8_t *in, int64_t groups, uint8_t *out) {
    for (int64_t group = 0; group < groups; group++, in += width, out += 8) {
        const uint64_t bytes = spread_bits<width>(load<uint64_t>(in));
        std::memcpy(out, &bytes, 8);
    }
}

inline void unpack_levels(int width, const uint8_t *in, int64_t groups, uint8_t *out) {
    switch (width) {
        case 1: return unpack_levels<1>(in, groups, out);
        case 2: return unpack_levels<2>(in, groups, out);
        case 3: return unpack_levels<3>(in, groups, out);
        case 4: return unpack_levels<4>(in, groups, out);
        case 5: return unpack_levels<5>(in, groups, out);
        case 6: return unpack_levels<6>(in, groups, out);
        case 7: return unpack_levels<7>(in, groups, out);
        default: return unpack_levels<8>(in, groups, out);
    }
}

// Decode `n` levels of at most `most`, from 1 to 255. Returns false if there are fewer, or higher ones. `out` has room for 7
// more.
inline bool decode_levels(const uint8_t *in, const uint8_t *end, int most, int64_t n, uint8_t *out) {
    const int width = bit_width(most);
    int64_t done = 0;
    while (done < n) {
        uint64_t head;
        if (!read_varint(in, end, head)) return false;
        const uint64_t of_run = head >> 1;
        if (of_run > (1u << 30)) return false;
        if (head & 1) {
            const uint64_t size = of_run * width;
            if (size > static_cast<uint64_t>(end - in)) return false;
            int64_t groups = (n - done + 7) / 8;
            if (groups > static_cast<int64_t>(of_run)) groups = static_cast<int64_t>(of_run);
            unpack_levels(width, in, groups, out + done);
            in += size;
            done += 8 * groups;
        } else {
            if (end <= in) return false;
            int64_t count = static_cast<int64_t>(of_run);
            if (count > n - done) count = n - done;
            std::memset(out + done, *in++, count);
            done += count;
        }
    }
    uint8_t found = 0;
    for (int64_t i = 0; i < n; i++) found = out[i] > found ? out[i] : found;
    return found <= most;
}

inline int64_t count_levels(const uint8_t *levels, int64_t n, int least) {
    int64_t total = 0;
    for (int64_t start = 0; start < n; start += 4096) {  // in parts whose counts fit the lanes of a vectorised loop
        const int64_t stop = start + 4096 < n ? start + 4096 : n;
        uint32_t some = 0;
        for (int64_t i = start; i < stop; i++) some += levels[i] >= least;
        total += some;
    }
    return total;
}

// Return which of 64 levels equal `level`, one bit each. Up to SLACK bytes after the last level are read.
inline uint64_t levels_equal(const uint8_t *levels, int level) {
#ifdef COMPACT_AVX2
    const __m128i wanted = _mm_set1_epi8(static_cast<char>(level));
    uint64_t found = 0;
    for (int i = 0; i < 4; i++) {
        const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i *>(levels + 16 * i));
        found |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(some, wanted)))) << 16 * i;
    }
    return found;
#else
    uint64_t found = 0;
    for (int i = 0; i < 64; i++) found |= static_cast<uint64_t>(levels[i] == level) << i;
    return found;
#endif
}

inline void set_bits(uint8_t *bits, int64_t n) {
    std::memset(bits, 0xff, n / 8);
    if (n % 8) bits[n / 8] = static_cast<uint8_t>((1 << n % 8) - 1);
}

// --- one column chunk ---

// One chunk to decode. The caller provides memory for `num_entries` entries: for levels, a byte each; for numbers, or for one
// more end than strings; for validity bits, all zero; and for `room` bytes of strings. It is replaced if the rows of a range
// have more entries.
struct NestedJob {
    int64_t offset = 0, size = 0, num_entries = 0, room = 0;
    // Bytes of a value in `out`: 4 or 8, 0 for strings, 16 for decimals, 1 for booleans; and bytes of a decimal in the file,
    // 1 to 16.
    int codec = UNCOMPRESSED, width = 0, decimal_bytes = 0;
    // Levels of a value; and the least definition level of entries with a slot: elements of the innermost list, or rows.
    int most_definition = 0, most_repetition = 0, slot_definition = 0;
    void *decompressor = nullptr;
    uint8_t *out = nullptr, *bits = nullptr, *definitions = nullptr, *repetitions = nullptr, *text = nullptr;
    // results
    Status status = UNSUPPORTED;
    int64_t entries = 0, slots = 0, nulls = 0, used = 0;
    Text grown;  // the strings, if they exceeded `room`
    Text grown_out, grown_bits, grown_definitions, grown_repetitions;

    int64_t out_bytes(int64_t n) const { return width ? n * width : (n + 1) * static_cast<int64_t>(sizeof(int32_t)); }

    // Make room for `n` entries and some more.
    bool grow(int64_t n) {
        n += n / 4;
        if (!grown_out.grow(out_bytes(n), out, out_bytes(slots))) return false;
        out = grown_out.data();
        if (!grown_bits.grow((n + 7) / 8, bits, (slots + 7) / 8)) return false;
        bits = grown_bits.data();
        std::memset(bits + (slots + 7) / 8, 0, (n + 7) / 8 - (slots + 7) / 8 + SLACK);
        if (!grown_definitions.grow(n, definitions, entries)) return false;
        definitions = grown_definitions.data();
        if (most_repetition && !grown_repetitions.grow(n, repetitions, entries)) return false;
        if (most_repetition) repetitions = grown_repetitions.data();
        num_entries = n;
        return true;
    }
};

constexpr int BOOLEANS = 1, DECIMALS = 16;

// A decimal of Arrow: a number of 128 bits, low word first.
struct Decimal {
    uint64_t low = 0, high = 0;
};

// Read a number of 1 to 16 bytes, most significant byte first.
inline Decimal load_decimal(const uint8_t *in, int bytes) {
    Decimal found;
    found.low = found.high = *in & 0x80 ? ~UINT64_C(0) : 0;
    for (int i = 0; i < bytes; i++) {
        found.high = found.high << 8 | found.low >> 56;
        found.low = found.low << 8 | in[i];
    }
    return found;
}

class NestedReader : private ChunkReader {
   public:
    // See ChunkReader; `job` specifies the chunk.
    NestedReader(Workspace &space, const ChunkBytes &bytes, int64_t num_rows, int64_t most_text, const NestedJob &job)
        : ChunkReader(space, bytes, job.codec, ValueLayout{stored_width(job)}, job.most_definition, num_rows, nullptr, 0),
          most_text_(most_text), entries_left_(job.num_entries) {}

    // Decode the rows from `first`, which follow the rows decoded before, up to `stop`. The first bit of the mask is that of
    // row `first`.
    Status run(int64_t first, int64_t stop, const uint64_t *keep, NestedJob &job) {
        job_ = &job;
        entries_seen_ = 0;
        if (!job.width) {
            reinterpret_cast<int32_t *>(job.out)[0] = 0;
            if (!job.text && !job.grown.grow(0, nullptr, 0)) return NO_MEMORY;
            data_ = job.text ? job.text : job.grown.data();
            room_ = job.text ? job.room : 0;
        }
        Status status = begin(first, stop, keep, 0);
        if (status != PAGE) return status;
        // of lists, only the next page specifies the end of the last row
        while (entries_left_ > 0 && rows_begun_ < stop + is_repeated()) {
            page_at_ = at_;
            page_ = PageHeader();
            if (!next_header(page_)) return UNSUPPORTED;
            if (page_.type == DICTIONARY_PAGE) {
                dictionary_at_ = page_at_;
                if ((status = read_dictionary(page_)) != PAGE) return status;
            }
            // pages of other types contain no rows
            if ((page_.type != DATA_PAGE && page_.type != DATA_PAGE_V2) || page_.num_values == 0) continue;
            if (page_.num_values < 0) return UNSUPPORTED;
            if (page_.num_values > entries_left_) return DAMAGED;
            n_ = page_.num_values;
            count_met();
            entries_left_ -= n_;
            entries_seen_ += n_;
            rows_before_ = rows_begun_;
            const bool is_kept = has_kept();
            pass_over(!is_kept);
            if (is_kept && (status = entries_page(page_)) != PAGE) return status;
        }
        if (rows_begun_ < stop) return UNSUPPORTED;
        if (rows_begun_ > stop) {  // the page has rows of the next range, and is read again for it
            at_ = page_at_;
            rows_begun_ = rows_before_;
            entries_left_ += n_;
        }
        return DONE;
    }

    using ChunkReader::drop_dictionary;
    void forget_bytes() { bytes_.forget(); }

   private:
    static int stored_width(const NestedJob &job) { return job.width == DECIMALS ? job.decimal_bytes : job.width; }
    bool is_repeated() const { return job_->most_repetition > 0; }
    bool is_kept(int64_t row) const {
        return row >= first_ && row < stop_ && (!keep_ || (keep_[(row - first_) >> 6] >> ((row - first_) & 63) & 1));
    }

    // Return whether a row in [from, to] is selected; at most 64 rows. -1 is the row before the first.
    bool any_kept(int64_t from, int64_t to) const {
        from = std::max(from, first_) - first_;
        to = std::min(to, stop_ - 1) - first_;
        if (to < from) return false;
        if (!keep_) return true;
        const uint64_t after = ~UINT64_C(0) << (from & 63), before = ~UINT64_C(0) >> (63 - (to & 63));
        if (from >> 6 == to >> 6) return keep_[from >> 6] & after & before;
        return (keep_[from >> 6] & after) | (keep_[to >> 6] & before);
    }

    // Return whether the page may have a selected row, by its header alone. If not, its rows are skipped.
    bool has_kept() {
        if (is_repeated() || n_ > num_rows_ - rows_begun_) return true;
        const int64_t end = std::min(rows_begun_ + n_, stop_);
        for (int64_t row = std::max(rows_begun_, first_); row < end; row++) {
            if (is_kept(row)) return true;
        }
        rows_begun_ += n_;
        return false;
    }

    Status entries_page(const PageHeader &page) {
        Status reason;
        const uint8_t *const body = body_of(page, reason);
        if (!body) return reason;
        const uint8_t *in, *end, *repetitions = nullptr, *definitions = nullptr;
        int64_t repetition_bytes = 0, definition_bytes = 0;
        const bool is_v2 = page.type == DATA_PAGE_V2, in_parts = !is_v2 && is_repeated() && most_ && keep_ && codec_ == SNAPPY;
        if (is_v2) {
            repetition_bytes = page.repetition_bytes, definition_bytes = page.definition_bytes;
            if (repetition_bytes < 0 || definition_bytes < 0 || repetition_bytes > page.compressed ||
                definition_bytes > page.compressed - repetition_bytes || repetition_bytes + definition_bytes > page.uncompressed ||
                (!is_repeated() && repetition_bytes) || (!most_ && definition_bytes)) return UNSUPPORTED;
            repetitions = body;
            definitions = body + repetition_bytes;
            in = end = definitions + definition_bytes;
        } else {
            // of a page without a selected row only the levels are decompressed
            in = in_parts ? levels_of(page, body) : plain(body, page.compressed, page.uncompressed, true, space_.page);
            if (!in) return UNSUPPORTED;
            end = in + page.uncompressed;
            if (is_repeated() && (page.repetition_encoding != RLE || !sized(in, end, repetitions, repetition_bytes))) return UNSUPPORTED;
            if (most_ && (page.level_encoding != RLE || !sized(in, end, definitions, definition_bytes))) return UNSUPPORTED;
        }
        // both levels of each entry, and a flag for each value: whether it is selected
        uint8_t *const levels = space_.levels.room(3 * (n_ + SLACK));
        if (!levels) return NO_MEMORY;
        uint8_t *const defined = levels, *const repeated = levels + n_ + SLACK;
        flags_ = repeated + n_ + SLACK;
        if (!most_) std::memset(defined, 0, n_);
        else if (!decode_levels(definitions, definitions + definition_bytes, most_, n_, defined)) return UNSUPPORTED;
        if (is_repeated() &&
            !decode_levels(repetitions, repetitions + repetition_bytes, job_->most_repetition, n_, repeated)) return UNSUPPORTED;
        if (job_->entries + n_ > job_->num_entries && !job_->grow(job_->entries + n_)) return NO_MEMORY;
        const Status status = keep_entries(defined, repeated);
        if (status != PAGE) return status;
        if (!kept_) return PAGE;
        count_decoded();
        if (in_parts) {  // the levels were copied
            const int64_t taken = 8 + repetition_bytes + definition_bytes;
            in = plain(body, page.compressed, page.uncompressed, true, space_.page);
            if (!in) return UNSUPPORTED;
            end = in + page.uncompressed;
            in += taken;
        }
        if (is_v2) {
            const int64_t taken = repetition_bytes + definition_bytes, size = page.uncompressed - taken;
            in = plain(in, page.compressed - taken, size, page.is_compressed, space_.page);
            if (!in) return UNSUPPORTED;
            end = in + size;
        }
        return append(page, in, end);
    }

    // Decompress the levels of a page only; nullptr if they can't be decompressed.
    const uint8_t *levels_of(const PageHeader &page, const uint8_t *body) {
        uint8_t *const out = space_.page.room(page.uncompressed);
        if (!out) return nullptr;
        for (int64_t at = 0, part = 0; part < 2; part++) {
            if (at + 4 > page.uncompressed || !snappy_prefix(body, page.compressed, out, page.uncompressed, at + 4)) return nullptr;
            at += 4 + static_cast<int64_t>(load<uint32_t>(out + at));
            if (at > page.uncompressed || !snappy_prefix(body, page.compressed, out, page.uncompressed, at)) return nullptr;
        }
        return out;
    }

    // Read bytes that are preceded by their number.
    static bool sized(const uint8_t *&in, const uint8_t *end, const uint8_t *&found, int64_t &size) {
        if (end - in < 4) return false;
        size = load<uint32_t>(in);
        in += 4;
        if (size > end - in) return false;
        found = in;
        in += size;
        return true;
    }

    // Append the levels of the entries in selected rows; count these entries, their slots and their values.
    Status keep_entries(const uint8_t *defined, const uint8_t *repeated) {
        page_definitions_ = job_->definitions + job_->entries;
        uint8_t *const repetitions = job_->repetitions + job_->entries;
        values_ = count_levels(defined, n_, most_);
        const int64_t rows = is_repeated() ? n_ - count_levels(repeated, n_, 1) : n_;
        if (rows > num_rows_ - rows_begun_) return DAMAGED;
        if (is_repeated() && !rows_begun_ && repeated[0]) return UNSUPPORTED;
        const int64_t first_row = rows_begun_ - (is_repeated() && repeated[0]);
        if (!keep_ && first_row >= first_ && rows_begun_ + rows <= stop_) {
            std::memcpy(page_definitions_, defined, n_);
            if (is_repeated()) std::memcpy(repetitions, repeated, n_);
            kept_ = n_;
            kept_values_ = values_;
        } else {
            int64_t row = rows_begun_ - 1, k = 0, v = 0, kept_values = 0;
            std::memset(flags_, 0, values_);
            for (int64_t start = 0; start < n_; start += 64) {
                const int64_t stop = start + 64 < n_ ? start + 64 : n_;
                const uint64_t all = ~UINT64_C(0) >> (64 - (stop - start));
                const uint64_t begins = is_repeated() ? levels_equal(repeated + start, 0) & all : all;
                const uint64_t has_value = levels_equal(defined + start, most_) & all;
                const int64_t last = row + __builtin_popcountll(begins);
                if (!any_kept(row, last)) {
                    v += __builtin_popcountll(has_value);
                    row = last;
                    continue;
                }
                for (int64_t i = 0; i < stop - start; i++) {
                    row += begins >> i & 1;
                    const bool keep = is_kept(row), is_value = has_value >> i & 1;
                    page_definitions_[k] = defined[start + i];
                    if (is_repeated()) repetitions[k] = repeated[start + i];
                    k += keep;
                    flags_[v] = keep;
                    v += is_value;
                    kept_values += keep & is_value;
                }
            }
            kept_ = k;
            kept_values_ = kept_values;
        }
        rows_begun_ += rows;
        page_slots_ = count_levels(page_definitions_, kept_, job_->slot_definition);
        job_->entries += kept_;
        return PAGE;
    }

    Status append(const PageHeader &page, const uint8_t *in, const uint8_t *end) {
        codes_ = is_coded(page);
        if (codes_) {
            const Status status = find_codes(in, end);
            if (status != PAGE) return status;
        } else if (job_->width == BOOLEANS) {
            if (!(in = booleans(page, in, end))) return UNSUPPORTED;
        } else if (page.encoding != PLAIN || (job_->width ? end - in != values_ * width_ : end - in < 4 * values_)) {
            return UNSUPPORTED;
        }
        const int bytes = job_->decimal_bytes;
        const Status status = !job_->width       ? append_text(in, end)
                              : job_->width == 4 ? append_fixed<uint32_t>(in, [](const uint8_t *at) { return load<uint32_t>(at); })
                              : job_->width == 8 ? append_fixed<uint64_t>(in, [](const uint8_t *at) { return load<uint64_t>(at); })
                              : job_->width == DECIMALS
                                  ? append_fixed<Decimal>(in, [bytes](const uint8_t *at) { return load_decimal(at, bytes); })
                                  : append_fixed<uint8_t>(in, [](const uint8_t *at) { return *at; });
        if (status != PAGE) return status;
        append_bits();
        job_->slots += page_slots_;
        return PAGE;
    }

    // Return the booleans of the page, a byte each; nullptr if their number differs from that of the values.
    const uint8_t *booleans(const PageHeader &page, const uint8_t *in, const uint8_t *end) {
        uint8_t *const out = space_.codes.room(values_ + SLACK);
        if (!out || !values_) return out;
        if (page.encoding == PLAIN) {
            if (end - in != (values_ + 7) / 8) return nullptr;
            for (int64_t i = 0; i < values_; i++) out[i] = in[i >> 3] >> (i & 7) & 1;
            return out;
        }
        const uint8_t *runs;
        int64_t size;
        if (page.encoding != RLE || !sized(in, end, runs, size) || in != end) return nullptr;
        return decode_levels(runs, end, 1, values_, out) ? out : nullptr;
    }

    Status find_codes(const uint8_t *in, const uint8_t *end) {
        if (job_->width == BOOLEANS) return UNSUPPORTED;
        code_scratch_ = space_.codes.room(values_ * sizeof(uint32_t));
        if (!code_scratch_) return NO_MEMORY;
        if (!values_) return PAGE;
        if (!dictionary_ || in >= end || *in > 32 || !decode_runs(in + 1, end, *in, values_, codes())) return UNSUPPORTED;
        const uint32_t *const code = codes();
        uint32_t most = 0;
        for (int64_t i = 0; i < values_; i++) most = code[i] > most ? code[i] : most;
        return most < dictionary_length_ ? PAGE : UNSUPPORTED;
    }

    // Move the selected values, which are dense, to the slots that have a value; the other slots become `none`.
    template <class T, class None>
    void to_slots(const T *values, T *out, None none) const {
        for (int64_t i = 0, v = 0, s = 0; i < kept_; i++) {
            const bool has_value = page_definitions_[i] == most_;
            out[s] = has_value ? values[v] : none(out + s);
            v += has_value;
            s += page_definitions_[i] >= job_->slot_definition;
        }
    }

    // Append values of a fixed width; `value` reads one from its place in the page or the dictionary.
    template <class T, class Value>
    Status append_fixed(const uint8_t *in, Value value) {
        T *const out = reinterpret_cast<T *>(job_->out) + job_->slots;
        const bool is_dense = kept_values_ == page_slots_;
        T *const dense = is_dense ? out : reinterpret_cast<T *>(space_.spread.room((kept_values_ + 1) * sizeof(T)));
        if (!dense) return NO_MEMORY;
        const bool all = kept_values_ == values_;
        if (codes_) {
            const uint32_t *const code = codes();
            for (int64_t i = 0, k = 0; i < values_; i++) {
                dense[k] = value(dictionary_ + code[i] * static_cast<int64_t>(width_));
                k += all || flags_[i];
            }
        } else if (all && sizeof(T) == static_cast<size_t>(width_) && job_->width != DECIMALS) {
            std::memcpy(dense, in, values_ * sizeof(T));
        } else {
            for (int64_t i = 0, k = 0; i < values_; i++) {
                dense[k] = value(in + i * width_);
                k += all || flags_[i];
            }
        }
        if (!is_dense) to_slots(dense, out, [](T *) { return T(); });
        return PAGE;
    }

    Status append_text(const uint8_t *in, const uint8_t *end) {
        int32_t *const ends = reinterpret_cast<int32_t *>(job_->out) + job_->slots + 1;
        const bool is_dense = kept_values_ == page_slots_;
        int32_t *const dense = is_dense ? ends : reinterpret_cast<int32_t *>(space_.spread.room((kept_values_ + 1) * sizeof(int32_t)));
        if (!dense) return NO_MEMORY;
        const int64_t more = codes_ ? coded_bytes() : end - in - 4 * values_;
        if (more > most_text_ - job_->used) return UNSUPPORTED;
        if (job_->used + more > room_) {
            // an estimate for all entries from those read so far, and a little more: doubling would take twice as much fresh
            // memory
            const double share = std::max(1.1, 1.02 * static_cast<double>(job_->num_entries) / entries_seen_);
            const double expected = std::min<double>(most_text_, share * static_cast<double>(job_->used + more));
            room_ = std::max(job_->used + more, static_cast<int64_t>(expected));
            if (!job_->grown.grow(room_, data_, job_->used)) return NO_MEMORY;
            data_ = job_->grown.data();
        }
        if (codes_) coded_text(dense);
        else if (!plain_text(in, end, dense)) return UNSUPPORTED;
        // the end of a slot without a string is that of the slot before
        if (!is_dense) to_slots(dense, ends, [](int32_t *slot) { return slot[-1]; });
        return PAGE;
    }

    int64_t coded_bytes() {
        int64_t total = 0;
        for (int64_t i = 0; i < values_; i++) {
            total += dictionary_offsets_[codes()[i] + 1] - dictionary_offsets_[codes()[i]];
        }
        return total;
    }

    void coded_text(int32_t *ends) {
        const bool all = kept_values_ == values_;
        int64_t used = job_->used;
        for (int64_t i = 0, k = 0; i < values_; i++) {
            if (!all && !flags_[i]) continue;
            const int32_t start = dictionary_offsets_[codes()[i]], size = dictionary_offsets_[codes()[i] + 1] - start;
            copy_blocks(data_ + used, dictionary_ + start, size);
            used += size;
            ends[k++] = static_cast<int32_t>(used);
        }
        job_->used = used;
    }

    bool plain_text(const uint8_t *in, const uint8_t *end, int32_t *ends) {
        const bool all = kept_values_ == values_;
        int64_t used = job_->used;
        for (int64_t i = 0, k = 0; i < values_; i++) {
            if (end - in < 4) return false;
            const uint32_t size = load<uint32_t>(in);
            in += 4;
            // the remaining bytes also contain the lengths, 4 bytes each, of the strings that follow
            if (static_cast<int64_t>(size) > end - in - 4 * (values_ - 1 - i)) return false;
            if (all || flags_[i]) {
                copy_blocks(data_ + used, in, size);
                used += size;
                ends[k++] = static_cast<int32_t>(used);
            }
            in += size;
        }
        job_->used = used;
        return in == end;
    }

    // Set the validity bits of the slots that have a value. Nothing is written before the first null.
    void append_bits() {
        const int64_t nulls = page_slots_ - kept_values_;
        if (!nulls && !job_->nulls) return;
        if (!job_->nulls) set_bits(job_->bits, job_->slots);
        for (int64_t i = 0, s = job_->slots; i < kept_; i++) {
            const bool has_value = page_definitions_[i] == most_;
            job_->bits[s >> 3] |= static_cast<uint8_t>(has_value << (s & 7));
            s += page_definitions_[i] >= job_->slot_definition;
        }
        job_->nulls += nulls;
    }

    NestedJob *job_ = nullptr;
    const int64_t most_text_;
    int64_t entries_left_, rows_begun_ = 0, rows_before_ = 0, entries_seen_ = 0;
    // the current page: its entries, and those in selected rows; `values_` counts all values
    int64_t n_ = 0, kept_values_ = 0, page_slots_ = 0;
    uint8_t *flags_ = nullptr, *page_definitions_ = nullptr;
    uint8_t *data_ = nullptr;
    int64_t room_ = 0;
};

inline void run_nested(Workspace &space, const Source &source, int64_t num_rows, const uint64_t *keep, int64_t most_text,
                       NestedJob *jobs, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        NestedJob &job = jobs[i];
        space.codec = job.decompressor;
        const ChunkBytes bytes(space.chunk, source, job.offset, job.size, WINDOW_BYTES);
        job.status = NestedReader(space, bytes, num_rows, most_text, job).run(0, num_rows, keep, job);
    }
}

// A chunk that is decoded in consecutive ranges of rows; see ChunkStream. Of lists, a page with rows of two ranges is read
// twice.
class NestedStream : private KeptSpace {
   public:
    NestedStream(const Source &source, const NestedJob &job, int64_t num_rows, int64_t window, int64_t most_kept, int64_t most_text)
        : KeptSpace(job.decompressor, most_kept),
          reader_(space_, ChunkBytes(space_.chunk, source, job.offset, job.size, window), num_rows, most_text, job) {}

    // Decode the rows from `first`, which follow the rows decoded before, up to `stop`. `keep` is a mask of these rows.
    void run(Workspace &space, int64_t first, int64_t stop, const uint64_t *keep, NestedJob &job) {
        space_.swap_page(space);
        work_like(space);
        job.status = reader_.run(first, stop, keep, job);
        reader_.forget_bytes();
        space_.swap_page(space);
        drop_big_dictionary(reader_);
    }

   private:
    NestedReader reader_;
};

// --- lists and structs around the values ---

// A list or struct around values. Entries with a definition level of at least `slot` have a slot of it, with one of at least
// `there` it is not null, and with one of at least `element` a list has an element. `repetition` is the level of the list's
// elements, or of the struct.
struct Around {
    int repetition = 0, slot = 0, there = 0, element = 0;
    // results
    int64_t slots = 0, elements = 0, nulls = 0;
};

// Find the ends of the lists, `slots` + 1 numbers from 0 on, and their validity, bits that were zero. Returns false for
// levels that are invalid for lists. Both outputs have room for one more than the entries.
inline bool find_lists(const uint8_t *definitions, const uint8_t *repetitions, int64_t n, Around &list, int32_t *ends,
                       uint8_t *bits) {
    const int repetition = list.repetition, slot = list.slot, there = list.there, element = list.element;
    int64_t slots = 0, elements = 0, nulls = 0;
    bool is_open = false, bad = false;
    ends[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int defined = definitions[i], repeated = repetitions[i];
        if (repeated > repetition) {  // of an inner list
            bad |= !is_open;
            continue;
        }
        const bool begins = (repeated < repetition) & (defined >= slot), has_element = defined >= element;
        bad |= (repeated == repetition) & !(is_open & has_element);
        is_open = has_element;
        bits[slots >> 3] |= static_cast<uint8_t>((begins & (defined >= there)) << (slots & 7));
        nulls += begins & (defined < there);
        slots += begins;
        elements += has_element;
        ends[slots] = static_cast<int32_t>(elements);
    }
    list.slots = slots;
    list.elements = elements;
    list.nulls = nulls;
    return !bad && ends[0] == 0;
}

// Find the validity of the structs, bits that were zero. `repetitions` is nullptr if the struct contains no list.
inline void find_structs(const uint8_t *definitions, const uint8_t *repetitions, int64_t n, Around &around, uint8_t *bits) {
    int64_t slots = 0, nulls = 0;
    if (!repetitions && count_levels(definitions, n, around.there) == n) {
        around.slots = n;
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const bool has_slot = definitions[i] >= around.slot && (!repetitions || repetitions[i] <= around.repetition);
        if (!has_slot) continue;
        const bool is_there = definitions[i] >= around.there;
        bits[slots >> 3] |= static_cast<uint8_t>(is_there << (slots & 7));
        nulls += !is_there;
        slots++;
    }
    around.slots = slots;
    around.nulls = nulls;
}

}  // namespace delta_parquet
