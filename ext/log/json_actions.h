// Commits (sequences of JSON values, one object for each action) to columns; one builder parses a commit in one pass.
//
// `Schema` specifies the kinds of actions and their fields. This file implements their shapes only: scalars, text, string
// maps and one level of nested objects.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "arrow_out.h"
#include "json_scan.h"
#include "platform/files.h"

namespace delta_json {

// Types of fields and of columns: 's'tring, 'l' int64, 'i'nt32, 'b'oolean, 'm'ap of strings. Fields only: 'j' a string or the
// raw text of an object, 'r' the raw text of any value, 'o' an object of fields. Columns only: 'd' a dictionary of strings.
struct Field {
    std::string name;
    char type;
    int parent;    // index of the 'o' field that contains it, or -1
    int column;    // or -1: parsed only because other columns depend on it
    bool required;
    std::string missing;  // the message if it is missing
    std::vector<int> members;                          // of an 'o'
    std::vector<std::pair<std::string, int>> entries;  // of an 'm': keys that have a column of their own
};

struct Kind {
    std::string name;
    std::string columns;  // one type for each column; the first two are version and line
    std::vector<Field> fields;
    std::vector<int> members;  // the fields without a parent
    int id_column = -1;        // dvId: storage type, path and offset as one string
    int id_fields[3] = {-1, -1, -1};

    void set_id(int column, int storage, int path, int offset) {
        id_column = column;
        id_fields[0] = storage, id_fields[1] = path, id_fields[2] = offset;
    }
    void add_field(std::string name, char type, int parent, int column, bool required) {
        int index = static_cast<int>(fields.size());
        fields.push_back({name, type, parent, column, required, "'" + name + "' in " + this->name, {}, {}});
        (parent < 0 ? members : fields[static_cast<size_t>(parent)].members).push_back(index);
    }
};

struct Schema {
    std::vector<Kind> kinds;
    std::vector<std::string> skipped;  // kinds that are skipped unless they are in `kinds`
    std::vector<std::string> wanted;   // if only_wanted: the only other kinds that are stored
    bool only_wanted = false;

    bool keeps(std::string_view name) const {
        for (const std::string &skip : skipped)
            if (skip == name) return false;
        if (!only_wanted) return true;
        for (const std::string &want : wanted)
            if (want == name) return true;
        return false;
    }
};

struct Fault {
    int file = -1;      // index among the files of one call
    int error = 0;      // errno of a file that could not be read
    bool memory = false;
    size_t offset = 0;  // offset in the commit, in bytes
    std::string expected, found;
};

// A batch is closed after this many bytes of JSON, so that no string column exceeds 32-bit offsets.
constexpr size_t kBatchText = size_t{1} << 30;

class Batches {
   public:
    std::vector<ArrowArray> arrays;

    Batches() = default;
    Batches(Batches &&) = default;
    Batches(const Batches &) = delete;
    ~Batches() {
        for (ArrowArray &array : arrays)
            if (array.release) array.release(&array);
    }
    void add(std::vector<std::unique_ptr<Column>> &columns, size_t rows) {
        arrays.push_back(ArrowArray{});
        export_batch(columns, rows, &arrays.back());
    }
    void append(Batches &other) {
        arrays.insert(arrays.end(), other.arrays.begin(), other.arrays.end());
        other.arrays.clear();
    }
};

inline std::unique_ptr<Column> make_column(char type) {
    switch (type) {
        case 'l': return std::make_unique<NumberColumn<int64_t>>();
        case 'i': return std::make_unique<NumberColumn<int32_t>>();
        case 'b': return std::make_unique<BoolColumn>();
        case 'm': return std::make_unique<MapColumn>();
        case 'd': return std::make_unique<DictionaryColumn>();
        default: return std::make_unique<StringColumn>();
    }
}

class Rows {
   public:
    Batches batches;

    explicit Rows(std::string types) : types_(std::move(types)) { begin(); }

    // Start the row of an action of `size` bytes.
    size_t open(int64_t version, int32_t line, size_t bytes) {
        if (bytes_ >= kBatchText) close();
        bytes_ += bytes;
        get<NumberColumn<int64_t>>(0).put(rows_, version);
        get<NumberColumn<int32_t>>(1).put(rows_, line);
        return rows_++;
    }
    void close() {
        if (!rows_) return;
        batches.add(columns_, rows_);
        begin();
    }
    template <class C>
    C &get(int column) {
        return static_cast<C &>(*columns_[static_cast<size_t>(column)]);
    }

