// Pages of versions 2.1 and 2.2 from collected rows: the encoding is chosen by what the values are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "fsst_encoder.h"
#include "page_source.h"
#include "pages.h"

namespace delta_lance {

// A function of the caller that compresses n bytes with a scheme (codings.h) to `out`, which has room for `size`; it returns
// how many bytes it wrote, or -1.
using Zip = int64_t (*)(void *state, int scheme, const uint8_t *in, int64_t n, uint8_t *out, int64_t size);

struct WriteOptions {
    bool has_constants = false;   // pages of one value that is not null
    bool has_large_chunks = false;
    int scheme = 0;               // compression of values; 0 = none
    int structure = 0;            // 0 by the values, 1 mini-blocks, 3 full-zip
    bool wants_fsst = true, needs_fsst = false;
    bool splits_bytes = false;    // floating-point numbers by planes of bytes, before they are compressed
    double run_threshold = 0.5;   // runs per value, at most
    uint64_t chunk_bytes = 8192;  // of the values of a mini-block, about
    bool wants_dictionary = false;    // dictionaries even if values are compressed
    double dictionary_divisor = 4;    // values for each distinct one, at least
    double dictionary_ratio = 0;      // bytes of codes and dictionary for each byte of values, at most; 0 = as the values suggest
    int dictionary_scheme = 0;        // compression of dictionaries
    Zip zip = nullptr;
    void *state = nullptr, *dictionary_state = nullptr;
};

// A page as it is written; what its layout specifies.
struct PageOut {
    int layout = 0;
    std::vector<int> layers;
    int rep_bits = 0, def_bits = 0;  // of packed levels; 16 = not packed, 0 = none
    int value = 0;                   // a CodingKind
    uint64_t value_bits = 0;
    int scheme = 0;
    bool has_dictionary = false;
    int dictionary_scheme = 0;
    uint64_t num_dictionary_items = 0, num_rows = 0;
    uint64_t num_buffers = 0, num_items = 0, num_entries = 0;
    std::vector<uint8_t> table;      // of FSST
    std::vector<uint8_t> constant;   // an inline value
    bool has_constant = false;
    uint64_t bits_per_offset = 0, bits_per_value = 0;  // of full-zip
    std::vector<bool> list_validity;
    std::vector<Block> buffers;
};

// Bits that levels of at most `most` need.
inline int bits_for(uint64_t most) {
    int bits = 0;
    while (bits < 64 && most >> bits) bits++;
    return bits;
}

// --- levels ---

// Pack levels to blocks of 1,024; the last one is stored as it is if that is not longer.
inline bool pack_levels(const uint16_t *levels, uint64_t n, int bits, Block &out) {
    if (bits == 16) return out.append(reinterpret_cast<const uint8_t *>(levels), 2 * n);
    const unsigned width = static_cast<unsigned>(bits);
    uint64_t i = 0;
    for (; i + FASTLANES_VALUES <= n; i += FASTLANES_VALUES) {
        if (!out.reserve_more(UINT64_C(128) * width)) return false;
        pack_fastlanes<uint16_t>(width, levels + i, out.end());
        out.add_size(UINT64_C(128) * width);
    }
    const uint64_t rest = n - i;
    if (!rest) return true;
    if (2 * rest <= UINT64_C(128) * width) return out.append(reinterpret_cast<const uint8_t *>(levels + i), 2 * rest);
    uint16_t block[FASTLANES_VALUES] = {};
    std::memcpy(block, levels + i, 2 * rest);
    if (!out.reserve_more(UINT64_C(128) * width)) return false;
    pack_fastlanes<uint16_t>(width, block, out.end());
    out.add_size(UINT64_C(128) * width);
    return true;
}

// --- values of mini-blocks ---

// Encodes values of a page, chunk after chunk.
class ChunkCoder {
   public:
    static constexpr uint64_t MOST_VALUES = 4096;
    virtual ~ChunkCoder() = default;
    virtual unsigned num_buffers() const { return 1; }
    // How many values the chunk from `first` on should have, a power of two.
    virtual uint64_t count_at(uint64_t first) const = 0;
    // Values of the last chunk, at most.
    virtual uint64_t most() const { return MOST_VALUES; }
    virtual bool put(uint64_t first, uint64_t n, Block *buffers) = 0;
};

// The greatest power of two of values that take at most `aim` bytes.
inline uint64_t power_for(uint64_t aim, uint64_t bits_per_value, uint64_t most) {
    uint64_t n = 2;
    while (n < most && n * 2 * bits_per_value <= aim * 8) n *= 2;
    return n;
}

class FlatCoder : public ChunkCoder {
   public:
    FlatCoder(PageSource &source, bool splits, uint64_t aim) : source_(source), splits_(splits) {
        const uint64_t bits = source.bits * source.list_items;
        count_ = power_for(aim, bits ? bits : 1, MOST_VALUES);
        for (Bits &valid : source.values.validity) stored_ += valid.zeros() != 0;
    }
    unsigned num_buffers() const override { return 1 + stored_; }
    uint64_t count_at(uint64_t) const override { return count_; }
    uint64_t most() const override { return count_; }
    bool put(uint64_t first, uint64_t n, Block *buffers) override {
        uint64_t inner = 1;
        for (size_t k = 0; k < source_.list_sizes.size(); k++) {
            inner *= source_.list_sizes[k];
            Bits &valid = source_.values.validity[k];
            if (!valid.zeros()) continue;
            if (!put_bits(*buffers++, valid.block().data(), first * inner, n * inner)) return false;
        }
        const uint64_t count = n * source_.list_items, start = first * source_.list_items;
        if (source_.bits == 1) return put_bits(*buffers, source_.values.fixed.data(), start, count);
        const uint64_t width = source_.bits / 8;
        const uint8_t *const from = source_.values.fixed.data() + start * width;
        if (!splits_) return buffers->append(from, count * width);
        if (!buffers->reserve_more(count * width)) return false;
        for (uint64_t k = 0; k < width; k++)
            for (uint64_t i = 0; i < count; i++) buffers->end()[k * count + i] = from[i * width + k];
        buffers->add_size(count * width);
        return true;
    }

