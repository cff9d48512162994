// JSON statistics to typed columns: one pass over the text of each row for all requested fields.
//
// A bound that can't be parsed is null, and so are all fields of a row whose structure is invalid. Of members that are not
// requested, only quotes and brackets are examined.
#pragma once

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "arrow_out.h"
#include "json_scan.h"

namespace delta_json {

// 'l' int64 (of `precision` bits), 'd'ouble, 'f'loat, 'b'oolean, 's'tring, 'D'ate, 'T'imestamp in UTC, 'N': timestamp without zone, 'm': decimal,
// 'p': true if any value but null is there.
struct StatField {
    char type;
    int precision, scale;
};

struct StatNode {
    std::string name;
    int field = -1;
    std::vector<int> children;
};

// The requested paths as a tree. Node 0 is the statistics object itself.
struct StatTree {
    std::vector<StatNode> nodes = std::vector<StatNode>(1);
    std::vector<StatField> fields;

    int child(int parent, const std::string &name) {
        for (int c : nodes[static_cast<size_t>(parent)].children)
            if (nodes[static_cast<size_t>(c)].name == name) return c;
        int made = static_cast<int>(nodes.size());
        nodes.push_back({name, -1, {}});
        nodes[static_cast<size_t>(parent)].children.push_back(made);
        return made;
    }
    // Returns false if the node has a field already.
    bool set_field(int node, char type, int precision, int scale) {
        if (nodes[static_cast<size_t>(node)].field >= 0) return false;
        nodes[static_cast<size_t>(node)].field = static_cast<int>(fields.size());
        fields.push_back({type, precision, scale});
        return true;
    }
};

// The rows of an Arrow string array with 32-bit or 64-bit offsets.
struct Texts {
    const char *text = nullptr;
    size_t text_bytes = 0;
    const void *offsets = nullptr;
    bool large = false;
    const uint8_t *valid = nullptr;
    size_t first = 0;  // the offset of the array itself
    size_t rows = 0;

    bool is_valid(size_t row) const { return !valid || (valid[(first + row) >> 3] >> ((first + row) & 7) & 1); }
    int64_t offset(size_t row) const {
        return large ? static_cast<const int64_t *>(offsets)[first + row]
                     : static_cast<const int32_t *>(offsets)[first + row];
    }
};

struct Span {
    const char *p;
    const char *end;

