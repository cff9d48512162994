// A small engine in C++ that reads and changes a Delta table through the Arrow C data interface alone.
//
// It is a Python module without any Arrow library: the structures below are the whole interface. The kernel hands over
// the files of a plan, the deleted rows and the rows of data files as capsules, and takes actions as capsules.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// The Arrow C data interface, as its specification prints it.
extern "C" {
struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    int64_t flags;
    int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};
struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};
struct ArrowArrayStream {
    int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
    int (*get_next)(ArrowArrayStream*, ArrowArray*);
    const char* (*get_last_error)(ArrowArrayStream*);
    void (*release)(ArrowArrayStream*);
    void* private_data;
};
}

namespace {

// --- taking data over -------------------------------------------------------------------------

struct PythonError {};  // a Python exception is set

struct Release {
    template <class T>
    void operator()(T* value) const {
        if (value->release != nullptr) value->release(value);
        delete value;
    }
};
using Schema = std::unique_ptr<ArrowSchema, Release>;
using Array = std::unique_ptr<ArrowArray, Release>;

struct Object {
    PyObject* value;
    explicit Object(PyObject* given) : value(given) {
        if (given == nullptr) throw PythonError();
    }
    ~Object() { Py_DECREF(value); }
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
};

template <class T>
T* pointer(PyObject* capsule, const char* name) {
    void* found = PyCapsule_GetPointer(capsule, name);
    if (found == nullptr) throw PythonError();
    return static_cast<T*>(found);
}

// Batches of a stream, each a struct array; the schema has the names of its columns.
struct Stream {
    Object capsule;
    ArrowArrayStream* stream;
    Schema schema{new ArrowSchema()};

    explicit Stream(PyObject* source)
        : capsule(PyObject_CallMethod(source, "__arrow_c_stream__", nullptr)),
          stream(pointer<ArrowArrayStream>(capsule.value, "arrow_array_stream")) {
        check(stream->get_schema(stream, schema.get()));
    }

    Array next() {
        Array batch{new ArrowArray()};
        check(stream->get_next(stream, batch.get()));
        return batch->release == nullptr ? nullptr : std::move(batch);
    }

    void check(int code) {
        if (code == 0) return;
        const char* text = stream->get_last_error(stream);
        throw std::runtime_error(text == nullptr ? "the stream failed" : text);
    }