   private:
    static bool put_bits(Block &out, const uint8_t *from, uint64_t first, uint64_t n) {
        const uint64_t at = out.size() * 8;
        if (!out.append_zeros((n + 7) / 8)) return false;
        copy_bits(out.data(), at, from, first, n);
        return true;
    }
    PageSource &source_;
    bool splits_;
    uint64_t count_;
    unsigned stored_ = 0;
};

template <class T>
class InlineCoder : public ChunkCoder {
   public:
    explicit InlineCoder(const T *values) : values_(values) {}
    uint64_t count_at(uint64_t) const override { return FASTLANES_VALUES; }
    uint64_t most() const override { return FASTLANES_VALUES; }
    static unsigned width_of(const T *values, uint64_t n) {
        T all = 0;
        for (uint64_t i = 0; i < n; i++) all = static_cast<T>(all | values[i]);
        return static_cast<unsigned>(bits_for(all));
    }
    bool put(uint64_t first, uint64_t n, Block *buffers) override {
        const unsigned width = width_of(values_ + first, n);
        if (!buffers->append_value(static_cast<T>(width)) || !buffers->reserve_more(UINT64_C(128) * width)) return false;
        if (n == FASTLANES_VALUES) {
            pack_fastlanes<T>(width, values_ + first, buffers->end());
        } else {
            T block[FASTLANES_VALUES] = {};
            std::memcpy(block, values_ + first, n * sizeof(T));
            pack_fastlanes<T>(width, block, buffers->end());
        }
        buffers->add_size(UINT64_C(128) * width);
        return true;
    }

   private:
    const T *values_;
};

template <class T>
class RunCoder : public ChunkCoder {
   public:
    explicit RunCoder(const T *values) : values_(values) {}
    static constexpr uint64_t COUNT = 2048, MOST_RUN = 255;
    unsigned num_buffers() const override { return 2; }
    uint64_t count_at(uint64_t) const override { return COUNT; }
    uint64_t most() const override { return COUNT; }
    bool put(uint64_t first, uint64_t n, Block *buffers) override {
        const uint64_t end = first + n;
        for (uint64_t i = first; i < end;) {
            uint64_t next = i + 1;
            while (next < end && next - i < MOST_RUN && values_[next] == values_[i]) next++;
            if (!buffers[0].append_value(values_[i]) || !buffers[1].append_value(static_cast<uint8_t>(next - i))) return false;
            i = next;
        }
        return true;
    }
    // Bytes of runs; each chunk begins a run.
    static uint64_t bytes_of(const T *values, uint64_t n, uint64_t &runs) {
        runs = 0;
        for (uint64_t at = 0; at < n; at += COUNT) {
            const uint64_t end = std::min(at + COUNT, n);
            uint64_t begin = at;
            for (uint64_t i = at; i < end; i++) {
                if (i + 1 < end && values[i + 1] == values[i]) continue;
                runs += (i - begin) / MOST_RUN + 1;
                begin = i + 1;
            }
        }
        return runs * (sizeof(T) + 1);
    }

   private:
    const T *values_;
};

// Values of any length: offsets from the beginning of the buffer, then bytes.
class TextCoder : public ChunkCoder {
   public:
    TextCoder(const uint32_t *offsets, const uint8_t *text, uint64_t n, bool is_wide, uint64_t aim)
        : offsets_(offsets), text_(text), n_(n), width_(is_wide ? 8 : 4), aim_(aim) {
        const uint64_t bytes = offsets[n] - offsets[0] + width_ * n;
        count_ = power_for(aim, n ? 8 * (bytes / n + 1) : 8, MOST_VALUES);
    }
    // Values longer than this are not stored in mini-blocks.
    static constexpr uint64_t MOST_LENGTH = 4096;
    uint64_t count_at(uint64_t first) const override {
        uint64_t n = count_;
        while (n > 2 && bytes(first, std::min(n, n_ - first)) > 2 * aim_) n /= 2;
        return n;
    }
    bool put(uint64_t first, uint64_t n, Block *buffers) override {
        const uint64_t head = width_ * (n + 1), size = bytes(first, n), padded = (size + width_ - 1) / width_ * width_;
        if (!buffers->reserve_more(padded)) return false;
        uint8_t *const to = buffers->end();
        const uint32_t base = offsets_[first];
        if (width_ == 4) {
            for (uint64_t i = 0; i <= n; i++) {
                const uint32_t at = static_cast<uint32_t>(offsets_[first + i] - base + head);
                std::memcpy(to + 4 * i, &at, 4);
            }
        } else {
            for (uint64_t i = 0; i <= n; i++) {
                const uint64_t at = offsets_[first + i] - base + head;
                std::memcpy(to + 8 * i, &at, 8);
            }
        }
        if (size > head) std::memcpy(to + head, text_ + base, size - head);
        std::memset(to + size, 0, padded - size);
        buffers->add_size(padded);
        return true;
    }

   private:
    uint64_t bytes(uint64_t first, uint64_t n) const { return width_ * (n + 1) + offsets_[first + n] - offsets_[first]; }
    const uint32_t *offsets_;
    const uint8_t *text_;
    uint64_t n_, width_, aim_, count_;
};

// Finds the number of each distinct value of a page, if they are few. Values are keys of 64 bits, or bytes.
class DistinctValues {
   public:
    std::vector<uint32_t> codes;
    std::vector<uint64_t> firsts;  // the first value that has each code