    bool take(char c) {
        if (p == end || *p != c) return false;
        ++p;
        return true;
    }
    bool two_digits(int &out) {
        if (end - p < 2 || !is_digit(p[0]) || !is_digit(p[1])) return false;
        out = (p[0] - '0') * 10 + (p[1] - '0');
        p += 2;
        return true;
    }
};

inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

// Return the days since 1970-01-01 of [+-]Y{4,6}-MM-DD in the proleptic Gregorian calendar.
inline bool parse_date(Span &s, int64_t &days) {
    bool negative = s.take('-');
    if (!negative) s.take('+');
    int64_t year = 0;
    int digits = 0, month, day;
    for (; s.p < s.end && is_digit(*s.p) && digits < 7; ++digits) year = year * 10 + (*s.p++ - '0');
    if (digits < 4 || digits > 6 || !s.take('-') || !s.two_digits(month) || !s.take('-') || !s.two_digits(day)) return false;
    if (negative) year = -year;
    static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (month < 1 || month > 12 || day < 1 || day > kDays[month - 1] + (leap && month == 2)) return false;
    if (month < 3) {  // years are counted from March, so that the leap day is their last day
        month += 12;
        --year;
    }
    days = 365 * year + floor_div(year, 4) - floor_div(year, 100) + floor_div(year, 400) + (153 * (month - 3) + 2) / 5 +
           day - 719469;
    return true;
}

// Return the offset of a time zone from UTC in minutes: Z, +HH, +HHMM, +HH:MM.
inline bool parse_zone(Span &s, int &minutes) {
    minutes = 0;
    if (s.take('Z')) return true;
    bool west = s.take('-');
    if (!west && !s.take('+')) return false;
    int hour, minute = 0;
    if (!s.two_digits(hour)) return false;
    bool colon = s.take(':');
    if ((colon || s.p < s.end) && !s.two_digits(minute)) return false;
    if (hour > 18 || minute > 59) return false;
    minutes = (hour * 60 + minute) * (west ? -1 : 1);
    return true;
}

// Return the microseconds since the epoch, rounded down; text without a zone is in UTC.
inline bool parse_timestamp(Span s, bool zoned, int64_t &us) {
    int64_t days;
    int hour, minute, second = 0, zone = 0;
    if (!parse_date(s, days) || (!s.take('T') && !s.take(' '))) return false;
    if (!s.two_digits(hour) || !s.take(':') || !s.two_digits(minute)) return false;
    int64_t fraction = 0;
    if (s.take(':')) {
        if (!s.two_digits(second)) return false;
        if (s.take('.')) {
            int digits = 0;
            for (; s.p < s.end && is_digit(*s.p); ++s.p)
                if (digits < 6) {
                    fraction = fraction * 10 + (*s.p - '0');
                    ++digits;
                }
            for (; digits < 6; ++digits) fraction *= 10;
        }
    }
    if (hour > 23 || minute > 59 || second > 59) return false;
    if (s.p < s.end && (!parse_zone(s, zone) || s.p < s.end)) return false;
    if (zone && !zoned) return false;  // the local time that it represents is unknown
    int64_t seconds = days * 86400 + hour * 3600 + (minute - zone) * 60 + second;
    return !__builtin_mul_overflow(seconds, int64_t{1000000}, &us) && !__builtin_add_overflow(us, fraction, &us);
}

template <class T>
bool parse_float(Span s, T &out) {
    std::string_view text(s.p, static_cast<size_t>(s.end - s.p));
    bool negative = !text.empty() && text[0] == '-';
    if (s.p + negative < s.end && is_digit(s.p[negative])) {
        auto [end, error] = std::from_chars(s.p, s.end, out);
        return error == std::errc() && end == s.end;
    }
    if (text == "NaN") out = std::numeric_limits<T>::quiet_NaN();
    else if (text == "Infinity") out = std::numeric_limits<T>::infinity();
    else if (text == "-Infinity") out = -std::numeric_limits<T>::infinity();
    else return false;
    return true;
}

inline size_t width_of(char type) {
    switch (type) {
        case 'f': case 'D': return 4;
        case 'm': return 16;
        default: return 8;
    }
}

// The columns of all fields over all rows. Threads fill ranges of rows that share no byte.
struct StatColumns {
    struct Data {
        Bytes values;  // of strings: offsets
        Bytes valid;
        Bytes text;
    };
    std::vector<Data> fields;
    size_t rows = 0;

    StatColumns(const StatTree &tree, size_t n) : fields(tree.fields.size()), rows(n) {
        for (size_t i = 0; i < fields.size(); ++i) {
            char type = tree.fields[i].type;
            fields[i].valid.zeros_to((n + 7) / 8);
            fields[i].values.zeros_to(type == 'b' || type == 'p' ? (n + 7) / 8 : type == 's' ? (n + 1) * 4 : n * width_of(type));
        }
    }
    void set_valid(size_t field, size_t row) { fields[field].valid.data()[row >> 3] |= static_cast<char>(1 << (row & 7)); }
    void set_null(size_t field, size_t row) { fields[field].valid.data()[row >> 3] &= static_cast<char>(~(1 << (row & 7))); }
    template <class T>
    void set(size_t field, size_t row, T value) {
        std::memcpy(fields[field].values.data() + row * sizeof(T), &value, sizeof(T));
        set_valid(field, row);
    }