   private:
    void begin() {
        columns_.clear();
        for (char type : types_) columns_.push_back(make_column(type));
        rows_ = bytes_ = 0;
    }

    std::string types_;
    std::vector<std::unique_ptr<Column>> columns_;
    size_t rows_ = 0;
    size_t bytes_ = 0;
};

struct Entry {
    std::string_view key;
    Slice value;
    bool null;
};

// The value of a field as it was found. A later member of the same name replaces it.
struct Slot {
    Slice text;
    int64_t number = 0;
    std::vector<Entry> entries;
    std::deque<std::string> keys;  // the unescaped texts of values with escapes
};

class KindBuilder {
   public:
    KindBuilder(const Kind &kind) : rows(kind.columns), kind_(kind), slots_(kind.fields.size()) {}

    Rows rows;

    // Read one action of this kind. Nothing is appended to the columns before `store`.
    bool read(Scanner &s) {
        const char *start = s.p;
        seen_ = 0;
        if (!members(s, kind_.members)) return false;
        bytes_ = static_cast<size_t>(s.p - start);
        for (size_t i = 0; i < kind_.fields.size(); ++i) {
            const Field &field = kind_.fields[i];
            if (field.required && !has(static_cast<int>(i)) && (field.parent < 0 || has(field.parent))) {
                s.p = start;
                return s.fail(field.missing.c_str());
            }
        }
        return true;
    }

    bool store(Scanner &s, int64_t version, int32_t line) {
        size_t row = rows.open(version, line, bytes_);
        for (uint64_t left = seen_; left; left &= left - 1) {
            int i = __builtin_ctzll(left);
            if (!store_field(s, row, kind_.fields[static_cast<size_t>(i)], slots_[static_cast<size_t>(i)])) return false;
        }
        return kind_.id_column < 0 || !has(kind_.id_fields[0]) || store_id(s, row);
    }

   private:
    bool has(int field) const { return seen_ >> field & 1; }
    void forget(int field) {
        seen_ &= ~(uint64_t{1} << field);
        for (int member : kind_.fields[static_cast<size_t>(field)].members) seen_ &= ~(uint64_t{1} << member);
    }

    bool members(Scanner &s, const std::vector<int> &among) {
        size_t next = 0;  // writers use a constant order of fields: mostly the field after the last one
        return s.object([&](Slice &key) {
            int found = find(key, among, next);
            return found < 0 ? s.skip() : value(s, found);
        });
    }

    int find(Slice &key, const std::vector<int> &among, size_t &next) {
        std::string_view name = key.view();
        std::string plain;
        if (key.escaped) {
            plain.resize(key.size() + kUnescapeSlack);
            char *end = unescape(key, plain.data(), key.end);
            if (!end) return -1;  // half a surrogate pair: no field has such a name
            plain.resize(static_cast<size_t>(end - plain.data()));
            name = plain;
        }
        for (size_t tried = 0; tried < among.size(); ++tried, ++next) {
            if (next >= among.size()) next = 0;
            if (kind_.fields[static_cast<size_t>(among[next])].name == name) return among[next++];
        }
        return -1;
    }

    bool value(Scanner &s, int index) {
        const Field &field = kind_.fields[static_cast<size_t>(index)];
        Slot &slot = slots_[static_cast<size_t>(index)];
        int c = s.peek();
        forget(index);
        if (c == 'n') return s.word("null", 4);
        switch (field.type) {
            case 's':
                if (c != '"') return s.fail("a string");
                if (!s.string(slot.text)) return false;
                break;
            case 'j':
                if (c != '"' && c != '{') return s.fail("a string");
                if (c == '"' ? !s.string(slot.text) : !raw(s, slot)) return false;
                break;
            case 'r':
                if (!raw(s, slot)) return false;
                break;
            case 'l': case 'i':
                if (!integer(s, slot, field.type == 'i')) return false;
                break;
            case 'b':
                if (c != 't' && c != 'f') return s.fail("true or false");
                slot.number = c == 't';
                if (!s.scalar()) return false;
                break;
            case 'm':
                if (!map(s, slot)) return false;
                break;
            default:
                if (!members(s, field.members)) return false;
        }
        seen_ |= uint64_t{1} << index;
        return true;
    }

    static bool raw(Scanner &s, Slot &slot) {
        const char *start = s.p;
        if (!s.skip()) return false;
        slot.text = {start, s.p, false};
        return true;
    }

