# Included by metadata.pyx: decoding of protobuf messages to dictionaries; `delta_plugins.lance.wire` is its public API.

cdef extern from "lance/protobuf.h" namespace "lance" nogil:
    enum: WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_FIXED32
    cdef cppclass Field:
        uint32_t number, wire
        uint64_t value
        int64_t start, size
    cdef cppclass MessageReader:
        const uint8_t* data
        int64_t at, end
        bint damaged
        MessageReader(const uint8_t*, int64_t, int64_t)
        bint next(Field*)
        bint varint(uint64_t*)


# Kinds of values.
cdef enum:
    UNSIGNED = 0
    SIGNED = 1
    BOOL = 2
    TEXT = 3
    BYTES = 4
    DOUBLE = 5
    MESSAGE = 6

# Forms of fields.
cdef enum:
    SINGLE = 0
    REPEATED = 1
    MAP = 2

KINDS = {
    "u32": (UNSIGNED, 32), "u64": (UNSIGNED, 64), "i32": (SIGNED, 32), "i64": (SIGNED, 64), "bool": (BOOL, 64),
    "string": (TEXT, 0), "bytes": (BYTES, 0), "double": (DOUBLE, 0),
}
ZEROS = {UNSIGNED: 0, SIGNED: 0, BOOL: False, TEXT: "", BYTES: b"", DOUBLE: 0.0}
UNKNOWN = "?"
#: Messages within messages, at most; protobuf's own libraries have the same limit.
cdef int MOST_NESTED = 100
cdef uint32_t MOST_NUMBER = (1 << 29) - 1


class DamagedError(Exception):
    """Bytes that are no message; `decode` of the public API reports them with their place."""


cdef class Value:
    """The kind of the values of a field, or of the keys of a map."""

    cdef int kind, bits
    cdef Table table
    cdef int wire

    def __cinit__(self, str kind, Table table):
        self.table = table
        self.kind, self.bits = (MESSAGE, 0) if table is not None else KINDS[kind]
        self.wire = WIRE_VARINT if self.kind <= BOOL else WIRE_FIXED64 if self.kind == DOUBLE else WIRE_BYTES


cdef class Entry:
    """A field of a message's table."""

    cdef str name
    cdef int form
    cdef Value value, key

    def __cinit__(self, str name, int form, Value value, Value key):
        self.name, self.form, self.value, self.key = name, form, value, key


cdef class Table:
    """The fields of a message by their numbers; they are added once all messages have their tables.

    Parameters
    ----------
    name : str
        Of the message.
    """

    cdef readonly str name
    cdef dict entries, defaults
    cdef list repeated, maps

    def __cinit__(self, str name):
        self.name = name
        self.entries, self.defaults, self.repeated, self.maps = {}, {}, [], []

    def add(self, int number, str name, str kind, str form, str key, Table table):
        """Add a field; ``table`` is that of its values if they are messages, otherwise None."""
        cdef Value value = Value(kind, table)
        self.entries[number] = Entry(
            name, REPEATED if form == "*" else MAP if form == "map" else SINGLE, value, Value(key, None) if key else None
        )
        if form == "*":
            self.repeated.append(name)
        elif form == "map":
            self.maps.append(name)
        else:
            self.defaults[name] = ZEROS[value.kind] if form == "" else None


cdef dict new_message(Table table):
    cdef dict found = table.defaults.copy()
    for name in table.repeated:
        found[name] = []
    for name in table.maps:
        found[name] = {}
    return found


cdef object load_number(Value kind, uint64_t value):
    cdef int64_t signed = <int64_t>value
    if kind.kind == BOOL:
        return value != 0
    if kind.kind == UNSIGNED:
        if kind.bits == 32 and value >> 32:
            raise DamagedError(f"the number {value} needs more than 32 bits")
        return value
    if kind.bits == 32 and not -2147483648 <= signed <= 2147483647:
        raise DamagedError(f"the number {signed} needs more than 32 bits")
    return signed


cdef object load(Value kind, const Field* field, const uint8_t* data):
    """Return a scalar."""
    cdef double real
    if <int>field.wire != kind.wire:
        raise DamagedError(f"expected wire type {kind.wire}, found {field.wire}")
    if kind.kind <= BOOL:
        return load_number(kind, field.value)
    if kind.kind == TEXT:
        try:
            return PyUnicode_DecodeUTF8(<const char*>data + field.start, field.size, NULL)
        except UnicodeDecodeError as e:
            raise DamagedError(f"a text is no UTF-8: {e.reason} at byte {e.start}") from None
    if kind.kind == BYTES:
        return PyBytes_FromStringAndSize(<const char*>data + field.start, field.size)
    memcpy(&real, data + field.start, 8)
    return real


cdef dict load_message(Value kind, const Field* field, const uint8_t* data, int depth, dict found):
    if field.wire != WIRE_BYTES:
        raise DamagedError(f"expected wire type {WIRE_BYTES}, found {field.wire}")
    return read_message(kind.table, data + field.start, field.size, depth + 1, found)


