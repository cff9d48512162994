// Arrow columns to lines of JSON. One pass measures and checks the values, a second one writes into memory of exactly that
// size.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace delta_json {

enum class Shape { Null, Bool, Int, UInt, Float, Digits, String, List, Map, Struct };
enum class Trouble { None, Utf8, Key, Number, Space };

// One array. Precondition: the buffers contain `offset + length` values.
struct Node {
    Shape shape = Shape::Null;
    int width = 0;                   // bytes of a value, or of an offset
    std::string label;               // "name": as the line contains it
    const uint8_t *valid = nullptr;  // null: every value is valid
    const char *values = nullptr;    // numbers, bits, or offsets (of digits: numbers as text)
    const char *text = nullptr;
    int64_t offset = 0, length = 0;
    std::vector<Node> children;

    bool is_null(int64_t row) const {
        if (shape == Shape::Null) return true;
        int64_t bit = offset + row;
        return valid && !(valid[bit >> 3] >> (bit & 7) & 1);
    }
    template <class T>
    T value(int64_t row) const {
        T out;
        std::memcpy(&out, values + (offset + row) * static_cast<int64_t>(sizeof(T)), sizeof(T));
        return out;
    }
    int64_t place(int64_t row) const { return width == 8 ? value<int64_t>(row) : value<int32_t>(row); }
    // Return whether the offsets ascend and the last one is at most `most`.
    bool offsets_fit(int64_t most) const {
        int64_t last = place(0), bad = last < 0;
        for (int64_t i = 1; i <= length; ++i) {
            int64_t next = place(i);
            bad |= next < last;
            last = next;
        }
        return !bad && last <= most;
    }
};

struct Failure {
    Trouble trouble = Trouble::None;
    int64_t row = 0;
    std::string where;  // the label of the column
};

inline uint64_t load8(const char *p) {
    uint64_t out;
    std::memcpy(&out, p, 8);
    return out;
}

// Return the high bit of each byte that has to be escaped: bytes below 0x20, quotes and backslashes.
inline uint64_t escapes(uint64_t word) {
    constexpr uint64_t ones = 0x0101010101010101u, high = ones * 0x80;
    uint64_t quote = word ^ (ones * 0x22), slash = word ^ (ones * 0x5c);
    // exact for each byte below 0x80, and 0 for the others: the low seven bits can't carry into the next byte
    uint64_t low = ~high;
    uint64_t not_quote = ((quote & low) + low) | quote, not_slash = ((slash & low) + low) | slash;
    uint64_t printable = ((word & low) + ones * 0x60) | word;
    return high & ~(not_quote & not_slash & printable);
}

