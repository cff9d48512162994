# Included by json.pyx: commits to columns; `delta_core.kernels.json_actions` is its public API.

cdef extern from "log/json_actions.h" namespace "delta_json":
    cdef cppclass Field:
        vector[pair[string, int]] entries

    cdef cppclass Kind:
        string name
        string columns
        vector[Field] fields
        Kind() except +
        void set_id(int, int, int, int)
        void add_field(string, char, int, int, cbool) except +

    cdef cppclass Schema:
        vector[Kind] kinds
        vector[string] skipped
        vector[string] wanted
        cbool only_wanted

    cdef cppclass Fault:
        int file
        int error
        cbool memory
        size_t offset
        string expected
        string found

    cdef cppclass Batches:
        vector[ArrowArray] arrays
        void append(Batches &) except +

    cdef cppclass BatchesOfRows "delta_json::Rows":
        Batches batches

    cdef cppclass KindBuilder:
        BatchesOfRows rows

    cdef cppclass Builder:
        vector[unique_ptr[KindBuilder]] kinds
        BatchesOfRows others
        Builder(shared_ptr[Schema]) except +
        cbool commit(const char *, size_t, const char *, int64_t, Fault &) except + nogil
        void close() except + nogil

    cbool read_files(
        shared_ptr[Schema] &, vector[string] &, const int64_t *, int, vector[unique_ptr[Builder]] &, Fault &
    ) except + nogil


cdef object _raise(Fault &fault):
    if fault.memory:
        raise MemoryError("no memory for the actions of the log")
    return fault.file, fault.error, fault.offset, (<bytes> fault.expected).decode(), <bytes> fault.found


cdef class Parser:
    """Builders of columns of actions.

    ``kinds`` contains a tuple for each kind of file action: (name, column types, fields, entries, id) with fields as
    (name, type, parent, column, required), entries as (field, key, column), id as (column, field, field, field) or
    None. The Python wrapper makes them; their indices are checked here.
    """

    cdef shared_ptr[Schema] schema
    cdef unique_ptr[Builder] builder
    cdef cbool failed

    def __cinit__(self, kinds, skipped, wanted):
        self.schema = make_shared[Schema]()
        cdef Schema *schema = self.schema.get()
        cdef Kind kind
        for name, columns, fields, entries, id_fields in kinds:
            if len(fields) > 64:
                raise ValueError(f"{name}: {len(fields)} fields asked for, at most 64 can be")
            kind = Kind()
            kind.name = name.encode()
            kind.columns = columns.encode()
            for field, of_type, parent, column, required in fields:
                if not -1 <= parent < <int> kind.fields.size() or not -1 <= column < len(columns):
                    raise ValueError(f"{name}.{field}: parent {parent} or column {column} is not there")
                if column >= 0 and columns[column] != {"j": "s", "r": "s"}.get(of_type, of_type):
                    raise ValueError(f"{name}.{field}: type {of_type} does not fit column type {columns[column]}")
                kind.add_field(field.encode(), ord(of_type), parent, column, required)
            for field, key, column in entries:
                if fields[field][1] != "m" or columns[column] != "d" or field < 0 or column < 0:
                    raise ValueError(f"{name}: no map at field {field}, or no dictionary at column {column}")
                kind.fields[<int> field].entries.push_back(pair[string, int](key.encode(), column))
            if id_fields is not None:
                if columns[id_fields[0]] != "s" or "".join(fields[i][1] for i in id_fields[1:]) != "ssi":
                    raise ValueError(f"{name}: fields {id_fields} make no id")
                kind.set_id(id_fields[0], id_fields[1], id_fields[2], id_fields[3])
            if columns[:2] != "li":
                raise ValueError(f"{name}: the first columns are version and line")
            schema.kinds.push_back(kind)
        for name in skipped:
            schema.skipped.push_back(name.encode())
        schema.only_wanted = wanted is not None
        for name in wanted or ():
            schema.wanted.push_back(name.encode())
        self.builder.reset(new Builder(self.schema))
        self.failed = False

    cdef object _fault(self, Fault &fault):
        self.failed = True
        self.builder.reset(new Builder(self.schema))
        return _raise(fault)

    def feed(self, int64_t version, data):
        """Parse one commit. Return None, or (0, 0, offset, expected, found) of its first fault."""
        cdef Py_buffer view
        cdef Fault fault
        cdef cbool good
        if self.failed:
            raise ValueError("this parser met a fault; what it had parsed is gone")
        PyObject_GetBuffer(data, &view, PyBUF_CONTIG_RO)
        try:
            if view.len == 0:
                return None
            with nogil:
                good = self.builder.get().commit(
                    <const char *> view.buf, view.len, <const char *> view.buf + view.len, version, fault
                )
        except BaseException:
            self.failed = True
            raise
        finally:
            PyBuffer_Release(&view)
        return None if good else self._fault(fault)

    def feed_files(self, paths, const int64_t[::1] versions, int threads):
        """Read and parse files. Return None, or (file, errno, offset, expected, found) of the first fault."""
        cdef vector[string] names
        cdef vector[unique_ptr[Builder]] parts
        cdef Fault fault
        cdef cbool good
        cdef size_t part, kind
        cdef const int64_t *first = NULL
        if self.failed:
            raise ValueError("this parser met a fault; what it had parsed is gone")
        if versions.shape[0] != len(paths):
            raise ValueError(f"{len(paths)} paths with {versions.shape[0]} versions")
        if versions.shape[0] == 0:
            return None
        names.reserve(len(paths))
        for path in paths:
            if b"\0" in path:
                raise ValueError(f"a NUL byte in path {path!r}")
            names.push_back(path)
        first = &versions[0]
        try:
            with nogil:
                self.builder.get().close()
                good = read_files(self.schema, names, first, threads, parts, fault)
        except BaseException:
            self.failed = True
            raise
        if not good:
            return self._fault(fault)
        for part in range(parts.size()):
            for kind in range(parts[part].get().kinds.size()):
                self.builder.get().kinds[kind].get().rows.batches.append(parts[part].get().kinds[kind].get().rows.batches)
            self.builder.get().others.batches.append(parts[part].get().others.batches)
        return None

    def take(self, schemas):
        """Return a list of batches for every kind, and one for all other kinds, and reset the parser."""
        if self.failed:
            raise ValueError("this parser met a fault; what it had parsed is gone")
        cdef size_t kinds = self.builder.get().kinds.size()
        if len(schemas) != <Py_ssize_t> kinds + 1:
            raise ValueError(f"{len(schemas)} schemas for {kinds + 1} tables")
        with nogil:
            self.builder.get().close()
        out = [_batches(self.builder.get().kinds[i].get().rows.batches, schemas[i]) for i in range(kinds)]
        out.append(_batches(self.builder.get().others.batches, schemas[kinds]))
        self.builder.reset(new Builder(self.schema))
        return out


cdef list _batches(Batches &batches, object schema):
    cdef Exported batch
    cdef list out = []
    for i in range(batches.arrays.size()):
        batch = Exported.__new__(Exported)
        batch.schema = schema
        batch.array = array_capsule(batches.arrays[i])
        out.append(batch)
    return out