    void export_all(const StatTree &tree, ArrowArray *out) {
        Export batch;
        batch.no_buffer();
        batch.reserve_children(fields.size());
        for (size_t i = 0; i < fields.size(); ++i) {
            Export array;
            size_t nulls = rows - count_valid(fields[i].valid);
            nulls ? array.buffer(fields[i].valid) : array.no_buffer();
            array.buffer(fields[i].values);
            if (tree.fields[i].type == 's') array.buffer(fields[i].text);
            array.finish(rows, nulls, batch.child());
        }
        batch.finish(rows, 0, out);
    }

   private:
    static size_t count_valid(const Bytes &bits) {
        size_t count = 0;
        for (size_t i = 0; i < bits.size(); ++i)
            count += static_cast<size_t>(__builtin_popcount(static_cast<unsigned char>(bits.data()[i])));
        return count;
    }
};

// Reads a range of rows. Outside of this object, it writes only to the elements of its rows in `columns`.
class StatReader {
   public:
    StatReader(const StatTree &tree, const Texts &texts, StatColumns &columns)
        : tree_(tree), texts_(texts), columns_(columns), seen_(tree.nodes.size(), kNever), links_(tree.nodes.size()),
          known_(tree.nodes.size()), string_of_(tree.fields.size(), 0), readable_(texts.text + texts.text_bytes) {
        for (size_t i = 0; i < tree.nodes.size(); ++i)
            for (int child : tree.nodes[i].children) {
                const std::string &name = tree.nodes[static_cast<size_t>(child)].name;
                known_[i].emplace(name, new_link(name, child));
            }
        for (size_t i = 0; i < tree.fields.size(); ++i)
            if (tree.fields[i].type == 's') {
                string_of_[i] = strings_.size();
                strings_.push_back({i, {}, Bytes()});
            }
    }

    // Returns false if the offsets of the array are outside of its text.
    bool read(size_t first, size_t last) {
        for (row_ = first; row_ < last; ++row_) {
            int64_t begin = texts_.offset(row_), end = texts_.offset(row_ + 1);
            if (begin < 0 || end < begin || static_cast<uint64_t>(end) > texts_.text_bytes) return false;
            if (begin < end && texts_.is_valid(row_)) {
                Scanner s(texts_.text + begin, static_cast<size_t>(end - begin), readable_);
                s.space();
                bool whole = walk(s, 0);
                if (whole) s.space();
                if (!whole || s.p != s.end)
                    for (size_t i = 0; i < tree_.fields.size(); ++i) columns_.set_null(i, row_);
            }
            for (StringField &string : strings_) end_row(string);
        }
        return true;
    }

    // Append the text of this range to that of all earlier rows.
    void join(size_t first, size_t last) {
        for (StringField &string : strings_) {
            Bytes &text = columns_.fields[string.field].text;
            int32_t *offsets = reinterpret_cast<int32_t *>(columns_.fields[string.field].values.data());
            if (text.size() + string.text.size() > INT32_MAX) throw std::length_error("a string column holds at most 2 GiB");
            if (int32_t base = static_cast<int32_t>(text.size())) {
                for (size_t row = first; row < last; ++row) offsets[row + 1] += base;
                text.append(string.text.data(), string.text.size());
            } else {
                text = std::move(string.text);
            }
        }
    }

   private:
    static constexpr size_t kNever = ~size_t{0}, kHead = 32;

    struct StringField {
        size_t field;
        Slice value;  // of the current row
        Bytes text;
    };

    // A key of an object, and the key that followed it most recently. As writers use a constant order of keys, a key is
    // mostly recognised by one comparison with the expected one.
    struct Link {
        std::string text;  // the key with its quotes and the colon
        int child = 0;     // 0, the root, is no child of another node: not requested
        int next = 0;      // 0, the root's head, follows no key
        uint32_t mask = 0;
        char head[kHead] = {};