    int64_t column(const char* name, const char* format) const {
        for (int64_t i = 0; i < schema->n_children; ++i) {
            if (std::strcmp(schema->children[i]->name, name) != 0) continue;
            if (std::strcmp(schema->children[i]->format, format) != 0)
                throw std::runtime_error(std::string("column ") + name + " has the format " + schema->children[i]->format);
            return i;
        }
        throw std::runtime_error(std::string("there is no column ") + name);
    }
};

struct Numbers {
    const ArrowArray* array;
    Numbers(const ArrowArray* batch, int64_t column) : array(batch->children[column]), first(batch->offset) {}
    int64_t first;  // a struct's own offset comes before that of its children
    bool is_valid(int64_t row) const {
        auto bits = static_cast<const uint8_t*>(array->buffers[0]);
        int64_t at = first + array->offset + row;
        return array->null_count == 0 || bits == nullptr || (bits[at / 8] >> (at % 8) & 1) != 0;
    }
    int64_t operator[](int64_t row) const {
        return static_cast<const int64_t*>(array->buffers[1])[first + array->offset + row];
    }
};

// --- handing data out -------------------------------------------------------------------------

// An array of one type under construction; children for structs, lists and maps.
struct Node {
    std::string format, name;
    int64_t length = 0;
    std::vector<std::vector<char>> buffers;  // the first one, of nulls, stays empty
    std::vector<std::unique_ptr<Node>> children;
};

template <class T>
std::vector<char> bytes_of(const std::vector<T>& values) {
    auto begin = reinterpret_cast<const char*>(values.data());
    return {begin, begin + values.size() * sizeof(T)};
}

std::unique_ptr<Node> numbers(std::string name, const std::vector<int64_t>& values) {
    auto node = std::make_unique<Node>(Node{"l", std::move(name), int64_t(values.size()), {}, {}});
    node->buffers = {{}, bytes_of(values)};
    return node;
}

std::unique_ptr<Node> texts(std::string name, const std::vector<std::string>& values) {
    std::vector<int32_t> ends{0};
    std::string joined;
    for (const auto& value : values) ends.push_back(int32_t((joined += value).size()));
    auto node = std::make_unique<Node>(Node{"u", std::move(name), int64_t(values.size()), {}, {}});
    node->buffers = {{}, bytes_of(ends), {joined.begin(), joined.end()}};
    return node;
}

std::unique_ptr<Node> structure(std::string name, int64_t length, std::vector<std::unique_ptr<Node>> children) {
    auto node = std::make_unique<Node>(Node{"+s", std::move(name), length, {{}}, {}});
    node->children = std::move(children);
    return node;
}

struct ExportedSchema {
    std::string format, name;
    std::vector<ArrowSchema> held;
    std::vector<ArrowSchema*> children;
};
struct ExportedArray {
    std::vector<std::vector<char>> bytes;
    std::vector<const void*> buffers;
    std::vector<ArrowArray> held;
    std::vector<ArrowArray*> children;
};

template <class C, class Exported>
void release(C* value) {
    auto own = static_cast<Exported*>(value->private_data);
    for (auto& child : own->held)
        if (child.release != nullptr) child.release(&child);  // those that were not moved away
    delete own;
    value->release = nullptr;
}

void export_schema(const Node& node, ArrowSchema* out) {
    auto own = new ExportedSchema{node.format, node.name, std::vector<ArrowSchema>(node.children.size()), {}};
    for (size_t i = 0; i < node.children.size(); ++i) {
        export_schema(*node.children[i], &own->held[i]);
        own->children.push_back(&own->held[i]);
    }
    // fields of a map are not nullable but for its values
    bool is_nullable = node.name != "entries" && node.name != "key";
    *out = {own->format.c_str(), own->name.c_str(), nullptr, is_nullable ? 2 : 0, int64_t(own->children.size()),
            own->children.data(), nullptr, release<ArrowSchema, ExportedSchema>, own};
}

void export_array(Node&& node, ArrowArray* out) {
    auto own = new ExportedArray{std::move(node.buffers), {}, std::vector<ArrowArray>(node.children.size()), {}};
    for (size_t i = 0; i < own->bytes.size(); ++i)
        own->buffers.push_back(i == 0 ? nullptr : own->bytes[i].empty() ? "" : own->bytes[i].data());
    for (size_t i = 0; i < node.children.size(); ++i) {
        export_array(std::move(*node.children[i]), &own->held[i]);
        own->children.push_back(&own->held[i]);
    }
    *out = {node.length, 0, 0, int64_t(own->buffers.size()), int64_t(own->children.size()), own->buffers.data(),
            own->children.data(), nullptr, release<ArrowArray, ExportedArray>, own};
}

template <class C>
void drop_capsule(PyObject* capsule) {
    auto value = static_cast<C*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
    if (value->release != nullptr) value->release(value);
    delete value;
}

// The pair of capsules that __arrow_c_array__ returns.
PyObject* exported(std::unique_ptr<Node> node) {
    Schema schema{new ArrowSchema()};
    Array array{new ArrowArray()};
    export_schema(*node, schema.get());
    export_array(std::move(*node), array.get());
    Object first(PyCapsule_New(schema.get(), "arrow_schema", drop_capsule<ArrowSchema>));
    schema.release();
    Object second(PyCapsule_New(array.get(), "arrow_array", drop_capsule<ArrowArray>));
    array.release();
    return PyTuple_Pack(2, first.value, second.value);
}

// --- the engine -------------------------------------------------------------------------------

template <class F>
PyObject* guarded(F body) {
    try {
        return body();
    } catch (const PythonError&) {
        return nullptr;
    } catch (const std::exception& e) {
        PyErr_SetString(PyExc_ValueError, e.what());
        return nullptr;
    }
}

// list_files(plan) -> list of (path, size): what a plan reads, from its stream.
PyObject* list_files(PyObject*, PyObject* plan) {
    return guarded([&]() -> PyObject* {
        Stream files(plan);
        int64_t paths = files.column("path", "u"), sizes = files.column("size", "l");
        PyObject* out = PyList_New(0);
        if (out == nullptr) throw PythonError();
        while (Array batch = files.next()) {
            Numbers size(batch.get(), sizes);
            const ArrowArray* path = batch->children[paths];
            auto ends = static_cast<const int32_t*>(path->buffers[1]) + path->offset + batch->offset;
            auto data = static_cast<const char*>(path->buffers[2]);
            for (int64_t i = 0; i < batch->length; ++i) {
                PyObject* pair = Py_BuildValue("(s#L)", data + ends[i], Py_ssize_t(ends[i + 1] - ends[i]), (long long)size[i]);
                int failed = pair == nullptr ? -1 : PyList_Append(out, pair);
                Py_XDECREF(pair);
                if (failed != 0) {
                    Py_DECREF(out);
                    throw PythonError();
                }
            }
        }
        return out;
    });
}

// The deleted rows of one file: those of a list of the array that ScanFiles.deleted_rows returns.
std::vector<int64_t> deleted_of(PyObject* deleted, int64_t file) {
    Object pair(PyObject_CallMethod(deleted, "__arrow_c_array__", nullptr));
    auto schema = pointer<ArrowSchema>(PyTuple_GetItem(pair.value, 0), "arrow_schema");
    auto array = pointer<ArrowArray>(PyTuple_GetItem(pair.value, 1), "arrow_array");
    if (std::strcmp(schema->format, "+L") != 0 || std::strcmp(schema->children[0]->format, "l") != 0)
        throw std::runtime_error("deleted rows are lists of 64-bit integers");
    if (file < 0 || file >= array->length) throw std::runtime_error("there is no such file");
    auto ends = static_cast<const int64_t*>(array->buffers[1]) + array->offset + file;
    auto values = static_cast<const int64_t*>(array->children[0]->buffers[1]) + array->children[0]->offset;
    return {values + ends[0], values + ends[1]};
}

// Calls visit_value(position, value) for each value of a column of 64-bit integers, but not for deleted rows and nulls;
// returns how many rows there are.
template <class F>
int64_t visit(PyObject* rows, const char* name, const std::vector<int64_t>& deleted, F visit_value) {
    Stream stream(rows);
    int64_t column = stream.column(name, "l"), position = 0;
    auto gone = deleted.begin();  // ascending
    while (Array batch = stream.next()) {
        Numbers values(batch.get(), column);
        for (int64_t i = 0; i < batch->length; ++i, ++position) {
            if (gone != deleted.end() && *gone == position)
                ++gone;
            else if (values.is_valid(i))
                visit_value(position, values[i]);
        }
    }
    return position;
}

// total(rows, column, deleted, file) -> (count, sum) of the rows of a file that are not deleted.
PyObject* total(PyObject*, PyObject* arguments) {
    PyObject *rows, *deleted;
    const char* name;
    long long file;
    if (!PyArg_ParseTuple(arguments, "OsOL", &rows, &name, &deleted, &file)) return nullptr;
    return guarded([&] {
        long long count = 0, sum = 0;
        visit(rows, name, deleted_of(deleted, file), [&](int64_t, int64_t value) { ++count, sum += value; });
        return Py_BuildValue("(LL)", count, sum);
    });
}

// positions_below(rows, column, limit) -> capsules of the positions of the rows with a smaller value.
PyObject* positions_below(PyObject*, PyObject* arguments) {
    PyObject* rows;
    const char* name;
    long long limit;
    if (!PyArg_ParseTuple(arguments, "OsL", &rows, &name, &limit)) return nullptr;
    return guarded([&] {
        std::vector<int64_t> found;
        visit(rows, name, {}, [&](int64_t position, int64_t value) {
            if (value < limit) found.push_back(position);
        });
        return exported(numbers("", found));
    });
}

// add_action(path, size, time, partition column, partition value, rows, column) -> capsules of an action "add" with
// statistics that were computed from the rows of the file.
PyObject* add_action(PyObject*, PyObject* arguments) {
    const char *path, *key, *value, *name;
    long long size, time;
    PyObject* rows;
    if (!PyArg_ParseTuple(arguments, "sLLssOs", &path, &size, &time, &key, &value, &rows, &name)) return nullptr;
    return guarded([&] {
        int64_t count = 0, least = INT64_MAX, greatest = INT64_MIN;
        int64_t num_rows = visit(rows, name, {}, [&](int64_t, int64_t found) {
            ++count, least = std::min(least, found), greatest = std::max(greatest, found);
        });
        if (count == 0 || count != num_rows) throw std::runtime_error("expected a file with rows and without nulls");
        std::string quoted = std::string("{\"") + name + "\":";
        std::string stats = "{\"numRecords\":" + std::to_string(count) + ",\"minValues\":" + quoted +
                            std::to_string(least) + "},\"maxValues\":" + quoted + std::to_string(greatest) +
                            "},\"nullCount\":" + quoted + "0}}";
        std::vector<std::unique_ptr<Node>> pair, entries, columns;
        pair.push_back(texts("key", {key}));
        pair.push_back(texts("value", {value}));
        entries.push_back(structure("entries", 1, std::move(pair)));
        auto values = std::make_unique<Node>(Node{"+m", "partitionValues", 1, {{}, bytes_of<int32_t>({0, 1})}, {}});
        values->children = std::move(entries);
        columns.push_back(texts("path", {path}));
        columns.push_back(std::move(values));
        columns.push_back(numbers("size", {size}));
        columns.push_back(numbers("modificationTime", {time}));
        columns.push_back(std::make_unique<Node>(Node{"b", "dataChange", 1, {{}, {1}}, {}}));
        columns.push_back(texts("stats", {stats}));
        return exported(structure("", 1, std::move(columns)));
    });
}

PyMethodDef methods[] = {
    {"list_files", list_files, METH_O, "Return path and size of each file of a plan."},
    {"total", total, METH_VARARGS, "Return count and sum of the rows of a file that are not deleted."},
    {"positions_below", positions_below, METH_VARARGS, "Return the positions of rows with a value below a limit."},
    {"add_action", add_action, METH_VARARGS, "Return the action that adds a file, with statistics."},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "cpp_engine", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_cpp_engine() { return PyModule_Create(&module); }
