// Values and lists that files of version 2.0 describe by where they end, and texts of FSST.
#pragma once

#include <cstdint>

#include "blocks.h"
#include "codings.h"

namespace delta_lance {

// Ranges of rows of a page, whose ends were read one after the other; before all but a range at row 0 there is the end of the
// row before.
struct EndRange {
    uint64_t rows;
    bool has_before;
};

struct Ends {
    Block offsets;
    Bits valid;
    std::vector<uint64_t> spans;  // first and last byte (or item) of each range

    // An end that is at least `adjustment` is that of a null row, plus the adjustment. `limit` is where the values of the page
    // end.
    Error read(const uint8_t *ends, uint64_t n, const std::vector<EndRange> &ranges, uint64_t adjustment, uint64_t limit, bool is_wide) {
        if (!adjustment && n) return "nulls are not distinguished from values";
        uint64_t rows = 0, needed = 0;
        for (const EndRange &range : ranges) {
            if (range.rows > n || rows > n - range.rows) return SHORT;
            rows += range.rows;
            needed += range.rows + range.has_before;
        }
        if (needed != n) return SHORT;
        const uint64_t width = is_wide ? 8 : 4;
        if (!offsets.reserve((rows + 1) * width)) return NO_MEMORY;
        offsets.set_size((rows + 1) * width);
        if (is_wide) return read_ranges<int64_t>(ends, ranges, adjustment, limit);
        return read_ranges<int32_t>(ends, ranges, adjustment, limit);
    }

   private:
    static constexpr char SHORT[] = "fewer ends of values were read than rows are requested";

    template <class T>
    Error read_ranges(const uint8_t *ends, const std::vector<EndRange> &ranges, uint64_t adjustment, uint64_t limit) {
        static constexpr uint64_t MOST = sizeof(T) == 4 ? INT32_MAX : INT64_MAX;
        T *to = offsets.as<T>();
        uint64_t total = 0;
        *to++ = 0;
        for (const EndRange &range : ranges) {
            uint64_t before = 0;
            if (range.has_before) {
                before = load<uint64_t>(ends);
                before = before >= adjustment ? before - adjustment : before;
                ends += 8;
            }
            if (before > limit) return OUTSIDE;
            const uint64_t first = before;
            uint64_t nulls = 0;
            bool good = true;
            const uint64_t shift = total - first;
            uint64_t last = before;
            for (uint64_t i = 0; i < range.rows; i++) {
                const uint64_t stored = load<uint64_t>(ends + 8 * i);
                const bool is_null = stored >= adjustment;
                const uint64_t end = is_null ? stored - adjustment : stored;
                nulls += is_null;
                good &= end >= last;
                last = end;
                to[i] = static_cast<T>(end + shift);
            }
            if (!good || last > limit) return OUTSIDE;
            if (last - first > MOST || total > MOST - (last - first)) return TOO_LONG;
            total += last - first;
            if (!nulls) {
                if (!valid.append_ones(range.rows)) return NO_MEMORY;
            } else {
                for (uint64_t i = 0; i < range.rows; i++)
                    if (!valid.append_bit(load<uint64_t>(ends + 8 * i) < adjustment)) return NO_MEMORY;
            }
            ends += 8 * range.rows;
            to += range.rows;
            spans.push_back(first);
            spans.push_back(last);
        }
        return nullptr;
    }

    static constexpr char OUTSIDE[] = "ends of values do not rise, or lie after their bytes";
};

}  // namespace delta_lance