    static bool integer(Scanner &s, Slot &slot, bool narrow) {
        const char *start = s.p;
        Slice text;
        if (s.peek() == '"') {
            if (!s.string(text)) return false;
        } else {
            if (!s.number()) return false;
            text = {start, s.p, false};
        }
        if (parse_int64(text.begin, text.end, slot.number) &&
            (!narrow || (slot.number >= INT32_MIN && slot.number <= INT32_MAX)))
            return true;
        s.p = start;
        return s.fail(narrow ? "a whole number of 32 bits" : "a whole number of 64 bits");
    }

    static bool map(Scanner &s, Slot &slot) {
        slot.entries.clear();
        slot.keys.clear();
        std::unordered_map<std::string_view, size_t> places;  // only for maps with too many entries for a linear search
        return s.object([&](Slice &key) {
            Entry entry{key.view(), {}, false};
            if (key.escaped) {
                slot.keys.emplace_back(key.size() + kUnescapeSlack, '\0');
                std::string &plain = slot.keys.back();
                char *end = unescape(key, plain.data(), key.end);
                if (!end) return half_pair(s, key);
                plain.resize(static_cast<size_t>(end - plain.data()));
                entry.key = plain;
            }
            int c = s.peek();
            const char *start = s.p;
            if (c == '{' || c == '[') return s.fail("a string or null");
            if (c == '"') {
                if (!s.string(entry.value)) return false;
            } else {
                if (!s.scalar()) return false;
                entry.value = {start, s.p, false};
                entry.null = c == 'n';
            }
            constexpr size_t kFew = 16;
            size_t place = slot.entries.size();
            if (place < kFew) {
                for (size_t i = 0; i < place; ++i)
                    if (slot.entries[i].key == entry.key) place = i;
            } else {
                if (places.empty())
                    for (size_t i = 0; i < place; ++i) places.emplace(slot.entries[i].key, i);
                place = places.emplace(entry.key, place).first->second;
            }
            if (place < slot.entries.size()) slot.entries[place] = entry;
            else slot.entries.push_back(entry);
            return true;
        });
    }

    static bool half_pair(Scanner &s, const Slice &text) {
        s.p = text.begin;
        return s.fail("both halves of a surrogate pair");
    }

    static bool put(Scanner &s, StringColumn &column, size_t row, Slice &text) {
        if (!text.escaped) {
            column.put(row, text.view());
            return true;
        }
        char *out = column.open(row, text.size() + kUnescapeSlack);
        char *end = unescape(text, out, s.readable);
        if (!end) return half_pair(s, text);
        column.close(row, static_cast<size_t>(end - out));
        return true;
    }

    bool put(Scanner &s, DictionaryColumn &column, size_t row, Slice &text) {
        if (!text.escaped) {
            column.put(row, text.view());
            return true;
        }
        scratch_.resize(text.size() + kUnescapeSlack);
        char *end = unescape(text, scratch_.data(), s.readable);
        if (!end) return half_pair(s, text);
        column.put(row, {scratch_.data(), static_cast<size_t>(end - scratch_.data())});
        return true;
    }

    bool store_field(Scanner &s, size_t row, const Field &field, Slot &slot) {
        for (auto &[key, column] : field.entries)
            for (Entry &entry : slot.entries)
                if (!entry.null && entry.key == key) {
                    if (!put(s, rows.get<DictionaryColumn>(column), row, entry.value)) return false;
                    break;
                }
        if (field.column < 0) return true;
        switch (field.type) {
            case 'l': rows.get<NumberColumn<int64_t>>(field.column).put(row, slot.number); return true;
            case 'i': rows.get<NumberColumn<int32_t>>(field.column).put(row, static_cast<int32_t>(slot.number)); return true;
            case 'b': rows.get<BoolColumn>(field.column).put(row, slot.number != 0); return true;
            case 'm': return store_map(s, row, rows.get<MapColumn>(field.column), slot);
            default: return put(s, rows.get<StringColumn>(field.column), row, slot.text);
        }
    }

    static bool store_map(Scanner &s, size_t row, MapColumn &map, Slot &slot) {
        size_t at = map.entries();
        for (Entry &entry : slot.entries) {
            map.keys.put(at, entry.key);
            if (!entry.null && !put(s, map.values, at, entry.value)) return false;
            ++at;
        }
        map.close(row, slot.entries.size());
        return true;
    }

    bool store_id(Scanner &s, size_t row) {
        StringColumn &column = rows.get<StringColumn>(kind_.id_column);
        scratch_.clear();
        for (int i = 0; i < 2; ++i) {
            Slice &text = slots_[static_cast<size_t>(kind_.id_fields[i])].text;
            size_t at = scratch_.size();
            scratch_.resize(at + text.size() + kUnescapeSlack);
            char *end = unescape(text, scratch_.data() + at, s.readable);
            if (!end) return half_pair(s, text);
            scratch_.resize(static_cast<size_t>(end - scratch_.data()));
        }
        if (has(kind_.id_fields[2]))
            scratch_ += "@" + std::to_string(slots_[static_cast<size_t>(kind_.id_fields[2])].number);
        column.put(row, scratch_);
        return true;
    }