    // Number the values; false if more than `most` are distinct. `equal` compares two values by their places. Nulls have
    // code 0, but no value.
    template <class Hash, class Equal, class IsNull>
    bool find(uint64_t n, uint64_t most, Hash hash, Equal equal, IsNull is_null) {
        unsigned bits = 10;
        while ((UINT64_C(1) << bits) < 2 * most) bits++;
        slots_.assign(UINT64_C(1) << bits, 0);
        const uint64_t mask = (UINT64_C(1) << bits) - 1;
        codes.resize(n);
        firsts.clear();
        for (uint64_t i = 0; i < n; i++) {
            if (is_null(i)) {
                codes[i] = 0;
                continue;
            }
            uint64_t slot = hash(i) >> (64 - bits);
            while (slots_[slot] && !equal(firsts[slots_[slot] - 1], i)) slot = (slot + 1) & mask;
            if (!slots_[slot]) {
                if (firsts.size() == most) return false;
                firsts.push_back(i);
                slots_[slot] = static_cast<uint32_t>(firsts.size());
            }
            codes[i] = slots_[slot] - 1;
        }
        return true;
    }

   private:
    std::vector<uint32_t> slots_;
};

class PageWriter {
   public:
    // The levels of one chunk are more than a mini-block holds, and its values can't be zipped.
    static constexpr char TOO_MANY_LEVELS[] = "a row has too many empty or null lists within it";

    // Write the rows as one page, or as several ones if a mini-block can't have the levels between two values: pages
    // without values have levels of any number. Pages begin at multiples of `multiple` rows.
    Error write(PageSource &source, const WriteOptions &options, uint64_t multiple, std::vector<PageOut> &out) {
        PageOut page;
        Error e = write_page(source, options, page);
        if (!e) out.push_back(std::move(page));
        const uint64_t half = source.num_rows / 2 / multiple * multiple;
        if (e != TOO_MANY_LEVELS || !half) return e;
        for (const bool is_second : {false, true}) {
            PageSource part;
            if (Error error = source.copy_rows(is_second ? half : 0, is_second ? source.num_rows : half, part)) return error;
            if (Error error = write(part, options, multiple, out)) return error;
        }
        return nullptr;
    }

   private:
    Error write_page(PageSource &source, const WriteOptions &options, PageOut &out) {
        source_ = &source;
        options_ = options;
        out = PageOut();
        out.num_rows = source.num_rows;
        if (Error e = number_levels(out)) return e;
        out.num_items = source.num_items;
        out.num_entries = source.num_entries;
        const uint64_t valid = source.seen[0];
        if (!valid) return write_constant(out, nullptr, 0);
        uint64_t only = 0;
        if (options_.has_constants && !source.code_bits && source.list_items == 1 && source.list_sizes.empty() && is_constant(only)) return write_value(out, only);
        if (options_.structure == FULL_ZIP && !source.bits && !can_zip()) return "nulls can't be stored in full-zip pages that are compressed with lz4";
        if (wants_zip()) return write_zip(out);
        Error e = write_mini_blocks(out);
        if (e == TOO_MANY_LEVELS && can_zip()) {
            reset(out);
            e = write_zip(out);
        }
        return e;
    }

    static void reset(PageOut &out) {
        out.buffers.clear();
        out.table.clear();
        out.scheme = 0;
        out.has_dictionary = false;
    }

    // Assign the numbers of the levels: layers from the innermost, nulls before empty lists.
    Error number_levels(PageOut &out) {
        const size_t n = source_->layer_is_list.size();
        std::vector<uint16_t> numbers(2 * n + 1, 0);
        uint16_t next = 0;
        bool is_within = true;
        visible_ = 0;
        for (size_t i = 0; i < n; i++) {
            const size_t k = n - 1 - i;
            const bool has_null = source_->seen[1 + 2 * k] || is_in_null_struct(k), has_empty = source_->seen[2 + 2 * k];
            if (has_null) numbers[1 + 2 * k] = ++next;
            if (has_empty) numbers[2 + 2 * k] = ++next;
            const bool list = source_->layer_is_list[k];
            if (list) is_within = false;
            if (is_within) visible_ = next;
            out.layers.push_back(!list ? (has_null ? NULLABLE_ITEM : VALID_ITEM)
                                 : has_null && has_empty ? NULL_AND_EMPTY_LIST
                                 : has_null              ? NULLABLE_LIST
                                 : has_empty             ? EMPTYABLE_LIST
                                                         : VALID_LIST);
        }
        most_level_ = next;
        def_.clear();
        if (next) {
            def_.resize(source_->num_entries, 0);
            for (size_t i = 0; i < source_->marks.size(); i++) def_[i] = numbers[source_->marks[i]];
        }
        return nullptr;
    }

    // Whether a struct that the entries of a layer lie in, in the same list, is null. Other readers then expect that entries
    // may be null.
    bool is_in_null_struct(size_t k) const {
        while (k-- && !source_->layer_is_list[k])
            if (source_->seen[1 + 2 * k]) return true;
        return false;
    }

    bool is_visible(uint64_t entry) const { return def_.empty() || def_[entry] <= visible_; }

    // --- constant pages ---

    Error write_levels(PageOut &out) {
        const bool is_trivial = !source_->has_lists() && out.layers.size() == 1;
        if (def_.empty() && !source_->has_lists()) return nullptr;
        if (is_trivial && !source_->seen[0]) return nullptr;
        Block rep, def;
        const bool good = rep.append(reinterpret_cast<const uint8_t *>(source_->rep.data()), 2 * source_->rep.size()) &&
                          def.append(reinterpret_cast<const uint8_t *>(def_.data()), 2 * def_.size());
        if (!good) return NO_MEMORY;
        out.buffers.push_back(std::move(rep));
        out.buffers.push_back(std::move(def));
        return nullptr;
    }

