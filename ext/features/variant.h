// Parquet's variant (VariantEncoding.md and VariantShredding.md of apache/parquet-format): its binary form to JSON text, and
// shredded columns to the binary form.
//
// Every length and offset is checked when it is read; bytes that violate the format throw std::invalid_argument. Time and
// depth of nesting are proportional to the bytes of a value: overlapping parts are rejected, because a few bytes of them
// could expand without bound.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace delta_variant {

using Text = std::string_view;

enum Primitive : uint8_t {
    NULL_VALUE, TRUE_VALUE, FALSE_VALUE, INT8, INT16, INT32, INT64, DOUBLE, DECIMAL4, DECIMAL8, DECIMAL16, DATE,
    TIMESTAMP, TIMESTAMP_NTZ, FLOAT, BINARY, STRING, TIME, TIMESTAMP_NANOS, TIMESTAMP_NTZ_NANOS, UUID,
};
enum Basic : uint8_t { PRIMITIVE, SHORT_STRING, OBJECT, ARRAY };
constexpr int MAX_DEPTH = 500;

[[noreturn]] inline void corrupt(const std::string &what) { throw std::invalid_argument(what); }

inline Text slice(Text bytes, uint64_t start, uint64_t size) {
    if (start > bytes.size() || size > bytes.size() - start) corrupt("a part is beyond the end of its bytes");
    return bytes.substr(start, size);
}

// A little-endian number of 1 to 4 bytes.
inline uint32_t number(Text bytes, uint64_t at, int width) {
    Text part = slice(bytes, at, width);
    uint32_t out = 0;
    for (int i = 0; i < width; ++i) out |= static_cast<uint32_t>(static_cast<uint8_t>(part[i])) << (8 * i);
    return out;
}

template <class T>
T fixed(Text bytes, uint64_t at) {
    T out;
    std::memcpy(&out, slice(bytes, at, sizeof(T)).data(), sizeof(T));
    return out;
}

// --- metadata: the dictionary of field names --------------------------------------------------------------------------

class Dictionary {
   public:
    explicit Dictionary(Text bytes) : bytes_(bytes) {
        uint8_t header = fixed<uint8_t>(bytes, 0);
        if ((header & 15) != 1) corrupt("the metadata has version " + std::to_string(header & 15) + ", expected 1");
        width_ = (header >> 6) + 1;
        size_ = number(bytes, 1, width_);
        names_ = 1 + static_cast<uint64_t>(width_) * (static_cast<uint64_t>(size_) + 2);
        slice(bytes, 0, names_);
    }
    uint32_t size() const { return size_; }
    Text name(uint32_t id) const {
        if (id >= size_) corrupt("field id " + std::to_string(id) + " is not in a dictionary of " + std::to_string(size_));
        uint64_t at = 1 + static_cast<uint64_t>(width_) * (static_cast<uint64_t>(id) + 1);
        uint32_t start = number(bytes_, at, width_), end = number(bytes_, at + width_, width_);
        if (end < start) corrupt("a field name ends before it starts");
        return slice(bytes_, names_ + start, end - start);
    }

   private:
    Text bytes_;
    int width_;
    uint32_t size_;
    uint64_t names_;
};

// --- values ------------------------------------------------------------------------------------------------------------

// The parts of an object or array.
struct Container {
    bool object;
    uint32_t count;
    int id_width = 0, offset_width;
    uint64_t ids, offsets, parts;  // offsets in the value
    uint64_t size;                 // of the whole value
    Text bytes;

    explicit Container(Text value) : bytes(value) {
        uint8_t header = fixed<uint8_t>(value, 0), bits = header >> 2;
        object = (header & 3) == OBJECT;
        offset_width = (bits & 3) + 1;
        if (object) id_width = (bits >> 2 & 3) + 1;
        int count_width = (bits >> (object ? 4 : 2) & 1) ? 4 : 1;
        count = number(value, 1, count_width);
        ids = 1 + count_width;
        offsets = ids + static_cast<uint64_t>(count) * id_width;
        parts = offsets + (static_cast<uint64_t>(count) + 1) * offset_width;
        slice(value, 0, parts);
        size = parts + number(value, parts - offset_width, offset_width);
        slice(value, 0, size);
    }
    uint32_t id(uint32_t i) const { return number(bytes, ids + static_cast<uint64_t>(i) * id_width, id_width); }
    // The part and the bytes that follow it, up to the end of the container.
    Text part(uint32_t i) const {
        uint64_t start = parts + number(bytes, offsets + static_cast<uint64_t>(i) * offset_width, offset_width);
        if (start >= size) corrupt("a part is beyond the end of its object or array");
        return bytes.substr(start, size - start);
    }
};

