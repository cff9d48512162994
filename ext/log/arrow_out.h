// Columns that are appended to row by row and exported as Arrow arrays through Arrow's C data interface, without a copy.
//
// Only the rows that have a value are reported to a column. Rows that were not reported before the next value, or before the
// end, are null.
#pragma once

#include <Python.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>
#include <vector>

extern "C" {
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
struct ArrowSchema;
struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif
}

namespace delta_json {

// Bytes allocated with malloc: large blocks grow by remapping, and the block can be exported to Arrow.
class Bytes {
   public:
    Bytes() = default;
    Bytes(Bytes &&other) noexcept { swap(other); }
    Bytes &operator=(Bytes &&other) noexcept {
        swap(other);
        return *this;
    }
    ~Bytes() { std::free(data_); }

    char *data() const { return data_; }
    size_t size() const { return size_; }
    size_t capacity() const { return capacity_; }
    void clear() { size_ = 0; }
    char *end() const { return data_ + size_; }

    // Make room for `more` bytes after the end, and return the end.
    char *room(size_t more) {
        if (capacity_ - size_ < more) grow(size_ + more);
        return data_ + size_;
    }
    void advance(size_t n) { size_ += n; }
    void append(const void *bytes, size_t n) {
        std::memcpy(room(n + 1), bytes, n);
        size_ += n;
    }
    template <class T>
    void push(T value) {
        std::memcpy(room(sizeof(T)), &value, sizeof(T));
        size_ += sizeof(T);
    }
    void zeros_to(size_t size) {
        if (size <= size_) return;
        if (!data_) {  // pages of calloc take no memory before they are written to
            data_ = static_cast<char *>(std::calloc(size + 1, 1));
            if (!data_) throw std::bad_alloc();
            capacity_ = size + 1;
        } else {
            std::memset(room(size - size_), 0, size - size_);
        }
        size_ = size;
    }
    void *release() {
        if (!data_) grow(64);
        else if (size_ + 4096 < capacity_) {
            if (void *smaller = std::realloc(data_, size_ + 1)) data_ = static_cast<char *>(smaller);
        }
        void *out = data_;
        data_ = nullptr;
        size_ = capacity_ = 0;
        return out;
    }

   private:
    void swap(Bytes &other) {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }
    void grow(size_t need) {
        size_t capacity = capacity_ * 2 < 256 ? 256 : capacity_ * 2;
        if (capacity < need) capacity = need;
        char *bigger = static_cast<char *>(std::realloc(data_, capacity));
        if (!bigger) throw std::bad_alloc();
        data_ = bigger;
        capacity_ = capacity;
    }

    char *data_ = nullptr;
    size_t size_ = 0;
    size_t capacity_ = 0;
};

// The memory that an exported array owns.
struct Owned {
    std::vector<void *> blocks;
    std::vector<const void *> buffers;
    std::vector<ArrowArray> children;
    std::vector<ArrowArray *> child_pointers;
    ArrowArray dictionary{};

    ~Owned() {
        for (void *block : blocks) std::free(block);
        for (ArrowArray &child : children)
            if (child.release) child.release(&child);
        if (dictionary.release) dictionary.release(&dictionary);
    }
};

inline void release_array(ArrowArray *array) {
    delete static_cast<Owned *>(array->private_data);
    array->release = nullptr;
}

// Assembles one exported array. If assembling fails, the memory that was moved into it is freed.
class Export {
   public:
    Export() : owned_(new Owned) {}
    void buffer(Bytes &bytes) {
        owned_->blocks.push_back(nullptr);
        owned_->buffers.push_back(owned_->blocks.back() = bytes.release());
    }
    void no_buffer() { owned_->buffers.push_back(nullptr); }
    ArrowArray *child() {
        owned_->children.push_back(ArrowArray{});
        return &owned_->children.back();
    }
    void reserve_children(size_t n) { owned_->children.reserve(n); }
    ArrowArray *dictionary() { return &owned_->dictionary; }
    void finish(size_t length, size_t nulls, ArrowArray *out) {
        for (ArrowArray &child : owned_->children) owned_->child_pointers.push_back(&child);
        out->length = static_cast<int64_t>(length);
        out->null_count = static_cast<int64_t>(nulls);
        out->offset = 0;
        out->n_buffers = static_cast<int64_t>(owned_->buffers.size());
        out->n_children = static_cast<int64_t>(owned_->children.size());
        out->buffers = owned_->buffers.data();
        out->children = owned_->child_pointers.empty() ? nullptr : owned_->child_pointers.data();
        out->dictionary = owned_->dictionary.release ? &owned_->dictionary : nullptr;
        out->private_data = owned_.release();
        out->release = release_array;
    }