    Error write_constant(PageOut &out, const uint8_t *value, uint64_t size) {
        out.layout = CONSTANT_PAGE;
        if (value) {
            out.has_constant = true;
            out.constant.assign(value, value + size);
        }
        return write_levels(out);
    }

    static constexpr uint64_t MOST_INLINE = 32;

    Error write_value(PageOut &out, uint64_t item) {
        const Values &values = source_->values;
        if (source_->bits == 1) {
            const uint8_t one = get_bit(values.fixed.data(), item);
            return write_constant(out, &one, 1);
        }
        Block buffer;
        const uint8_t *from;
        uint64_t size;
        if (source_->bits) {
            size = source_->bits / 8;
            from = values.fixed.data() + item * size;
            if (size <= MOST_INLINE) return write_constant(out, from, size);
            if (!buffer.append_value<uint32_t>(1) || !buffer.append_value(static_cast<uint32_t>(size))) return NO_MEMORY;
        } else {
            const uint32_t *const offsets = values.offsets.as<uint32_t>();
            from = values.text.data() + offsets[item];
            size = offsets[item + 1] - offsets[item];
            const uint32_t width = source_->is_wide ? 8 : 4;
            const uint64_t end = size;
            const bool good = buffer.append_value<uint32_t>(2) && buffer.append_value(2 * width) && buffer.append_value(static_cast<uint32_t>(size)) &&
                              buffer.append_zeros(width) && buffer.append(reinterpret_cast<const uint8_t *>(&end), width);
            if (!good) return NO_MEMORY;
        }
        if (size && !buffer.append(from, size)) return NO_MEMORY;
        out.layout = CONSTANT_PAGE;
        out.buffers.push_back(std::move(buffer));
        return write_levels(out);
    }

    // Whether all values that are not null are the same; `only` is the item of one.
    bool is_constant(uint64_t &only) const {
        const Values &values = source_->values;
        if (def_.empty()) {
            only = 0;
            return all_equal([](uint64_t) { return true; }, only);
        }
        uint64_t item = 0;
        valid_.clear();
        for (uint64_t i = 0; i < def_.size(); i++)
            if (def_[i] <= visible_) {
                if (!def_[i]) valid_.push_back(item);
                item++;
                if (valid_.size() >= 2 && !same(valid_[0], valid_.back())) return false;
            }
        only = valid_[0];
        (void)values;
        return true;
    }
    template <class F>
    bool all_equal(F, uint64_t only) const {
        for (uint64_t i = only + 1; i < source_->num_items; i++)
            if (!same(only, i)) return false;
        return true;
    }
    bool same(uint64_t a, uint64_t b) const {
        const Values &values = source_->values;
        if (source_->bits == 1) return get_bit(values.fixed.data(), a) == get_bit(values.fixed.data(), b);
        if (source_->bits) return !std::memcmp(values.fixed.data() + a * (source_->bits / 8), values.fixed.data() + b * (source_->bits / 8), source_->bits / 8);
        const uint32_t *const o = values.offsets.as<uint32_t>();
        const uint32_t n = o[a + 1] - o[a];
        return n == o[b + 1] - o[b] && (!n || !std::memcmp(values.text.data() + o[a], values.text.data() + o[b], n));
    }

    // --- full-zip ---

    static constexpr uint64_t WIDE_BYTES = 256, WIDE_MEAN = 128;

    // Values of a fixed size are not compressed there, and nulls have no block of lz4, which pylance needs.
    bool can_zip() const {
        if (source_->bits == 1 || source_->code_bits) return false;
        if (!options_.scheme) return true;
        return !source_->bits && (options_.scheme != LZ4 || !has_null_items());
    }
    bool has_null_items() const { return std::any_of(def_.begin(), def_.end(), [this](uint16_t level) { return level && level <= visible_; }); }

    bool wants_zip() const {
        if (!can_zip()) return false;
        if (options_.structure) return options_.structure == FULL_ZIP;
        if (source_->bits) return source_->bits / 8 * source_->list_items >= WIDE_BYTES;
        const uint32_t *const offsets = source_->values.offsets.as<uint32_t>();
        const uint64_t n = source_->num_items;
        if (offsets[n] / n >= WIDE_MEAN) return true;
        return longest() > TextCoder::MOST_LENGTH;
    }
    uint64_t longest() const {
        const uint32_t *const offsets = source_->values.offsets.as<uint32_t>();
        uint32_t most = 0;
        for (uint64_t i = 0; i < source_->num_items; i++) most = std::max(most, offsets[i + 1] - offsets[i]);
        return most;
    }

    Error write_zip(PageOut &out) {
        out.layout = FULL_ZIP;
        out.rep_bits = bits_for(source_->num_lists());
        out.def_bits = bits_for(most_level_);
        const int bits = out.rep_bits + out.def_bits;
        const unsigned control = bits == 0 ? 0 : bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
        Block data, index;
        data.lend_from(source_->lender);
        std::vector<uint64_t> starts;
        const bool has_index = !source_->bits || source_->has_lists();
        if (Error e = source_->bits ? zip_fixed(out, control, data, starts, has_index) : zip_texts(out, control, data, starts)) return e;
        out.buffers.push_back(std::move(data));
        if (!has_index) return nullptr;
        starts.push_back(out.buffers[0].size());
        const uint64_t end = starts.back(), width = end <= UINT8_MAX ? 1 : end <= UINT16_MAX ? 2 : end <= UINT32_MAX ? 4 : 8;
        if (!index.reserve(width * starts.size())) return NO_MEMORY;
        for (const uint64_t start : starts) index.append(reinterpret_cast<const uint8_t *>(&start), width);
        out.buffers.push_back(std::move(index));
        return nullptr;
    }