        void set(const std::string &key, int node) {
            text = key;
            child = node;
            std::memcpy(head, text.data(), std::min(text.size(), kHead));
            mask = text.size() >= kHead ? ~uint32_t{0} : (uint32_t{1} << text.size()) - 1;
        }
        bool at(const Scanner &s) const {
            if (static_cast<size_t>(s.end - s.p) < text.size()) return false;
#if defined(__SSE2__)
            if (text.size() <= kHead && s.readable - s.p >= static_cast<ptrdiff_t>(kHead)) {
                auto same = [&](size_t i) {
                    __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i *>(s.p + i));
                    __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i *>(head + i));
                    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(a, b)));
                };
                return ((same(0) | same(16) << 16) & mask) == mask;
            }
#endif
            return std::memcmp(s.p, text.data(), text.size()) == 0;
        }
    };

    // Read the members of an object. Precondition: p is at its '{'.
    bool walk(Scanner &s, int parent) {
        int at = parent;  // the link of a node leads to the first key of its objects
        if (!s.take('{', "'{'")) return false;
        s.space();
        if (s.peek() == '}') {
            ++s.p;
            return true;
        }
        for (;;) {
            int child, expected = links_[static_cast<size_t>(at)].next;
            if (expected && links_[static_cast<size_t>(expected)].at(s)) {
                const Link &link = links_[static_cast<size_t>(expected)];
                s.p += link.text.size();
                if (s.peek() <= ' ') s.space();
                child = link.child;
                at = expected;
            } else {
                Slice key;
                if (!s.key(key)) return false;
                child = look_up(key, parent, at);
            }
            if (!(child ? member(s, child) : pass(s))) return false;
            if (s.peek() != ',' && s.peek() != '}') s.space();
            if (s.peek() == '}') {
                ++s.p;
                return true;
            }
            if (!s.take(',', "',' or '}'")) return false;
            if (s.peek() != '"') s.space();
        }
    }

    // Return the child of that name, or 0. The key is stored as the one that follows link `at`, which becomes its link.
    int look_up(Slice &key, int parent, int &at) {
        constexpr size_t kKeysKept = 4096;
        auto &known = known_[static_cast<size_t>(parent)];
        scratch_.resize(key.size() + kUnescapeSlack);
        char *end = unescape(key, scratch_.data(), key.end);
        if (!end) return 0;
        scratch_.resize(static_cast<size_t>(end - scratch_.data()));
        auto found = known.find(scratch_);
        if (found == known.end()) {
            if (known.size() >= kKeysKept || key.escaped) return 0;
            found = known.emplace(scratch_, new_link(scratch_, 0)).first;
        }
        if (!key.escaped) {
            links_[static_cast<size_t>(at)].next = found->second;
            at = found->second;
        }
        return links_[static_cast<size_t>(found->second)].child;
    }

    int new_link(const std::string &name, int child) {
        links_.emplace_back();
        links_.back().set('"' + name + "\":", child);
        return static_cast<int>(links_.size()) - 1;
    }

    bool member(Scanner &s, int index) {
        size_t &seen = seen_[static_cast<size_t>(index)];
        if (seen == row_) forget(index);
        seen = row_;
        const StatNode &node = tree_.nodes[static_cast<size_t>(index)];
        int c = s.peek();
        if (node.field >= 0 && tree_.fields[static_cast<size_t>(node.field)].type == 'p') {
            if (c != 'n') set_bool(static_cast<size_t>(node.field), true);
            return c == '{' && !node.children.empty() ? walk(s, index) : pass(s);
        }
        if (c == '{' && !node.children.empty()) return walk(s, index);
        if (node.field < 0 || c == '{' || c == '[') return pass(s);
        return value(s, static_cast<size_t>(node.field));
    }

    // A key occurs twice: the last one counts, so the bound of the first one is removed.
    void forget(int index) {
        const StatNode &node = tree_.nodes[static_cast<size_t>(index)];
        if (node.field >= 0) columns_.set_null(static_cast<size_t>(node.field), row_);
        for (int child : node.children) forget(child);
    }

    bool value(Scanner &s, size_t field) {
        Slice text;
        bool quoted = s.peek() == '"';
        if (quoted) {
            if (!s.string(text)) return false;
        } else {
            text.begin = s.p;
            if (!bare(s)) return false;
            text.end = s.p;
        }
        const StatField &asked = tree_.fields[field];
        Span span{text.begin, text.end};
        if (asked.type == 's') {
            if (quoted) {
                strings_[string_of_[field]].value = text;
                columns_.set_valid(field, row_);
            }
            return true;
        }
        if (!text.escaped) scalar(span, quoted, asked, field);
        return true;
    }

    void scalar(Span text, bool quoted, const StatField &asked, size_t field) {
        int64_t whole;
        switch (asked.type) {
            case 'l':
                if (parse_int64(text.p, text.end, whole) && whole >> (asked.precision - 1) == (whole < 0 ? -1 : 0))
                    columns_.set(field, row_, whole);
                break;
            case 'd': {
                double number;
                if (parse_float(text, number)) columns_.set(field, row_, number);
                break;
            }
            case 'f': {
                float number;
                if (parse_float(text, number)) columns_.set(field, row_, number);
                break;
            }
            case 'b': {
                std::string_view word(text.p, static_cast<size_t>(text.end - text.p));
                if (quoted || (word != "true" && word != "false")) break;
                set_bool(field, word == "true");
                break;
            }
            case 'D':
                if (quoted && parse_date(text, whole) && text.p == text.end) columns_.set(field, row_, static_cast<int32_t>(whole));
                break;
            case 'T': case 'N':
                if (quoted && parse_timestamp(text, asked.type == 'T', whole)) columns_.set(field, row_, whole);
                break;
            default: {
                Decimal number;
                __int128 unscaled;
                if (number.parse(text.p, text.end) && number.scaled(asked.precision, asked.scale, unscaled))
                    columns_.set(field, row_, unscaled);
            }
        }
    }

    void set_bool(size_t field, bool value) {
        char &bits = columns_.fields[field].values.data()[row_ >> 3];
        char bit = static_cast<char>(1 << (row_ & 7));
        bits = static_cast<char>(value ? bits | bit : bits & ~bit);
        columns_.set_valid(field, row_);
    }

    void end_row(StringField &string) {
        size_t field = string.field;
        if (columns_.fields[field].valid.data()[row_ >> 3] >> (row_ & 7) & 1) {
            Slice &value = string.value;
            char *out = string.text.room(value.size() + kUnescapeSlack), *end = out + value.size();
            if (value.escaped) end = unescape(value, out, readable_);
            else std::memcpy(out, value.begin, value.size());
            // half a surrogate pair, or bytes that are not UTF-8: no bound
            if (end && (is_ascii(out, end) || !invalid_utf8(out, end))) string.text.advance(static_cast<size_t>(end - out));
            else columns_.set_null(field, row_);
        }
        if (string.text.size() > INT32_MAX) throw std::length_error("a string column holds at most 2 GiB");
        int32_t offset = static_cast<int32_t>(string.text.size());
        std::memcpy(columns_.fields[field].values.data() + (row_ + 1) * sizeof offset, &offset, sizeof offset);
    }

    // Read a token without quotes: numbers, words, also NaN, which JSON does not define.
    static bool bare(Scanner &s) {
        const char *start = s.p;
#if defined(__SSE2__)
        while (s.p < s.end && s.readable - s.p >= 16) {
            __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i *>(s.p));
            __m128i edge = _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8('+')), _mm_cmpgt_epi8(v, _mm_set1_epi8('z')));
            __m128i mark = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(',')), _mm_cmpeq_epi8(v, _mm_set1_epi8(':')));
            unsigned stop = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(edge, mark)));
            s.p += stop ? __builtin_ctz(stop) : 16;
            if (stop) break;
        }
        if (s.p > s.end) s.p = s.end;