   private:
    std::unique_ptr<Owned> owned_;
};

class Validity {
   public:
    void set(size_t row) {  // rows come in ascending order
        skip_to(row);
        if (nulls_) {
            if ((rows_ & 7) == 0) bits_.push<char>(0);
            bits_.end()[-1] |= static_cast<char>(1 << (rows_ & 7));
        }
        ++rows_;
    }
    void finish(size_t rows, Export &out) {
        skip_to(rows);
        nulls_ ? out.buffer(bits_) : out.no_buffer();
    }
    size_t nulls() const { return nulls_; }

   private:
    void skip_to(size_t row) {
        if (row == rows_) return;
        if (!nulls_) {  // the first null: all rows before it have a value
            std::memset(bits_.room(rows_ / 8 + 1), 0xff, (rows_ + 7) / 8);
            bits_.advance((rows_ + 7) / 8);
            if (rows_ & 7) bits_.end()[-1] = static_cast<char>((1 << (rows_ & 7)) - 1);
        }
        bits_.zeros_to((row + 7) / 8);
        nulls_ += row - rows_;
        rows_ = row;
    }

    Bytes bits_;
    size_t rows_ = 0;
    size_t nulls_ = 0;
};

class Column {
   public:
    virtual ~Column() = default;
    virtual void finish(size_t rows, ArrowArray *out) = 0;
};

template <class T>
class NumberColumn final : public Column {
   public:
    void put(size_t row, T value) {
        values_.zeros_to(row * sizeof(T));
        values_.push(value);
        valid_.set(row);
    }
    void finish(size_t rows, ArrowArray *out) override {
        Export array;
        values_.zeros_to(rows * sizeof(T));
        valid_.finish(rows, array);
        array.buffer(values_);
        array.finish(rows, valid_.nulls(), out);
    }

   private:
    Bytes values_;
    Validity valid_;
};

class BoolColumn final : public Column {
   public:
    void put(size_t row, bool value) {
        bits_.zeros_to(row / 8 + 1);
        bits_.data()[row / 8] |= static_cast<char>(value << (row & 7));
        valid_.set(row);
    }
    void finish(size_t rows, ArrowArray *out) override {
        Export array;
        bits_.zeros_to((rows + 7) / 8);
        valid_.finish(rows, array);
        array.buffer(bits_);
        array.finish(rows, valid_.nulls(), out);
    }

   private:
    Bytes bits_;
    Validity valid_;
};

class StringColumn final : public Column {
   public:
    // Return where up to `most` bytes may be written; `close` then specifies their number.
    char *open(size_t row, size_t most) {
        if (most > INT32_MAX - text_.size()) throw std::length_error("a string column holds at most 2 GiB");
        skip_to(row);
        return text_.room(most);
    }
    void close(size_t row, size_t written) {
        text_.advance(written);
        offsets_.push(static_cast<int32_t>(text_.size()));
        valid_.set(row);
    }
    void put(size_t row, std::string_view value) {
        std::memcpy(open(row, value.size() + 1), value.data(), value.size());
        close(row, value.size());
    }
    size_t rows() const { return offsets_.size() ? offsets_.size() / sizeof(int32_t) - 1 : 0; }
    std::string_view at(size_t row) const {
        const int32_t *offset = reinterpret_cast<const int32_t *>(offsets_.data()) + row;
        return {text_.data() + offset[0], static_cast<size_t>(offset[1] - offset[0])};
    }
    void finish(size_t rows, ArrowArray *out) override {
        Export array;
        if (text_.size()) skip_to(rows);
        else offsets_.zeros_to((rows + 1) * sizeof(int32_t));
        valid_.finish(rows, array);
        array.buffer(offsets_);
        array.buffer(text_);
        array.finish(rows, valid_.nulls(), out);
    }

   private:
    void skip_to(size_t row) {
        if (!text_.size()) {
            offsets_.zeros_to((row + 1) * sizeof(int32_t));
            return;
        }
        while (offsets_.size() < (row + 1) * sizeof(int32_t)) offsets_.push(static_cast<int32_t>(text_.size()));
    }