    void put_control(Block &data, unsigned control, int def_bits, uint64_t entry) const {
        const uint32_t rep = source_->has_lists() ? source_->rep[entry] : 0, def = def_.empty() ? 0 : def_[entry];
        const uint32_t word = rep << def_bits | def;
        data.append(reinterpret_cast<const uint8_t *>(&word), control);
    }
    bool is_row(uint64_t entry) const { return !source_->has_lists() || source_->rep[entry] == source_->num_lists(); }

    Error zip_fixed(PageOut &out, unsigned control, Block &data, std::vector<uint64_t> &starts, bool has_index) {
        Values &values = source_->values;
        out.value = FLAT;
        out.value_bits = source_->bits;
        const uint64_t width = source_->bits / 8 * source_->list_items;
        uint64_t extra = 0, inner = 1;
        for (size_t k = 0; k < source_->list_sizes.size(); k++) {
            inner *= source_->list_sizes[k];
            out.list_validity.push_back(values.validity[k].zeros() != 0);
            if (out.list_validity.back()) extra += (inner + 7) / 8;
        }
        out.bits_per_value = 8 * (width + extra);
        if (!data.reserve(source_->num_entries * control + source_->num_items * (width + extra))) return NO_MEMORY;
        if (!control && !extra) {
            if (!data.append(values.fixed.data(), source_->num_items * width)) return NO_MEMORY;
            return nullptr;
        }
        uint64_t item = 0;
        for (uint64_t i = 0; i < source_->num_entries; i++) {
            if (has_index && is_row(i)) starts.push_back(data.size());
            put_control(data, control, out.def_bits, i);
            if (!is_visible(i)) continue;
            inner = 1;
            for (size_t k = 0; k < source_->list_sizes.size(); k++) {
                inner *= source_->list_sizes[k];
                if (!out.list_validity[k]) continue;
                const uint64_t at = data.size() * 8;
                if (!data.append_zeros((inner + 7) / 8)) return NO_MEMORY;
                copy_bits(data.data(), at, values.validity[k].block().data(), item * inner, inner);
            }
            if (!data.append(values.fixed.data() + item * width, width)) return NO_MEMORY;
            item++;
        }
        return nullptr;
    }

    Error zip_texts(PageOut &out, unsigned control, Block &data, std::vector<uint64_t> &starts) {
        const uint32_t *offsets;
        const uint8_t *text;
        code_texts(out, offsets, text);
        const uint64_t width = source_->is_wide ? 8 : 4;
        out.bits_per_offset = 8 * width;
        out.scheme = options_.scheme;
        if (!data.reserve(source_->num_entries * (control + width) + offsets[source_->num_items])) return NO_MEMORY;
        uint64_t item = 0;
        for (uint64_t i = 0; i < source_->num_entries; i++) {
            if (is_row(i)) starts.push_back(data.size());
            put_control(data, control, out.def_bits, i);
            if (!is_visible(i)) continue;
            if (def_.empty() || !def_[i]) {
                Bytes part = {text + offsets[item], offsets[item + 1] - offsets[item]};
                if (out.scheme) {
                    zipped_.clear();
                    if (Error e = compress(part, zipped_, options_.scheme, options_.state)) return e;
                    part = {zipped_.data(), zipped_.size()};
                }
                const uint64_t length = part.size;
                if (!data.append(reinterpret_cast<const uint8_t *>(&length), width) || !data.append(part.data, part.size)) return NO_MEMORY;
            }
            item++;
        }
        return nullptr;
    }

    // Append a buffer as `general` stores it: its length, then the frame or block.
    Error compress(Bytes in, Block &out, int scheme, void *state) {
        const uint64_t room = in.size + in.size / 16 + 1024;
        const uint64_t head = scheme == LZ4 ? 4 : 8;
        if (!out.append(reinterpret_cast<const uint8_t *>(&in.size), head) || !out.reserve_more(room)) return NO_MEMORY;
        const int64_t n = options_.zip ? options_.zip(state, scheme, in.data, static_cast<int64_t>(in.size), out.end(), static_cast<int64_t>(room)) : -1;
        if (n < 0) return "values can't be compressed";
        out.add_size(static_cast<uint64_t>(n));
        return nullptr;
    }

    // --- texts ---

    static constexpr uint64_t LEAST_CODED = 32 << 10;

    // Choose FSST if it saves a fifth; the results are the texts to store.
    void code_texts(PageOut &out, const uint32_t *&offsets, const uint8_t *&text) {
        offsets = source_->values.offsets.as<uint32_t>();
        text = source_->values.text.data();
        const uint64_t n = source_->num_items, size = offsets[n];
        out.value = VARIABLE;
        out.value_bits = source_->is_wide ? 64 : 32;
        if (!options_.wants_fsst || options_.scheme || !size || (size < LEAST_CODED && !options_.needs_fsst) || size >= INT32_MAX / 2) return;
        if (!source_->values.text.reserve_more(8)) return;
        text = source_->values.text.data();
        std::memset(source_->values.text.end(), 0, 8);  // read, but not used, after the last text
        if (!encoder_) encoder_.reset(new SymbolEncoder());
        encoder_->train(text, offsets, n);
        uint64_t plain, coded;
        encoder_->measure(plain, coded);
        if (!options_.needs_fsst && coded * 5 > plain * 4) return;
        coded_offsets_.resize(n + 1);
        coded_.clear();
        if (!coded_.reserve(size + size / 4 + 16)) return;
        coded_offsets_[0] = 0;
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t length = offsets[i + 1] - offsets[i];
            if (!coded_.reserve_more(2 * length + 8)) return;
            coded_.add_size(encoder_->encode(text + offsets[i], length, coded_.end()));
            coded_offsets_[i + 1] = static_cast<uint32_t>(coded_.size());
        }
        if (!options_.needs_fsst && coded_.size() * 5 > size * 4) return;
        out.value = FSST;
        out.table.resize(SymbolEncoder::TABLE_BYTES);
        encoder_->write(out.table.data());
        offsets = coded_offsets_.data();
        text = coded_.data();
    }