    const Kind &kind_;
    std::vector<Slot> slots_;
    uint64_t seen_ = 0;
    size_t bytes_ = 0;
    std::string scratch_;
};

class Builder {
   public:
    explicit Builder(std::shared_ptr<const Schema> schema) : others("liss"), schema_(std::move(schema)) {
        for (const Kind &kind : schema_->kinds) kinds.push_back(std::make_unique<KindBuilder>(kind));
    }

    std::vector<std::unique_ptr<KindBuilder>> kinds;
    Rows others;

    bool commit(const char *text, size_t size, const char *memory_end, int64_t version, Fault &fault) {
        Scanner s(text, size, memory_end);
        if (const char *bad = invalid_utf8(text, text + size)) {
            s.p = bad;
            s.fail("valid UTF-8");
        } else if (size >= 3 && std::memcmp(text, "\xef\xbb\xbf", 3) == 0) {
            s.p += 3;  // a byte order mark
        }
        if (!s.expected && actions(s, version)) return true;
        fault.offset = static_cast<size_t>(s.p - text);
        fault.expected = s.expected;
        fault.found.assign(s.p, std::min<size_t>(40, static_cast<size_t>(s.end - s.p)));
        return false;
    }

    void close() {
        for (auto &kind : kinds) kind->rows.close();
        others.close();
    }

   private:
    bool actions(Scanner &s, int64_t version) {
        int32_t line = 0;
        for (;;) {
            s.space();
            if (s.p == s.end) return true;
            if (!top(s, version, line) || !after(s)) return false;
        }
    }

    // Some writers append one character to a whole object. Any other bytes, or a bracket or quote, are a torn write.
    static bool after(Scanner &s) {
        auto blanks = [&s] { while (s.peek() == ' ' || s.peek() == '\t' || s.peek() == '\r') ++s.p; };
        blanks();
        int c = s.peek();
        if (c < 0 || c == '\n' || c == '{') return true;
        if (c < 0x20 || std::strchr("}[]\"", c)) return s.fail("the end of the line after an action");
        const char *stray = s.p++;
        while (s.p < s.end && (static_cast<unsigned char>(*s.p) & 0xc0) == 0x80) ++s.p;
        blanks();
        if (s.p == s.end || *s.p == '\n') return true;
        s.p = stray;
        return s.fail("the end of the line after an action");
    }

    // One object of the sequence, which mostly contains one action.
    bool top(Scanner &s, int64_t version, int32_t &line) {
        const char *start = s.p;
        if (!s.take('{', "an action: a JSON object")) return false;
        s.space();
        if (s.peek() == '}') {
            ++s.p;
            return true;
        }
        Slice key;
        if (!s.key(key)) return false;
        KindBuilder *kind = nullptr;
        Slice raw;
        if (!action(s, key, kind, raw)) return false;
        const char *value_end = s.p;
        s.space();
        if (s.peek() == '}') {
            const char *end = ++s.p;
            if (!store(s, key, kind, raw, version, line)) return false;
            s.p = end;
            return true;
        }
        s.p = value_end;
        return several(s, start, version, line);
    }

    // An object with several keys. The last one of a name counts, so all are read before any is stored.
    bool several(Scanner &s, const char *start, int64_t version, int32_t &line) {
        std::vector<std::pair<Slice, const char *>> members;
        std::unordered_map<std::string, size_t> places;
        s.p = start;
        bool whole = s.object([&](Slice &key) {
            auto [place, fresh] = places.emplace(std::string(plain(key)), members.size());
            if (fresh) members.emplace_back(key, s.p);
            else members[place->second].second = s.p;
            return s.skip();
        });
        if (!whole) return false;
        const char *end = s.p;
        for (auto &[key, value] : members) {
            KindBuilder *kind = nullptr;
            Slice raw;
            s.p = value;
            if (!action(s, key, kind, raw) || !store(s, key, kind, raw, version, line)) return false;
        }
        s.p = end;
        return true;
    }

    bool action(Scanner &s, Slice &key, KindBuilder *&kind, Slice &raw) {
        raw = {s.p, s.p, false};
        if (s.peek() == 'n') return s.word("null", 4);
        std::string_view name = plain(key);
        for (size_t i = 0; i < kinds.size(); ++i)
            if (schema_->kinds[i].name == name && schema_->keeps(name)) {
                kind = kinds[i].get();
                return kind->read(s);
            }
        if (!s.skip()) return false;
        raw.end = s.p;
        return true;
    }