// Return the length of the UTF-8 sequence at p, 0 if the bytes there are no valid sequence.
inline int sequence(const unsigned char *p, const unsigned char *end) {
    auto tail = [&](int i) { return p + i < end && (p[i] & 0xc0) == 0x80; };
    if (p[0] < 0x80) return 1;
    if (p[0] >= 0xc2 && p[0] < 0xe0) return tail(1) ? 2 : 0;
    if (p[0] >= 0xe0 && p[0] < 0xf0) {
        if (!tail(1) || !tail(2)) return 0;
        return (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ? 0 : 3;
    }
    if (p[0] >= 0xf0 && p[0] < 0xf5) {
        if (!tail(1) || !tail(2) || !tail(3)) return 0;
        return (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90) ? 0 : 4;
    }
    return 0;
}

inline char short_escape(char c) {
    switch (c) {
        case '"': return '"';
        case '\\': return '\\';
        case '\n': return 'n';
        case '\r': return 'r';
        case '\t': return 't';
        case '\b': return 'b';
        case '\f': return 'f';
        default: return 0;
    }
}

class Counter {
   public:
    int64_t size = 0;
    bool raw(const char *, size_t n) {
        size += static_cast<int64_t>(n);
        return true;
    }
    Trouble text(const char *p, size_t n) {
        size_t escaped = 0;
        unsigned odd = 0;
        for (size_t i = 0; i < n; ++i) {  // without branches, so that compilers vectorise it
            unsigned char c = static_cast<unsigned char>(p[i]);
            escaped += (c == '"') | (c == '\\');
            odd |= (c < 0x20) | (c >= 0x80);
        }
        size += static_cast<int64_t>(n + escaped);
        return odd ? odd_text(p, n) : Trouble::None;
    }

   private:
    Trouble odd_text(const char *p, size_t n) {
        auto *at = reinterpret_cast<const unsigned char *>(p), *end = at + n;
        while (at < end) {
            if (*at < 0x20) size += short_escape(static_cast<char>(*at)) ? 1 : 5;
            int step = sequence(at, end);
            if (!step) return Trouble::Utf8;
            at += step;
        }
        return Trouble::None;
    }
};

class Writer {
   public:
    Writer(char *out, char *end) : out_(out), end_(end) {}
    bool full() const { return out_ == end_; }
    bool raw(const char *p, size_t n) {
        if (static_cast<size_t>(end_ - out_) < n) return false;
        std::memcpy(out_, p, n);
        out_ += n;
        return true;
    }
    Trouble text(const char *p, size_t n) {
        const char *end = p + n;
        while (p < end) {
            if (end - p >= 8 && end_ - out_ >= 8) {
                uint64_t word = load8(p), found = escapes(word);
                std::memcpy(out_, &word, 8);
                int plain = found ? first_byte(found) : 8;
                out_ += plain;
                p += plain;
                if (!found) continue;
            } else if (!escapes(static_cast<unsigned char>(*p) | 0x6161616161616100u)) {
                if (!raw(p++, 1)) return Trouble::Space;
                continue;
            }
            if (!escape(*p++)) return Trouble::Space;
        }
        return Trouble::None;
    }

   private:
    static int first_byte(uint64_t flags) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        return __builtin_clzll(flags) / 8;
#else
        return __builtin_ctzll(flags) / 8;
#endif
    }
    bool escape(char c) {
        if (char letter = short_escape(c)) {
            const char pair[2] = {'\\', letter};
            return raw(pair, 2);
        }
        const char *digits = "0123456789abcdef";
        const char six[6] = {'\\', 'u', '0', '0', digits[c >> 4 & 15], digits[c & 15]};
        return raw(six, 6);
    }

    char *out_, *end_;
};

template <class Out>
class Lines {
   public:
    Lines(const std::string &head, const std::string &tail, const Node &table, Out &out)
        : head_(head), tail_(tail), table_(table), out_(out) {}

    bool run(Failure &failure) {
        for (int64_t row = 0; row < table_.length; ++row) {
            where_ = &table_;
            Trouble trouble = put(head_);
            if (trouble == Trouble::None) trouble = fields(table_, row);
            if (trouble == Trouble::None) trouble = put(tail_);
            if (trouble != Trouble::None) {
                failure = {trouble, row, where_->label};
                return false;
            }
        }
        return true;
    }

   private:
    Trouble put(const char *p, size_t n) { return out_.raw(p, n) ? Trouble::None : Trouble::Space; }
    Trouble put(const std::string &s) { return put(s.data(), s.size()); }

    // An object. Fields whose value is null are omitted.
    Trouble fields(const Node &node, int64_t row) {
        Trouble trouble = put("{", 1);
        bool first = true;
        for (const Node &child : node.children) {
            if (child.is_null(row)) continue;
            where_ = &child;
            if (trouble == Trouble::None && !first) trouble = put(",", 1);
            if (trouble == Trouble::None) trouble = put(child.label);
            if (trouble == Trouble::None) trouble = value(child, row);
            if (trouble != Trouble::None) return trouble;
            first = false;
        }
        return trouble == Trouble::None ? put("}", 1) : trouble;
    }

