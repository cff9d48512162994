// Decoded columns as one record batch of Arrow's C data interface. Making an array object for each column takes longer than
// decoding a few thousand of its rows.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "memory/kept_memory.h"
#include "chunk_jobs.h"

namespace delta_parquet {

using delta_memory::ArrowArray;

// The columns of a batch, whose memory belongs to a Python object. They are released together.
class BatchColumns {
   public:
    explicit BatchColumns(int64_t count)
        : arrays_(count), dictionaries_(count), pointers_(count), buffers_(6 * count) {
        for (int64_t i = 0; i < count; i++) pointers_[i] = &arrays_[i];
    }

    // Set a column of `n` values. `valid` may be nullptr if no value is null; `text` is the third buffer of strings.
    void set(int64_t i, int64_t n, int64_t nulls, const void *valid, const void *values, bool is_text, const void *text) {
        const void **own = &buffers_[6 * i];
        own[0] = valid;
        own[1] = values;
        own[2] = text;
        arrays_[i] = {n, nulls, 0, is_text ? 3 : 2, 0, own, nullptr, nullptr, release_part, nullptr};
    }

    // Set the strings that the codes of a column represent.
    void set_dictionary(int64_t i, int64_t n, const void *ends, const void *text) {
        const void **own = &buffers_[6 * i + 3];
        own[0] = nullptr;
        own[1] = ends;
        own[2] = text;
        dictionaries_[i] = {n, 0, 0, 3, 0, own, nullptr, nullptr, release_part, nullptr};
        arrays_[i].dictionary = &dictionaries_[i];
    }

    // Export a batch of `n` rows. Its release deletes `columns` and drops `owner`.
    static void finish(BatchColumns *columns, int64_t n, PyObject *owner, ArrowArray *out) {
        Py_INCREF(owner);
        columns->owner_ = owner;
        *out = {n, 0, 0, 1, static_cast<int64_t>(columns->arrays_.size()), &columns->none_, columns->pointers_.data(), nullptr,
                release, columns};
    }

   private:
    static void release_part(ArrowArray *array) { array->release = nullptr; }

    static void release(ArrowArray *array) {
        BatchColumns *const columns = static_cast<BatchColumns *>(array->private_data);
        for (ArrowArray &one : columns->arrays_) one.release = nullptr;
        for (ArrowArray &one : columns->dictionaries_) one.release = nullptr;
        array->release = nullptr;
        if (Py_IsInitialized()) {  // otherwise the process is ending
            const PyGILState_STATE state = PyGILState_Ensure();
            Py_DECREF(columns->owner_);
            PyGILState_Release(state);
        }
        delete columns;
    }

    std::vector<ArrowArray> arrays_, dictionaries_;
    std::vector<ArrowArray *> pointers_;
    std::vector<const void *> buffers_;  // for each column its own three, and those of its dictionary
    const void *none_ = nullptr;
    PyObject *owner_ = nullptr;
};

// Chunks that several threads decode, each one at a time: of one row group, or for each column those of consecutive ones.
class SharedJobs {
   public:
    SharedJobs(ChunkJob *jobs, int64_t count, const std::vector<ChunkPart> *parts) : jobs_(jobs), count_(count), parts_(parts) {}

    void run(Workspace &space, const Source &source, int64_t num_rows, const uint64_t *keep, int64_t num_kept, int64_t most_text) {
        const int64_t num_parts = count_ ? static_cast<int64_t>(parts_->size()) / count_ : 0;
        for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) {
            if (num_parts) {
                run_joined(space, source, parts_->data() + i * num_parts, num_parts, num_rows, most_text, jobs_[i]);
            } else {
                run_jobs(space, source, num_rows, keep, num_kept, most_text, jobs_ + i, 1);
            }
        }
    }

   private:
    ChunkJob *const jobs_;
    const int64_t count_;
    const std::vector<ChunkPart> *const parts_;
    std::atomic<int64_t> next_{0};
};

}  // namespace delta_parquet