inline Basic basic_type(Text value) { return static_cast<Basic>(fixed<uint8_t>(value, 0) & 3); }

// Return the bytes of one primitive or string, its header included.
inline uint64_t scalar_size(Text value) {
    uint8_t header = fixed<uint8_t>(value, 0);
    if ((header & 3) == SHORT_STRING) return 1 + (header >> 2);
    static const uint8_t sizes[] = {1, 1, 1, 2, 3, 5, 9, 9, 6, 10, 18, 5, 9, 9, 5, 0, 0, 9, 9, 9, 17};
    uint8_t type = header >> 2;
    if (type > UUID) corrupt("primitive type " + std::to_string(type) + " is not known");
    return sizes[type] ? sizes[type] : 5 + static_cast<uint64_t>(number(value, 1, 4));
}

inline uint64_t value_size(Text value) {
    Basic type = basic_type(value);
    uint64_t size = type == OBJECT || type == ARRAY ? Container(value).size : scalar_size(value);
    slice(value, 0, size);
    return size;
}

// --- JSON --------------------------------------------------------------------------------------------------------------

class JsonWriter {
   public:
    JsonWriter(Dictionary names, uint64_t bytes, std::string &out) : names_(names), left_(bytes), out_(out) {}

    void write(Text value, int depth = 0) {
        if (depth > MAX_DEPTH) corrupt("values are nested more than " + std::to_string(MAX_DEPTH) + " deep");
        Basic type = basic_type(value);
        if (type == OBJECT || type == ARRAY) {
            container(Container(value), depth);
            return;
        }
        Text scalar = slice(value, 0, scalar_size(value));
        spend(scalar.size());
        type == SHORT_STRING ? quote(scalar.substr(1)) : primitive(scalar);
    }