cdef int add_items(list items, Value kind, const Field* field, const uint8_t* data, int depth) except -1:
    """Add the values of one occurrence of a repeated field: one, or those of a packed list."""
    cdef MessageReader* reader
    cdef uint64_t value
    cdef double real
    cdef int64_t i
    if kind.kind == MESSAGE:
        items.append(load_message(kind, field, data, depth, None))
    elif <int>field.wire == kind.wire or field.wire != WIRE_BYTES:
        items.append(load(kind, field, data))
    elif kind.kind == DOUBLE:
        if field.size % 8:
            raise DamagedError(f"{field.size} bytes are no list of 8-byte numbers")
        for i in range(field.size // 8):
            memcpy(&real, data + field.start + 8 * i, 8)
            items.append(real)
    else:
        reader = new MessageReader(data, field.start, field.size)
        try:
            while reader.at < reader.end:
                if not reader.varint(&value):
                    raise DamagedError(f"no number of at most 64 bits ends before byte {reader.at - field.start}")
                items.append(load_number(kind, value))
        finally:
            del reader
    return 0


cdef int add_entry(dict found, Entry entry, const Field* field, const uint8_t* data, int depth) except -1:
    """Add an entry of a map, which is a message of two fields."""
    cdef MessageReader* reader
    cdef Field part
    key, item = ZEROS[entry.key.kind], None
    if field.wire != WIRE_BYTES:
        raise DamagedError(f"expected wire type {WIRE_BYTES}, found {field.wire}")
    reader = new MessageReader(data, field.start, field.size)
    try:
        while reader.next(&part):
            if part.number == 1:
                key = load(entry.key, &part, data)
            elif part.number == 2 and entry.value.kind == MESSAGE:
                item = load_message(entry.value, &part, data, depth, item)
            elif part.number == 2:
                item = load(entry.value, &part, data)
        if reader.damaged:
            raise DamagedError(f"an entry of a map can't be read at byte {reader.at - field.start}")
    finally:
        del reader
    if item is None:
        item = new_message(entry.value.table) if entry.value.kind == MESSAGE else ZEROS[entry.value.kind]
    found[key] = item
    return 0


cdef int put(dict found, Entry entry, const Field* field, const uint8_t* data, int depth) except -1:
    """Add a value that was read to a message."""
    if entry.form == MAP:
        add_entry(<dict>found[entry.name], entry, field, data, depth)
    elif entry.form == REPEATED:
        add_items(<list>found[entry.name], entry.value, field, data, depth)
    elif entry.value.kind == MESSAGE:
        # a message whose field occurs twice is the union of both
        found[entry.name] = load_message(entry.value, field, data, depth, found[entry.name])
    else:
        found[entry.name] = load(entry.value, field, data)
    return 0


cdef dict read_message(Table table, const uint8_t* data, int64_t size, int depth, dict found):
    cdef MessageReader* reader
    cdef Field field
    cdef Entry entry
    if depth >= MOST_NESTED:
        raise DamagedError(f"more than {MOST_NESTED} messages are nested")
    if found is None:
        found = new_message(table)
    reader = new MessageReader(data, 0, size)
    try:
        while reader.next(&field):
            entry = <Entry>table.entries.get(field.number)
            if entry is None:
                value = (
                    field.value if field.wire == WIRE_VARINT
                    else PyBytes_FromStringAndSize(<const char*>data + field.start, field.size)
                )
                found.setdefault(UNKNOWN, []).append((field.number, field.wire, value))
                continue
            try:
                put(found, entry, &field, data, depth)
            except DamagedError as e:
                raise DamagedError(f"{entry.name}: {e}") from None
        if reader.damaged:
            raise DamagedError(fault(data, size, reader.at))
    finally:
        del reader
    return found


cdef str fault(const uint8_t* data, int64_t size, int64_t at):
    """Return why no field could be read; ``at`` is where reading stopped."""
    cdef MessageReader* reader = new MessageReader(data, 0, size)
    cdef Field field
    cdef uint64_t tag, length
    cdef int64_t start = 0
    try:
        while reader.next(&field):
            start = reader.at
        reader.damaged = False
        reader.at = start
        if not reader.varint(&tag):
            return f"no number of at most 64 bits ends before byte {at}"
        if not 0 < tag >> 3 <= MOST_NUMBER:
            return f"field number {tag >> 3} before byte {reader.at} is not one of 1 to {MOST_NUMBER}"
        if tag & 7 not in (WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_FIXED32):
            return f"wire type {tag & 7} at byte {reader.at} is not one of 0, 1, 2 and 5"
        length = 8 if tag & 7 == WIRE_FIXED64 else 4
        if (tag & 7) in (WIRE_VARINT, WIRE_BYTES) and not reader.varint(&length):
            return f"no number of at most 64 bits ends before byte {at}"
        return f"a field at byte {reader.at} has {length} bytes, but only {size - reader.at} follow"
    finally:
        del reader


def decode(Table table not None, source):
    """Decode the bytes of a message, to a dictionary."""
    cdef Py_buffer view
    PyObject_GetBuffer(source, &view, PyBUF_SIMPLE)
    try:
        return read_message(table, <const uint8_t*>view.buf, view.len, 0, None)
    finally:
        PyBuffer_Release(&view)