    bool store(Scanner &s, Slice &key, KindBuilder *kind, Slice &raw, int64_t version, int32_t &line) {
        if (kind) return kind->store(s, version, line++);
        if (raw.end == raw.begin) return true;  // null: no action
        int32_t at = line++;
        std::string_view name = plain(key);
        if (!schema_->keeps(name)) return true;
        size_t row = others.open(version, at, raw.size());
        others.get<StringColumn>(2).put(row, name);
        others.get<StringColumn>(3).put(row, raw.view());
        return true;
    }

    std::string_view plain(Slice &key) {
        if (!key.escaped) return key.view();
        scratch_.resize(key.size() + kUnescapeSlack);
        char *end = unescape(key, scratch_.data(), key.end);
        if (!end) return key.view();
        return {scratch_.data(), static_cast<size_t>(end - scratch_.data())};
    }

    std::shared_ptr<const Schema> schema_;
    std::string scratch_;
};

// Read a whole file into `into`, whose memory is reused from file to file. Returns 0 or the errno; ESPIPE for a pipe, a
// socket or a device, which would block.
inline int read_file(const char *path, Bytes &into) {
    constexpr size_t kStep = 1 << 16;
    into.clear();
    int descriptor;
    do descriptor = file_open(path);
    while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) return errno;
    int error = 0;
    file_facts_t facts;
    if (file_facts(descriptor, &facts)) error = errno;
    else if (!facts.is_file && !facts.is_folder) error = ESPIPE;
    if (error) {
        file_close(descriptor);
        return error;
    }
    for (;;) {
        char *at;
        try {
            at = into.room(kStep);
        } catch (...) {
            file_close(descriptor);
            throw;
        }
        int64_t got = file_read(descriptor, at, into.capacity() - into.size());
        if (got > 0) into.advance(static_cast<size_t>(got));
        else if (got == 0) break;
        else if (errno != EINTR) {
            error = errno;
            break;
        }
    }
    file_close(descriptor);
    return error;
}

inline bool read_commits(Builder &builder, const std::vector<std::string> &paths, const int64_t *versions, size_t first,
                         size_t last, Fault &fault) {
    Bytes text;
    for (size_t i = first; i < last; ++i) {
        fault.file = static_cast<int>(i);
        if ((fault.error = read_file(paths[i].c_str(), text))) return false;
        if (!text.size()) continue;
        if (!builder.commit(text.data(), text.size(), text.data() + text.capacity(), versions[i], fault)) return false;
    }
    return true;
}

// Read files into `parts`, in the order of the paths. Each thread takes consecutive files and has a builder of its own.
inline bool read_files(const std::shared_ptr<const Schema> &schema, const std::vector<std::string> &paths,
                       const int64_t *versions, int threads, std::vector<std::unique_ptr<Builder>> &parts, Fault &fault) {
    constexpr size_t kRunsPerThread = 4, kFewFiles = 8;
    size_t files = paths.size();
    size_t runs = threads < 2 || files < kFewFiles ? 1 : std::min(files, kRunsPerThread * static_cast<size_t>(threads));
    std::vector<Fault> faults(runs);
    std::vector<char> failed(runs, 0);
    for (size_t i = 0; i < runs; ++i) parts.push_back(std::make_unique<Builder>(schema));
    std::atomic<size_t> next{0};
    std::atomic<bool> stop{false};
    auto work = [&] {
        for (size_t run; !stop && (run = next++) < runs;) {
            size_t first = files * run / runs, last = files * (run + 1) / runs;
            try {
                failed[run] = !read_commits(*parts[run], paths, versions, first, last, faults[run]);
                parts[run]->close();
            } catch (...) {
                failed[run] = 1;
                faults[run].memory = true;
            }
            if (failed[run]) stop = true;  // earlier parts are completed, because the first of several faults is reported
        }
    };
    std::vector<std::thread> pool;
    try {
        while (pool.size() + 1 < std::min(runs, static_cast<size_t>(threads < 1 ? 1 : threads))) pool.emplace_back(work);
    } catch (...) {  // no further thread can be started: the calling thread does the work
    }
    work();
    for (std::thread &thread : pool) thread.join();
    for (size_t run = 0; run < runs; ++run)
        if (failed[run]) {
            fault = faults[run];
            return false;
        }
    return true;
}

}  // namespace delta_json