   private:
    // Parts that do not overlap have at most the bytes of the whole.
    void spend(uint64_t bytes) {
        if (bytes > left_) corrupt("parts of a value overlap");
        left_ -= bytes;
    }
    void container(const Container &c, int depth) {
        spend(c.parts);
        out_ += c.object ? '{' : '[';
        for (uint32_t i = 0; i < c.count; ++i) {
            if (i) out_ += ',';
            if (c.object) {
                quote(names_.name(c.id(i)));
                out_ += ':';
            }
            write(c.part(i), depth + 1);
        }
        out_ += c.object ? '}' : ']';
    }
    void quote(Text text) {
        static const char *hexadecimal = "0123456789ABCDEF";
        out_ += '"';
        for (char c : text) {
            uint8_t byte = static_cast<uint8_t>(c);
            if (c == '"' || c == '\\') out_ += '\\', out_ += c;
            else if (byte >= 0x20) out_ += c;
            else if (c == '\b') out_ += "\\b";
            else if (c == '\t') out_ += "\\t";
            else if (c == '\n') out_ += "\\n";
            else if (c == '\f') out_ += "\\f";
            else if (c == '\r') out_ += "\\r";
            else out_ += "\\u00", out_ += hexadecimal[byte >> 4], out_ += hexadecimal[byte & 15];
        }
        out_ += '"';
    }
    template <class T>
    void integer(T value) {
        char buffer[24];
        out_.append(buffer, std::to_chars(buffer, buffer + 24, value).ptr);
    }
    // Write a double in Java's notation: shortest digits, with an exponent outside [1e-3, 1e7); in quotes if JSON has no such
    // number.
    template <class T>
    void floating(T value) {
        if (!std::isfinite(value)) {
            out_ += std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
            return;
        }
        char buffer[64];
        T size = std::fabs(value);
        if (size == 0 || (size >= T(1e-3) && size < T(1e7))) {
            char *end = std::to_chars(buffer, buffer + 64, value, std::chars_format::fixed).ptr;
            out_.append(buffer, end);
            if (std::find(buffer, end, '.') == end) out_ += ".0";
            return;
        }
        char *end = std::to_chars(buffer, buffer + 64, value, std::chars_format::scientific).ptr;
        char *e = std::find(buffer, end, 'e');
        out_.append(buffer, e);
        if (std::find(buffer, e, '.') == e) out_ += ".0";
        out_ += 'E';
        if (*++e == '-') out_ += '-';
        ++e;
        while (*e == '0' && e + 1 < end) ++e;
        out_.append(e, end);
    }
    // Without an exponent, and without zeros at the end of the fraction.
    void decimal(__int128 value, uint8_t scale) {
        if (scale > 38) corrupt("a decimal has scale " + std::to_string(scale) + ", expected at most 38");
        unsigned __int128 rest = value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
        std::string digits;
        for (; rest; rest /= 10) digits += static_cast<char>('0' + static_cast<int>(rest % 10));
        if (digits.size() <= scale) digits.append(scale + 1 - digits.size(), '0');
        std::reverse(digits.begin(), digits.end());
        if (scale) {
            digits.insert(digits.size() - scale, 1, '.');
            while (digits.back() == '0') digits.pop_back();
            if (digits.back() == '.') digits.pop_back();
        }
        if (value < 0 && digits != "0") out_ += '-';
        out_ += digits;
    }
    void padded(int64_t value, int width) {
        std::string digits = std::to_string(value);
        if (digits.size() < static_cast<size_t>(width)) out_.append(width - digits.size(), '0');
        out_ += digits;
    }
    void date(int64_t days) {  // civil from days: eras of 400 years; years are counted from March
        int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, day_of_era = z - era * 146097;
        int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
        int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        int64_t m = (5 * day_of_year + 2) / 153, day = day_of_year - (153 * m + 2) / 5 + 1;
        int64_t month = m < 10 ? m + 3 : m - 9, year = year_of_era + era * 400 + (month <= 2);
        if (year < 0) out_ += '-';
        else if (year > 9999) out_ += '+';
        padded(year < 0 ? -year : year, 4);
        out_ += '-', padded(month, 2), out_ += '-', padded(day, 2);
    }
    void clock(int64_t nanos) {
        int64_t seconds = nanos / 1000000000, fraction = nanos % 1000000000;
        padded(seconds / 3600, 2), out_ += ':', padded(seconds / 60 % 60, 2), out_ += ':', padded(seconds % 60, 2);
        if (!fraction) return;
        out_ += '.';
        padded(fraction, 9);
        while (out_.back() == '0') out_.pop_back();
    }
    void timestamp(int64_t value, int64_t per_second, bool zoned) {
        int64_t per_day = per_second * 86400, days = value / per_day, rest = value % per_day;
        if (rest < 0) rest += per_day, --days;
        out_ += '"';
        date(days);
        out_ += ' ';
        clock(rest * (1000000000 / per_second));
        out_ += zoned ? "+00:00\"" : "\"";
    }
    void base64(Text bytes) {
        static const char *letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        out_ += '"';
        for (size_t i = 0; i < bytes.size(); i += 3) {
            uint32_t word = 0;
            size_t n = std::min<size_t>(3, bytes.size() - i);
            for (size_t k = 0; k < 3; ++k) word = word << 8 | (k < n ? static_cast<uint8_t>(bytes[i + k]) : 0);
            for (size_t k = 0; k < 4; ++k) out_ += k <= n ? letters[word >> (18 - 6 * k) & 63] : '=';
        }
        out_ += '"';
    }
    void uuid(Text bytes) {
        static const char *hexadecimal = "0123456789abcdef";
        out_ += '"';
        for (int i = 0; i < 16; ++i) {
            if (i == 4 || i == 6 || i == 8 || i == 10) out_ += '-';
            out_ += hexadecimal[static_cast<uint8_t>(bytes[i]) >> 4], out_ += hexadecimal[bytes[i] & 15];
        }
        out_ += '"';
    }
    void primitive(Text v) {
        switch (static_cast<uint8_t>(v[0]) >> 2) {
            case NULL_VALUE: out_ += "null"; break;
            case TRUE_VALUE: out_ += "true"; break;
            case FALSE_VALUE: out_ += "false"; break;
            case INT8: integer(static_cast<int>(fixed<int8_t>(v, 1))); break;
            case INT16: integer(fixed<int16_t>(v, 1)); break;
            case INT32: integer(fixed<int32_t>(v, 1)); break;
            case INT64: integer(fixed<int64_t>(v, 1)); break;
            case DOUBLE: floating(fixed<double>(v, 1)); break;
            case FLOAT: floating(fixed<float>(v, 1)); break;
            case DECIMAL4: decimal(fixed<int32_t>(v, 2), v[1]); break;
            case DECIMAL8: decimal(fixed<int64_t>(v, 2), v[1]); break;
            case DECIMAL16: decimal(fixed<__int128>(v, 2), v[1]); break;
            case DATE: out_ += '"', date(fixed<int32_t>(v, 1)), out_ += '"'; break;
            case TIMESTAMP: timestamp(fixed<int64_t>(v, 1), 1000000, true); break;
            case TIMESTAMP_NTZ: timestamp(fixed<int64_t>(v, 1), 1000000, false); break;
            case TIMESTAMP_NANOS: timestamp(fixed<int64_t>(v, 1), 1000000000, true); break;
            case TIMESTAMP_NTZ_NANOS: timestamp(fixed<int64_t>(v, 1), 1000000000, false); break;
            case TIME: {
                int64_t micros = fixed<int64_t>(v, 1);
                if (micros < 0 || micros >= 86400000000) corrupt("a time of day lies outside the day");
                out_ += '"', clock(micros * 1000), out_ += '"';
                break;
            }
            case BINARY: base64(v.substr(5)); break;
            case STRING: quote(v.substr(5)); break;
            case UUID: uuid(v.substr(1)); break;
        }
    }

