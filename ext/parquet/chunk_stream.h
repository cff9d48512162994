// Column chunks decoded one range of rows after the other.
#pragma once

#include <cstdint>

#include "chunk_jobs.h"

namespace delta_parquet {

// Which of some chunks keeps a dictionary however big it is: to read it again for each stretch takes much longer, and it is
// in memory with its page anyway while it is read.
struct BigDictionary {
    const void *owner = nullptr;
};

// What a chunk that is decoded one stretch of its rows after the other keeps in between.
class KeptSpace {
   protected:
    KeptSpace(void *decompressor, int64_t most_kept, BigDictionary *big = nullptr)
        : decompressor_(decompressor), most_kept_(most_kept), big_(big) {}

    // Decompress pages as in another workspace, and count them there.
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

// A chunk that is decoded one stretch of its rows after the other.
class ChunkStream : private KeptSpace {
   public:
    // `job` specifies the chunk. Of a page that has rows of two stretches, and of the dictionary, no more than `most_kept`
    // bytes each stay in memory in between.
    ChunkStream(const Source &source, const ChunkJob &job, int64_t num_rows, int64_t window, int64_t most_kept,
                BigDictionary *big = nullptr)
        : KeptSpace(job.decompressor, most_kept, big),
          reader_(space_, ChunkBytes(space_.chunk, source, job.offset, job.size, window), job.codec, job.layout, job.most_level,
                  num_rows, nullptr, 0) {}

    // Decode the rows from `first`, behind those before, up to `stop`; `keep` is a mask of these.
    void run(Workspace &space, int64_t first, int64_t stop, const uint64_t *keep, int64_t num_kept, int64_t most_text,
             bool with_dictionary, ChunkJob &job) {
        if (!has_page_) space_.swap_page(space);
        work_like(space);
        const Status status = reader_.begin(first, stop, keep, num_kept);
        if (status == PAGE) read_rows(reader_, stop, num_kept, most_text, job);
        else job.status = status;
        if (job.status == DONE && with_dictionary) job.status = keep_dictionary(reader_, job);
        // to read the dictionary again would overwrite the page
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