    Bytes offsets_;
    Bytes text_;
    Validity valid_;
};

// Strings with few distinct values, stored as codes of a dictionary.
class DictionaryColumn final : public Column {
   public:
    void put(size_t row, std::string_view value) { codes_.put(row, code(value)); }
    void finish(size_t rows, ArrowArray *out) override {
        size_t distinct = values_.rows();
        codes_.finish(rows, out);
        values_.finish(distinct, &static_cast<Owned *>(out->private_data)->dictionary);
        out->dictionary = &static_cast<Owned *>(out->private_data)->dictionary;
    }

   private:
    static uint64_t hash(std::string_view value) {
        uint64_t h = 0x9e3779b97f4a7c15u ^ value.size();
        const char *p = value.data();
        size_t n = value.size();
        for (; n >= 8; p += 8, n -= 8) h = mix(h, p, 8);
        return n ? mix(h, p, n) : h;
    }
    static uint64_t mix(uint64_t h, const char *p, size_t n) {
        uint64_t word = 0;
        std::memcpy(&word, p, n);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        return h ^ (h >> 32);
    }
    int32_t code(std::string_view value) {
        if (last_ >= 0 && values_.at(static_cast<size_t>(last_)) == value) return last_;
        if (values_.rows() * 2 >= slots_.size()) rehash();
        size_t mask = slots_.size() - 1, slot = hash(value) & mask;
        while (slots_[slot] >= 0) {
            if (values_.at(static_cast<size_t>(slots_[slot])) == value) return last_ = slots_[slot];
            slot = (slot + 1) & mask;
        }
        size_t next = values_.rows();
        values_.put(next, value);
        return last_ = slots_[slot] = static_cast<int32_t>(next);
    }
    void rehash() {
        slots_.assign(slots_.empty() ? 64 : slots_.size() * 4, -1);
        size_t mask = slots_.size() - 1;
        for (size_t i = 0; i < values_.rows(); ++i) {
            size_t slot = hash(values_.at(i)) & mask;
            while (slots_[slot] >= 0) slot = (slot + 1) & mask;
            slots_[slot] = static_cast<int32_t>(i);
        }
    }

    NumberColumn<int32_t> codes_;
    StringColumn values_;
    std::vector<int32_t> slots_;
    int32_t last_ = -1;
};

// map<string, string>. The entries of a row are appended first, then `close` ends the row.
class MapColumn final : public Column {
   public:
    StringColumn keys, values;

    size_t entries() const { return entries_; }
    void close(size_t row, size_t added) {
        skip_to(row);
        entries_ += added;
        offsets_.push(static_cast<int32_t>(entries_));
        valid_.set(row);
    }
    void finish(size_t rows, ArrowArray *out) override {
        Export array;
        skip_to(rows);
        valid_.finish(rows, array);
        array.buffer(offsets_);
        Export entry;
        entry.no_buffer();
        entry.reserve_children(2);
        keys.finish(entries_, entry.child());
        values.finish(entries_, entry.child());
        entry.finish(entries_, 0, array.child());
        array.finish(rows, valid_.nulls(), out);
    }

   private:
    void skip_to(size_t row) {
        offsets_.zeros_to(sizeof(int32_t));
        while (offsets_.size() < (row + 1) * sizeof(int32_t)) offsets_.push(static_cast<int32_t>(entries_));
    }

    Bytes offsets_;
    Validity valid_;
    size_t entries_ = 0;
};

// A record batch: a struct array of the columns.
inline void export_batch(std::vector<std::unique_ptr<Column>> &columns, size_t rows, ArrowArray *out) {
    Export batch;
    batch.no_buffer();
    batch.reserve_children(columns.size());
    for (auto &column : columns) column->finish(rows, batch.child());
    batch.finish(rows, 0, out);
}

inline void release_capsule(PyObject *capsule) {
    ArrowArray *array = static_cast<ArrowArray *>(PyCapsule_GetPointer(capsule, "arrow_array"));
    if (array->release) array->release(array);
    delete array;
}

// Return an array to Python as the Arrow PyCapsule interface defines it. The content of `array` is moved.
inline PyObject *array_capsule(ArrowArray &array) {
    ArrowArray *moved = new ArrowArray(array);
    array.release = nullptr;
    PyObject *capsule = PyCapsule_New(moved, "arrow_array", release_capsule);
    if (!capsule) {
        if (moved->release) moved->release(moved);
        delete moved;
    }
    return capsule;
}

}  // namespace delta_json
