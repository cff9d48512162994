// Page headers (PageHeader of parquet.thrift).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "thrift.h"

namespace delta_parquet {

enum PageType { DATA_PAGE = 0, DICTIONARY_PAGE = 2, DATA_PAGE_V2 = 3 };
enum Encoding {
    PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, DELTA_BINARY_PACKED = 5, DELTA_LENGTH_BYTE_ARRAY = 6, DELTA_BYTE_ARRAY = 7,
    RLE_DICTIONARY = 8, BYTE_STREAM_SPLIT = 9
};

// Return whether the checksums of pages are compared, if they have one.
inline bool checks_pages() {
    static const bool found = [] {
        const char *const given = std::getenv("DELTA_CORE_PAGE_CHECKSUMS");
        return !given || std::strcmp(given, "ignore");
    }();
    return found;
}

struct PageHeader {
    int64_t type = -1, uncompressed = -1, compressed = -1;
    int64_t num_values = -1, encoding = -1, level_encoding = RLE, repetition_encoding = RLE;
    int64_t definition_bytes = 0, repetition_bytes = 0;
    int64_t checksum = 0;
    bool is_compressed = true, has_checksum = false;
};

class PageHeaderReader : public ThriftReader {
   public:
    using ThriftReader::ThriftReader;

    bool page_header(PageHeader &page) {
        const bool good = each_field([&](int16_t id, int type) {
            if (id == 1 && type == I32) return number(page.type);
            if (id == 2 && type == I32) return number(page.uncompressed);
            if (id == 3 && type == I32) return number(page.compressed);
            if (id == 4 && type == I32) return page.has_checksum = number(page.checksum);
            if ((id == 5 || id == 7 || id == 8) && type == STRUCT) return values_header(page, id);
            return skip(type);
        });
        return good && page.type >= 0 && page.uncompressed >= 0 && page.compressed >= 0;
    }

   private:
    // DataPageHeader (field 5), DictionaryPageHeader (7) or DataPageHeaderV2 (8).
    bool values_header(PageHeader &page, int16_t kind) {
        const bool good = each_field([&](int16_t id, int type) {
            if (id == 1 && type == I32) return number(page.num_values);
            if (id == (kind == 8 ? 4 : 2) && type == I32) return number(page.encoding);
            if (kind == 5 && id == 3 && type == I32) return number(page.level_encoding);
            if (kind == 5 && id == 4 && type == I32) return number(page.repetition_encoding);
            if (kind == 8 && id == 5 && type == I32) return number(page.definition_bytes);
            if (kind == 8 && id == 6 && type == I32) return number(page.repetition_bytes);
            if (kind == 8 && id == 7 && (type == TRUE || type == FALSE)) return (page.is_compressed = type == TRUE), true;
            return skip(type);
        });
        return good && page.num_values >= 0 && page.encoding >= 0;
    }
};

}  // namespace delta_parquet