    // --- mini-blocks ---

    Error write_mini_blocks(PageOut &out) {
        out.layout = MINI_BLOCK;
        std::unique_ptr<ChunkCoder> coder;
        Block dictionary;
        if (source_->list_sizes.empty() && source_->bits != 1 && choose_dictionary(out, dictionary)) {
            coder = source_->code_bits == 8    ? coder_of_codes<uint8_t>(out)
                    : source_->code_bits == 16 ? coder_of_codes<uint16_t>(out)
                    : source_->code_bits == 64 ? coder_of_codes<uint64_t>(out)
                                               : coder_of_codes<uint32_t>(out);
            out.scheme = options_.scheme;
            out.dictionary_scheme = options_.dictionary_scheme;
            if (out.dictionary_scheme) {
                zipped_.clear();
                if (Error e = compress({dictionary.data(), dictionary.size()}, zipped_, out.dictionary_scheme, options_.dictionary_state)) return e;
                dictionary.swap(zipped_);
            }
        } else if (source_->code_bits) {
            return "a page has more distinct values than keys of its dictionary type";
        } else if (source_->bits) {
            coder = coder_of_numbers(out);
            out.scheme = options_.scheme;
        } else {
            const uint32_t *offsets;
            const uint8_t *text;
            code_texts(out, offsets, text);
            coder.reset(new TextCoder(offsets, text, source_->num_items, source_->is_wide, options_.chunk_bytes));
            out.scheme = options_.scheme;
        }
        for (Bits &valid : source_->values.validity) out.list_validity.push_back(valid.zeros() != 0);
        // compression applies to the first buffer of a chunk
        if (out.scheme && coder->num_buffers() > 1 && out.value == FLAT) return "lists of a fixed size with null items can't be compressed";
        if (Error e = write_chunks(out, *coder)) return e;
        if (out.has_dictionary) out.buffers.insert(out.buffers.begin() + 2, std::move(dictionary));
        return nullptr;
    }

    template <class T>
    std::unique_ptr<ChunkCoder> coder_of_codes(PageOut &out) {
        const uint64_t n = source_->num_items;
        uint64_t runs;
        codes_.resize(n * sizeof(T) / sizeof(uint64_t) + 1);
        T *const codes = reinterpret_cast<T *>(codes_.data());
        for (uint64_t i = 0; i < n; i++) codes[i] = static_cast<T>(distinct_.codes[i]);
        const uint64_t run_bytes = RunCoder<T>::bytes_of(codes, n, runs);
        out.value_bits = 8 * sizeof(T);
        if (run_bytes < packed_bytes(codes, n) && static_cast<double>(runs) <= options_.run_threshold * static_cast<double>(n)) {
            out.value = RLE;
            return std::unique_ptr<ChunkCoder>(new RunCoder<T>(codes));
        }
        out.value = INLINE_BITPACKING;
        return std::unique_ptr<ChunkCoder>(new InlineCoder<T>(codes));
    }

    template <class T>
    static uint64_t packed_bytes(const T *values, uint64_t n) {
        uint64_t bytes = 0;
        for (uint64_t i = 0; i < n; i += FASTLANES_VALUES)
            bytes += sizeof(T) + UINT64_C(128) * InlineCoder<T>::width_of(values + i, std::min<uint64_t>(FASTLANES_VALUES, n - i));
        return bytes;
    }

    template <class T>
    std::unique_ptr<ChunkCoder> best_of(PageOut &out) {
        const T *const values = source_->values.fixed.as<T>();
        const uint64_t n = source_->num_items, flat = n * sizeof(T);
        uint64_t runs;
        const uint64_t run_bytes = RunCoder<T>::bytes_of(values, n, runs), packed = packed_bytes(values, n);
        if (run_bytes < packed && run_bytes < flat && static_cast<double>(runs) <= options_.run_threshold * static_cast<double>(n)) {
            out.value = RLE;
            return std::unique_ptr<ChunkCoder>(new RunCoder<T>(values));
        }
        if (packed < flat && !(options_.splits_bytes && options_.scheme)) {
            out.value = INLINE_BITPACKING;
            return std::unique_ptr<ChunkCoder>(new InlineCoder<T>(values));
        }
        return nullptr;
    }

    std::unique_ptr<ChunkCoder> coder_of_numbers(PageOut &out) {
        out.value_bits = source_->bits;
        std::unique_ptr<ChunkCoder> found;
        if (source_->list_sizes.empty()) {
            if (source_->bits == 8) found = best_of<uint8_t>(out);
            if (source_->bits == 16) found = best_of<uint16_t>(out);
            if (source_->bits == 32) found = best_of<uint32_t>(out);
            if (source_->bits == 64) found = best_of<uint64_t>(out);
        }
        if (found) return found;
        const bool splits = options_.splits_bytes && options_.scheme && source_->list_sizes.empty() && (source_->bits == 32 || source_->bits == 64);
        out.value = splits ? BYTE_STREAM_SPLIT : FLAT;
        return std::unique_ptr<ChunkCoder>(new FlatCoder(*source_, splits, options_.chunk_bytes));
    }

    // --- dictionaries ---

    static constexpr uint64_t LEAST_VALUES = 100, SAMPLE = 2048, MOST_DISTINCT = 1 << 15;