    Dictionary names_;
    uint64_t left_;
    std::string &out_;
};

// --- arrays ------------------------------------------------------------------------------------------------------------

struct BinaryColumn {
    const int64_t *offsets = nullptr;  // one more than rows
    const char *data = nullptr;
    int64_t data_size = 0;
    const uint8_t *valid = nullptr;  // one byte for each row

    Text at(int64_t row) const {
        int64_t start = offsets[row], end = offsets[row + 1];
        if (start < 0 || end < start || end > data_size) corrupt("an array's offsets lie outside its bytes");
        return {data + start, static_cast<size_t>(end - start)};
    }
};

// Write the JSON text of each valid row; one more offset than rows is appended to `ends`.
inline void to_json(const BinaryColumn &metadata, const BinaryColumn &value, int64_t rows, std::string &out, int64_t *ends) {
    ends[0] = 0;
    for (int64_t row = 0; row < rows; ++row) {
        if (value.valid[row]) {
            Text bytes = value.at(row);
            JsonWriter(Dictionary(metadata.at(row)), bytes.size(), out).write(bytes);
        }
        ends[row + 1] = static_cast<int64_t>(out.size());
    }
}

// --- shredded columns --------------------------------------------------------------------------------------------------

// One `typed_value` column.
struct Typed {
    enum Kind { FIXED, BOOLEAN, TEXT, FIELDS, ELEMENTS };
    int kind = FIXED;
    const uint8_t *valid = nullptr;
    int64_t rows = 0;
    // FIXED: header, then `width` bytes from each value of `stride` bytes; decimals have their scale in between
    uint8_t type = 0;
    int width = 0, stride = 0, scale = -1;
    const char *data = nullptr;
    BinaryColumn text;                              // TEXT
    std::vector<std::pair<std::string, int>> fields;  // FIELDS: names in ascending order, with the slot of each
    const int64_t *offsets = nullptr;               // ELEMENTS: one more than rows
    int element = -1;
};

// A group of `value` and `typed_value`, each of which may be absent.
struct Slot {
    const uint8_t *valid = nullptr;
    int64_t rows = 0;
    bool has_value = false;
    BinaryColumn value;
    int typed = -1;
};

class Unshredder {
   public:
    std::vector<Slot> slots;
    std::vector<Typed> typed;

    // Rebuild each valid row of the first slot. A value that is missing at the top level is the variant null.
    void run(const BinaryColumn &metadata, std::string &out, int64_t *ends) {
        const Slot &top = slots.at(0);
        ends[0] = 0;
        for (int64_t row = 0; row < top.rows; ++row) {
            if (top.valid[row]) {
                metadata_ = metadata.at(row);
                if (!build(0, row, out)) out += '\0';
            }
            ends[row + 1] = static_cast<int64_t>(out.size());
        }
    }

   private:
    using Part = std::pair<uint32_t, std::string>;  // field id and value

