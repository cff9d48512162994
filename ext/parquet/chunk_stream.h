// Column chunks decoded in consecutive ranges of rows.
#pragma once

#include <cstdint>

#include "chunk_jobs.h"

namespace delta_parquet {

// The one chunk that keeps its dictionary even if it is large: reading it again for each range takes much longer, and at that
// time it is in memory together with its page anyway.
struct BigDictionary {
    const void *owner = nullptr;
};

// The memory of a chunk between two of its ranges.
class KeptSpace {
   protected:
    KeptSpace(void *decompressor, int64_t most_kept, BigDictionary *big = nullptr)
        : decompressor_(decompressor), most_kept_(most_kept), big_(big) {}

    // Decompress pages with the contexts of another workspace, and add to its counts.
    void work_like(const Workspace &space) {
        space_.decompress = space.decompress;
        space_.codec = decompressor_;
        space_.decompressors = space.decompressors;
        space_.pages = space.pages;
    }

    bool keeps_dictionary() const {
        return static_cast<int64_t>(space_.dictionary_size()) <= most_kept_ || (big_ && (!big_->owner || big_->owner == this));
    }
    bool keeps_page() const { return static_cast<int64_t>(space_.page_size()) <= most_kept_; }

    template <class Reader>
    void drop_big_dictionary(Reader &reader) {
        if (keeps_dictionary()) {
            if (static_cast<int64_t>(space_.dictionary_size()) > most_kept_) big_->owner = this;
            return;
        }
        reader.drop_dictionary();
        space_.dictionary.release();
        space_.dictionary_ends.release();
    }

    Workspace space_;

   private:
    void *const decompressor_;
    const int64_t most_kept_;
    BigDictionary *const big_;
};

// A chunk that is decoded in consecutive ranges of rows.
class ChunkStream : private KeptSpace {
   public:
    // `job` specifies the chunk. Between two ranges, at most `most_kept` bytes each remain in memory of a page that has rows
    // of both, and of the dictionary.
    ChunkStream(const Source &source, const ChunkJob &job, int64_t num_rows, int64_t window, int64_t most_kept,
                BigDictionary *big = nullptr)
        : KeptSpace(job.decompressor, most_kept, big),
          reader_(space_, ChunkBytes(space_.chunk, source, job.offset, job.size, window), job.codec, job.layout, job.most_level,
                  num_rows, nullptr, 0) {}

    // Decode the rows from `first`, which follow the rows decoded before, up to `stop`. `keep` is a mask of these rows.
    void run(Workspace &space, int64_t first, int64_t stop, const uint64_t *keep, int64_t num_kept, int64_t most_text,
             bool with_dictionary, ChunkJob &job) {
        if (!has_page_) space_.swap_page(space);
        work_like(space);
        const Status status = reader_.begin(first, stop, keep, num_kept);
        if (status == PAGE) read_rows(reader_, stop, num_kept, most_text, job);
        else job.status = status;
        if (job.status == DONE && with_dictionary) job.status = keep_dictionary(reader_, job);
        // reading the dictionary again would overwrite the page
        has_page_ = job.status == DONE && reader_.has_more_of_page() && keeps_dictionary() && keeps_page();
        if (!has_page_) {
            reader_.drop_page();
            space_.swap_page(space);
        }
        drop_big_dictionary(reader_);
    }

   private:
    ChunkReader reader_;
    bool has_page_ = false;
};

}  // namespace delta_parquet