    static uint64_t mix(uint64_t word) {
        word *= UINT64_C(0x9E3779B97F4A7C15);
        word ^= word >> 32;
        return word * UINT64_C(0xD6E8FEB86659FD93);
    }
    static uint64_t hash_of(const uint8_t *data, uint64_t n) {
        uint64_t found = n;
        uint64_t i = 0;
        for (; i + 8 <= n; i += 8) found = mix(found ^ load<uint64_t>(data + i));
        uint64_t last = 0;
        if (n > i) std::memcpy(&last, data + i, n - i);
        return mix(found ^ last);
    }

    bool choose_dictionary(PageOut &out, Block &dictionary) {
        const uint64_t n = source_->num_items;
        // numbers of up to 32 bits are packed as well as codes are
        const bool is_asked = source_->code_bits;
        if (!is_asked && (n < LEAST_VALUES || (options_.scheme && !options_.wants_dictionary) || options_.needs_fsst || (source_->bits && source_->bits < 64))) return false;
        Values &values = source_->values;
        const uint64_t width = source_->bits / 8;
        if (source_->bits) {
            const uint8_t *const data = values.fixed.data();
            const auto hash = [=](uint64_t i) { return width == 8 ? mix(load<uint64_t>(data + 8 * i)) : hash_of(data + width * i, width); };
            const auto equal = [=](uint64_t a, uint64_t b) { return !std::memcmp(data + width * a, data + width * b, width); };
            if (!few(n, hash, equal)) return false;
            const uint64_t k = distinct_.firsts.size();
            uint64_t plain = n * width;
            if (source_->bits == 64) {
                uint64_t runs;
                const uint64_t *const numbers = values.fixed.as<uint64_t>();
                plain = std::min(packed_bytes(numbers, n), RunCoder<uint64_t>::bytes_of(numbers, n, runs));
            }
            if (!is_asked && k * width + n * static_cast<uint64_t>(bits_for(k - 1)) / 8 + n / 64 > most_bytes(plain, 0.8)) return false;
            for (const uint64_t i : distinct_.firsts)
                if (!dictionary.append(data + width * i, width)) return false;
        } else {
            const uint8_t *const text = values.text.data();
            const uint32_t *const offsets = values.offsets.as<uint32_t>();
            const auto hash = [=](uint64_t i) { return hash_of(text + offsets[i], offsets[i + 1] - offsets[i]); };
            const auto equal = [=](uint64_t a, uint64_t b) {
                const uint32_t size = offsets[a + 1] - offsets[a];
                return size == offsets[b + 1] - offsets[b] && (!size || !std::memcmp(text + offsets[a], text + offsets[b], size));
            };
            if (!few(n, hash, equal)) return false;
            if (!write_texts(dictionary, text, offsets)) return false;
            if (!is_asked && dictionary.size() + n / 8 * static_cast<uint64_t>(bits_for(distinct_.firsts.size() - 1)) > most_bytes(offsets[n] + 4 * n, 0.5)) return false;
        }
        out.has_dictionary = true;
        out.num_dictionary_items = distinct_.firsts.size();
        return true;
    }

    uint64_t most_bytes(uint64_t plain, double ratio) const {
        return static_cast<uint64_t>(static_cast<double>(plain) * (options_.dictionary_ratio > 0 ? options_.dictionary_ratio : ratio));
    }

    // Find which items are null; none are marked if all are valid.
    void find_nulls() {
        is_null_.clear();
        if (def_.empty() || !visible_) return;
        is_null_.reserve(source_->num_items);
        for (const uint16_t level : def_)
            if (level <= visible_) is_null_.push_back(level != 0);
    }

    // Whether a sample has few distinct values, and then all values.
    template <class Hash, class Equal>
    bool few(uint64_t n, Hash hash, Equal equal) {
        find_nulls();
        const auto is_null = [this](uint64_t i) { return !is_null_.empty() && is_null_[i]; };
        if (source_->code_bits) {
            return distinct_.find(n, std::min(n, source_->most_codes), hash, equal, is_null);
        }
        if (n > 4 * SAMPLE) {
            const uint64_t step = n / SAMPLE;
            if (!distinct_.find(SAMPLE, SAMPLE / 2, [&](uint64_t i) { return hash(i * step); }, [&](uint64_t a, uint64_t b) { return equal(a * step, b * step); },
                                [&](uint64_t i) { return is_null(i * step); }))
                return false;
        }
        const auto most = static_cast<uint64_t>(static_cast<double>(n) / options_.dictionary_divisor) + 1;
        return distinct_.find(n, std::min(MOST_DISTINCT, most), hash, equal, is_null);
    }

    // Write distinct texts as a block: the bits of offsets, where bytes begin, offsets, bytes.
    bool write_texts(Block &to, const uint8_t *text, const uint32_t *offsets) {
        const uint64_t k = distinct_.firsts.size(), width = source_->is_wide ? 8 : 4;
        const auto put = [&](uint64_t number) { return to.append(reinterpret_cast<const uint8_t *>(&number), width); };
        bool good = put(8 * width) && put(2 * width + width * (k + 1)) && put(0);
        uint64_t end = 0;
        for (const uint64_t i : distinct_.firsts) good = good && put(end += offsets[i + 1] - offsets[i]);
        for (const uint64_t i : distinct_.firsts)
            if (offsets[i + 1] > offsets[i]) good = good && to.append(text + offsets[i], offsets[i + 1] - offsets[i]);
        return good;
    }

    // --- chunks ---

    static constexpr uint64_t MOST_LEVELS = 16 << 10;