    // Append the value; returns false if it is missing.
    bool build(int slot_index, int64_t row, std::string &out) {
        const Slot &slot = slots.at(slot_index);
        if (row < 0 || row >= slot.rows) corrupt("a list's offsets lie outside its elements");
        if (!slot.valid[row]) return false;
        bool has_value = slot.has_value && slot.value.valid[row];
        if (slot.typed >= 0 && typed.at(slot.typed).valid[row]) {
            const Typed &t = typed.at(slot.typed);
            if (has_value && t.kind != Typed::FIELDS) corrupt("a value is stored twice, typed and untyped");
            append(t, row, has_value ? slot.value.at(row) : Text(), out);
            return true;
        }
        if (has_value) {
            Text value = slot.value.at(row);
            out.append(value.data(), value_size(value));
        }
        return has_value;
    }
    void append(const Typed &t, int64_t row, Text rest, std::string &out) {
        switch (t.kind) {
            case Typed::BOOLEAN: out += header(t.data[row] ? TRUE_VALUE : FALSE_VALUE); break;
            case Typed::FIXED:
                out += header(t.type);
                if (t.scale >= 0) out += static_cast<char>(t.scale);
                out.append(t.data + row * t.stride, t.width);
                break;
            case Typed::TEXT: text(t.type, t.text.at(row), out); break;
            case Typed::FIELDS: object(t, row, rest, out); break;
            case Typed::ELEMENTS: array(t, row, out); break;
        }
    }
    static char header(uint8_t type) { return static_cast<char>(type << 2); }
    static void put(std::string &out, uint64_t value, int width) {
        for (int i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i));
    }
    static int width_of(uint64_t value) {
        if (value > UINT32_MAX) corrupt("a value takes more than 4 GiB");
        return value < 1 << 8 ? 1 : value < 1 << 16 ? 2 : value < 1 << 24 ? 3 : 4;
    }
    static void text(uint8_t type, Text bytes, std::string &out) {
        if (type == STRING && bytes.size() < 64) {
            out += static_cast<char>(bytes.size() << 2 | SHORT_STRING);
        } else {
            if (bytes.size() > UINT32_MAX) corrupt("a value takes more than 4 GiB");
            out += header(type);
            put(out, bytes.size(), 4);
        }
        out += bytes;
    }
    void array(const Typed &t, int64_t row, std::string &out) {
        std::string parts;
        std::vector<uint64_t> ends;
        for (int64_t i = t.offsets[row]; i < t.offsets[row + 1]; ++i) {
            if (!build(t.element, i, parts)) parts += '\0';
            ends.push_back(parts.size());
        }
        int width = width_of(parts.size());
        bool large = ends.size() > 255;
        out += static_cast<char>(((width - 1) | large << 2) << 2 | ARRAY);
        put(out, ends.size(), large ? 4 : 1);
        finish(ends, width, parts, out);
    }
    // Append the typed fields, and those of `rest`, the object of the fields without a column of their own.
    void object(const Typed &t, int64_t row, Text rest, std::string &out) {
        std::vector<std::pair<Text, Part>> parts;
        for (const auto &[name, slot] : t.fields) {
            std::string part;
            if (build(slot, row, part)) parts.emplace_back(name, Part(id_of(name), std::move(part)));
        }
        if (!rest.empty()) merge(rest, t, parts);
        std::sort(parts.begin(), parts.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        uint32_t highest = 0;
        uint64_t size = 0;
        for (const auto &part : parts) highest = std::max(highest, part.second.first), size += part.second.second.size();
        int id_width = width_of(highest), width = width_of(size);
        bool large = parts.size() > 255;
        out += static_cast<char>(((width - 1) | (id_width - 1) << 2 | large << 4) << 2 | OBJECT);
        put(out, parts.size(), large ? 4 : 1);
        std::vector<uint64_t> ends;
        std::string bytes;
        for (const auto &part : parts) {
            put(out, part.second.first, id_width);
            bytes += part.second.second;
            ends.push_back(bytes.size());
        }
        finish(ends, width, bytes, out);
    }
    void merge(Text rest, const Typed &t, std::vector<std::pair<Text, Part>> &parts) {
        if (basic_type(rest) != OBJECT) corrupt("the rest of a shredded object is not an object");
        Container c(rest);
        Dictionary names(metadata_);
        uint64_t left = rest.size();
        for (uint32_t i = 0; i < c.count; ++i) {
            uint32_t id = c.id(i);
            Text name = names.name(id), part = c.part(i);
            uint64_t size = value_size(part);
            if (size > left) corrupt("parts of a value overlap");
            left -= size;
            // a field with a column of its own is read from there
            auto at = std::lower_bound(t.fields.begin(), t.fields.end(), name,
                                       [](const auto &field, Text wanted) { return Text(field.first) < wanted; });
            if (at == t.fields.end() || at->first != name) parts.emplace_back(name, Part(id, std::string(part.substr(0, size))));
        }
    }
    static void finish(const std::vector<uint64_t> &ends, int width, const std::string &parts, std::string &out) {
        put(out, 0, width);
        for (uint64_t end : ends) put(out, end, width);
        out += parts;
    }
    // Consecutive rows mostly share one dictionary, which is then searched once for each field.
    uint32_t id_of(const std::string &name) {
        if (ids_for_ != metadata_) ids_.clear(), ids_for_ = metadata_;
        for (const auto &[known, id] : ids_)
            if (known == name) return id;
        Dictionary names(metadata_);
        for (uint32_t id = 0; id < names.size(); ++id)
            if (names.name(id) == name) {
                ids_.emplace_back(name, id);
                return id;
            }
        corrupt("shredded field '" + name + "' is not in the metadata's dictionary");
    }

    Text metadata_;
    std::string ids_for_;
    std::vector<std::pair<std::string, uint32_t>> ids_;
};

}  // namespace delta_variant