#endif
        for (; s.p < s.end && *s.p >= '+' && *s.p <= 'z' && *s.p != ',' && *s.p != ':'; ++s.p) {}
        return s.p > start || s.fail("a JSON value");
    }

    static uint64_t prefix_xor(uint64_t bits) {
        for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
        return bits;
    }

    // Skip a value; only quotes and brackets are examined.
    static bool pass(Scanner &s) {
        int c = s.peek();
        Slice ignored;
        if (c == '"') return s.string(ignored);
        if (c != '{' && c != '[') return bare(s);
        const char *q = s.p;
        int64_t depth = 0;
        uint64_t escape = 0, inside = 0;
#if defined(__SSE2__)
        for (; q < s.end && s.readable - q >= 64; q += 64) {
            Block block(q);
            uint64_t quotes = block.equal('"'), slashes = block.equal('\\');
            if (slashes | escape) quotes &= ~escaped_bytes(slashes, escape);
            uint64_t text = prefix_xor(quotes) ^ inside;
            inside = uint64_t{0} - (text >> 63);
            uint64_t opening = (block.equal('{') | block.equal('[')) & ~text;
            uint64_t closing = (block.equal('}') | block.equal(']')) & ~text;
            for (uint64_t both = opening | closing; both; both &= both - 1) {
                if (opening & both & -both) {
                    ++depth;
                } else if (--depth == 0) {
                    q += __builtin_ctzll(both) + 1;
                    if (q > s.end) return s.fail("a closing bracket");
                    s.p = q;
                    return true;
                }
            }
        }
#endif
        for (; q < s.end; ++q) {
            if (escape) escape = 0;
            else if (*q == '\\') escape = inside & 1;
            else if (*q == '"') inside = ~inside;
            else if (!inside && (*q == '{' || *q == '[')) ++depth;
            else if (!inside && (*q == '}' || *q == ']') && --depth == 0) {
                s.p = q + 1;
                return true;
            }
        }
        return s.fail("a closing bracket");
    }

    const StatTree &tree_;
    const Texts &texts_;
    StatColumns &columns_;
    std::vector<size_t> seen_;  // for each node: the last row that contains it
    std::vector<Link> links_;   // the first ones are those of the nodes
    std::vector<std::unordered_map<std::string, int>> known_;  // for each node: the links of the keys of its objects
    std::vector<StringField> strings_;
    std::vector<size_t> string_of_;
    std::string scratch_;
    const char *readable_;
    size_t row_ = 0;
};