    Error write_chunks(PageOut &out, ChunkCoder &coder) {
        const bool has_rep = source_->has_lists(), has_def = !def_.empty();
        const uint64_t n = source_->num_items, entries = source_->num_entries;
        const bool is_packed = entries > 64;
        out.rep_bits = !has_rep ? 0 : is_packed ? bits_for(source_->num_lists()) : 16;
        out.def_bits = !has_def ? 0 : is_packed ? bits_for(most_level_) : 16;
        out.num_buffers = coder.num_buffers();
        Block words, data, index;
        // larger chunks than 32 KiB have larger words
        const uint64_t word_bytes = options_.has_large_chunks ? 4 : 2, most_bytes = options_.has_large_chunks ? UINT64_C(1) << 30 : 32 << 10;
        Block parts[34];
        uint64_t item = 0, entry = 0;
        bool is_open = false;
        // as for values that nothing shortens: a block that grows is copied, and memory that isn't written costs nothing
        data.lend_from(source_->lender);
        if (!data.reserve(source_->size() + source_->size() / 16)) return NO_MEMORY;
        while (item < n || entry < entries) {
            uint64_t count = coder.count_at(item), end = entry;
            bool is_last = n - item <= count || (n - item <= coder.most() && coder.count_at(item) >= n - item);
            if (is_last) count = n - item, end = entries;
            while (!is_last || end - entry > MOST_LEVELS) {
                if (is_last) {  // its levels are too many for one chunk
                    is_last = false;
                    count = 2;
                    while (count * 2 < n - item) count *= 2;
                    if (count >= n - item) return TOO_MANY_LEVELS;
                }
                end = end_of(entry, count);
                if (end - entry <= MOST_LEVELS) break;
                if (count == 2) return TOO_MANY_LEVELS;
                count /= 2;
            }
            for (Block &part : parts) part.clear();
            if (has_rep && !pack_levels(source_->rep.data() + entry, end - entry, out.rep_bits, parts[0])) return NO_MEMORY;
            if (has_def && !pack_levels(def_.data() + entry, end - entry, out.def_bits, parts[1])) return NO_MEMORY;
            if (!coder.put(item, count, parts + 2)) return NO_MEMORY;
            if (out.scheme) {
                zipped_.clear();
                if (Error e = compress({parts[2].data(), parts[2].size()}, zipped_, out.scheme, options_.state)) return e;
                parts[2].swap(zipped_);
            }
            const uint64_t at = data.size();
            if (!put_chunk(data, parts, out.num_buffers, has_rep, has_def, end - entry)) return NO_MEMORY;
            const uint64_t size = data.size() - at;
            if (size > most_bytes) return "a chunk is too large";
            unsigned log = 0;
            if (!is_last)
                while ((UINT64_C(1) << log) < count) log++;
            const uint64_t word = (size / 8 - 1) << 4 | log;
            if (!words.append(reinterpret_cast<const uint8_t *>(&word), word_bytes)) return NO_MEMORY;
            if (has_rep && !put_rows(index, entry, end, is_open)) return NO_MEMORY;
            item += count;
            entry = end;
        }
        out.buffers.push_back(std::move(words));
        out.buffers.push_back(std::move(data));
        if (has_rep) out.buffers.push_back(std::move(index));
        return nullptr;
    }

    // The end of the entries that have the next `count` values; those without a value that follow belong to the next chunk.
    uint64_t end_of(uint64_t entry, uint64_t count) const {
        if (!source_->has_lists() || def_.empty()) return entry + count;
        for (; count; entry++) count -= def_[entry] <= visible_;
        return entry;
    }

    bool put_chunk(Block &data, Block *parts, uint64_t num_buffers, bool has_rep, bool has_def, uint64_t levels) const {
        const auto pad = [&](uint64_t start) {
            const uint64_t n = -(data.size() - start) & 7;
            if (!data.reserve_more(8)) return false;
            std::memset(data.end(), 0xFE, n);
            data.add_size(n);
            return true;
        };
        const uint64_t start = data.size();
        if (!data.append_value(static_cast<uint16_t>(has_rep || has_def ? levels : 0))) return false;
        if (has_rep && !data.append_value(static_cast<uint16_t>(parts[0].size()))) return false;
        if (has_def && !data.append_value(static_cast<uint16_t>(parts[1].size()))) return false;
        for (uint64_t i = 0; i < num_buffers; i++) {
            const uint32_t size = static_cast<uint32_t>(parts[2 + i].size());
            if (!data.append(reinterpret_cast<const uint8_t *>(&size), options_.has_large_chunks ? 4 : 2)) return false;
        }
        if (!pad(start)) return false;
        if (has_rep && (!data.append(parts[0].data(), parts[0].size()) || !pad(start))) return false;
        if (has_def && (!data.append(parts[1].data(), parts[1].size()) || !pad(start))) return false;
        for (uint64_t i = 0; i < num_buffers; i++)
            if (!data.append(parts[2 + i].data(), parts[2 + i].size()) || !pad(start)) return false;
        return true;
    }

    // Append how many rows end in a chunk, and the entries of a row that does not.
    bool put_rows(Block &index, uint64_t first, uint64_t last, bool &is_open) const {
        uint64_t begun = 0, start = first;
        for (uint64_t i = first; i < last; i++)
            if (is_row(i)) begun++, start = i;
        const bool ends = last == source_->num_entries || is_row(last);
        const uint64_t ended = begun + is_open - !ends, rest = ends ? 0 : last - start;
        is_open = !ends;
        return index.append_value(ended) && index.append_value(rest);
    }

    PageSource *source_ = nullptr;
    WriteOptions options_;
    std::vector<uint16_t> def_;  // the levels of entries; empty if all are 0
    uint16_t visible_ = 0, most_level_ = 0;
    mutable std::vector<uint64_t> valid_;
    std::unique_ptr<SymbolEncoder> encoder_;
    std::vector<uint32_t> coded_offsets_;
    Block coded_, zipped_;
    DistinctValues distinct_;
    std::vector<uint8_t> is_null_;  // of items; empty if all are valid
    std::vector<uint64_t> codes_;  // as numbers of their width
};

}  // namespace delta_lance