    Trouble value(const Node &node, int64_t row) {
        switch (node.shape) {
            case Shape::Null: return put("null", 4);
            case Shape::Bool: {
                int64_t bit = node.offset + row;
                bool on = static_cast<uint8_t>(node.values[bit >> 3]) >> (bit & 7) & 1;
                return on ? put("true", 4) : put("false", 5);
            }
            case Shape::Int:
                switch (node.width) {
                    case 1: return number(node.value<int8_t>(row));
                    case 2: return number(node.value<int16_t>(row));
                    case 4: return number(node.value<int32_t>(row));
                    default: return number(node.value<int64_t>(row));
                }
            case Shape::UInt:
                switch (node.width) {
                    case 1: return number(node.value<uint8_t>(row));
                    case 2: return number(node.value<uint16_t>(row));
                    case 4: return number(node.value<uint32_t>(row));
                    default: return number(node.value<uint64_t>(row));
                }
            case Shape::Float: return node.width == 4 ? real(node.value<float>(row)) : real(node.value<double>(row));
            case Shape::Digits: {
                int64_t start = node.place(row);
                return put(node.text + start, static_cast<size_t>(node.place(row + 1) - start));
            }
            case Shape::String: return string(node, row);
            case Shape::Struct: return fields(node, row);
            case Shape::List: return list(node, row);
            case Shape::Map: return map(node, row);
        }
        return Trouble::None;
    }

    template <class T>
    Trouble number(T value) {
        char digits[24];
        return put(digits, static_cast<size_t>(std::to_chars(digits, digits + 24, value).ptr - digits));
    }
    template <class T>
    Trouble real(T value) {
        if (!std::isfinite(value)) return Trouble::Number;
        char digits[40];
        return put(digits, static_cast<size_t>(std::to_chars(digits, digits + 40, value).ptr - digits));
    }

    Trouble string(const Node &node, int64_t row) {
        int64_t start = node.place(row);
        Trouble trouble = put("\"", 1);
        if (trouble == Trouble::None) trouble = out_.text(node.text + start, static_cast<size_t>(node.place(row + 1) - start));
        return trouble == Trouble::None ? put("\"", 1) : trouble;
    }

    Trouble any(const Node &node, int64_t row) { return node.is_null(row) ? put("null", 4) : value(node, row); }

    Trouble list(const Node &node, int64_t row) {
        Trouble trouble = put("[", 1);
        for (int64_t i = node.place(row), end = node.place(row + 1), start = i; i < end && trouble == Trouble::None; ++i) {
            if (i > start) trouble = put(",", 1);
            if (trouble == Trouble::None) trouble = any(node.children[0], i);
        }
        return trouble == Trouble::None ? put("]", 1) : trouble;
    }

    // An object whose null values are written: in partitionValues they represent the null partition.
    Trouble map(const Node &node, int64_t row) {
        Trouble trouble = put("{", 1);
        for (int64_t i = node.place(row), end = node.place(row + 1), start = i; i < end && trouble == Trouble::None; ++i) {
            if (node.children[0].is_null(i)) return Trouble::Key;
            if (i > start) trouble = put(",", 1);
            if (trouble == Trouble::None) trouble = string(node.children[0], i);
            if (trouble == Trouble::None) trouble = put(":", 1);
            if (trouble == Trouble::None) trouble = any(node.children[1], i);
        }
        return trouble == Trouble::None ? put("}", 1) : trouble;
    }

    const std::string &head_, &tail_;
    const Node &table_;
    Out &out_;
    const Node *where_ = nullptr;
};

// Return the number of bytes of the lines, or -1 and a failure if a value can't be written.
inline int64_t measure_lines(const std::string &head, const std::string &tail, const Node &table, Failure &failure) {
    Counter counter;
    return Lines<Counter>(head, tail, table, counter).run(failure) ? counter.size : -1;
}

// Write lines that were measured. Returns false if they don't fill the memory exactly.
inline bool write_lines(
    const std::string &head, const std::string &tail, const Node &table, char *out, int64_t size, Failure &failure) {
    Writer writer(out, out + size);
    return Lines<Writer>(head, tail, table, writer).run(failure) && writer.full();
}

}  // namespace delta_json