// Fill the columns of all rows. Returns false if the offsets of the array are outside of its text.
inline bool read_stats(const StatTree &tree, const Texts &texts, int threads, ArrowArray *out) {
    constexpr size_t kWorthAThread = 16384, kAlign = 512;  // ranges of rows share no byte of a bitmap, nor a cache line
    size_t rows = texts.rows;
    size_t parts = threads < 2 ? 1 : std::min(static_cast<size_t>(threads), rows / kWorthAThread + 1);
    StatColumns columns(tree, rows);
    std::vector<std::unique_ptr<StatReader>> readers;
    for (size_t i = 0; i < parts; ++i) readers.push_back(std::make_unique<StatReader>(tree, texts, columns));
    auto edge = [&](size_t part) { return part == parts ? rows : rows * part / parts / kAlign * kAlign; };
    std::vector<char> sound(parts, 0), failed(parts, 0);
    auto work = [&](size_t part) {
        try {
            sound[part] = readers[part]->read(edge(part), edge(part + 1));
        } catch (...) {
            failed[part] = 1;
        }
    };
    std::vector<std::thread> pool;
    size_t started = 1;
    try {
        for (; started < parts; ++started) pool.emplace_back(work, started);
    } catch (...) {  // no further thread can be started: the calling thread reads the remaining rows
    }
    work(0);
    for (size_t part = started; part < parts; ++part) work(part);
    for (std::thread &thread : pool) thread.join();
    for (size_t part = 0; part < parts; ++part)
        if (failed[part]) throw std::bad_alloc();
    for (size_t part = 0; part < parts; ++part)
        if (!sound[part]) return false;
    for (size_t part = 0; part < parts; ++part) readers[part]->join(edge(part), edge(part + 1));
    columns.export_all(tree, out);
    return true;
}

}  // namespace delta_json
