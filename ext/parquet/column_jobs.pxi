# Included by pages.pyx: column chunks with memory for their rows.

#: The most bytes of a block of memory that columns share: jemalloc returns blocks of 8 MB or more to the system at once, and
#: fresh memory takes longer than decoding into it.
cdef int64_t MOST_BLOCK = 4 << 20
#: Strings with more bytes than this are not copied from the memory that they were decoded into, which malloc maps separately.
cdef int64_t LEAST_TAKEN = 33 << 20


cdef bint describe(ChunkJob* job, tuple chunk) except -1:
    """Set the chunk that a job decodes, and return whether strings are requested as codes."""
    cdef bint coded
    (job.offset, job.size, job.codec, job.layout.width, job.layout.stored, job.most_level, coded, job.room,
     decompress) = chunk
    job.decompressor = <void*>decompress  # the tuple holds a reference
    if not job.layout.is_known():
        raise InvalidArgumentError(f"no values of {job.layout.width} bytes are stored in the form {job.layout.stored}")
    return coded


cdef class ColumnJobs:
    """Chunks to decode, with memory for their rows; see `read_columns`."""

    cdef ChunkJob* jobs
    cdef int64_t count
    cdef list chunks, blocks, texts, parts

    def __cinit__(self, list chunks):
        cdef ChunkJob* job
        cdef int64_t i
        cdef bint coded
        self.chunks, self.count = chunks, len(chunks)
        self.jobs = new_jobs(self.count)
        for i in range(self.count):
            job = &self.jobs[i]
            coded = describe(job, chunks[i])
            job.form = NUMBERS if job.layout.width else CODES if coded else STRINGS
            if job.form != STRINGS:
                job.room = 0

    def __dealloc__(self):
        delete_jobs(self.jobs)

    cdef int make_room(self, int64_t num_kept, double text_share) except -1:
        """Make room for `num_kept` rows, and for a share of the bytes of the chunk's strings."""
        cdef int64_t used, i, first = 0
        cdef ChunkJob* job
        cdef Block block
        self.blocks = []
        while first < self.count:
            # several columns share a block: for few rows, an allocation for each column would take much longer than decoding
            i, used = first, 0
            while i < self.count and (i == first or used + self.room_for(i, num_kept) <= MOST_BLOCK):
                used += self.room_for(i, num_kept)
                i += 1
            block, used = Block(used), 0
            for first in range(first, i):
                job = &self.jobs[first]
                job.out = block.data + used
                job.bits = job.out + room_of(self.value_bytes(first, num_kept)) if job.most_level else NULL
                job.room = <int64_t>(text_share * job.room)
                used += self.room_for(first, num_kept)
                self.blocks.append(block)
            first = i
        self.texts = [Block(self.jobs[i].room) if self.jobs[i].room else None for i in range(self.count)]
        for i in range(self.count):
            if self.jobs[i].room:
                self.jobs[i].text = (<Block>self.texts[i]).data
        return 0

    cdef int64_t value_bytes(self, int64_t i, int64_t num_kept) noexcept:
        cdef ValueLayout layout = self.jobs[i].layout
        return layout.bytes_of(num_kept) if layout.width else (num_kept + 1) * 4

    cdef int64_t room_for(self, int64_t i, int64_t num_kept) noexcept:
        return room_of(self.value_bytes(i, num_kept)) + (room_of((num_kept + 7) // 8) if self.jobs[i].most_level else 0)

    cdef int join(self, list columns, list group_rows, vector[ChunkPart]* parts) except -1:
        """Set the chunks of consecutive row groups, which are decoded as one chunk for each column."""
        cdef int64_t i, k, count = len(group_rows), room
        cdef ChunkPart part
        cdef ChunkJob job
        for i in range(self.count):
            room = 0
            if len(columns[i]) != count:
                raise InvalidArgumentError(f"{len(columns[i])} chunks of {count} row groups")
            for k in range(count):
                describe(&job, columns[i][k])
                if job.layout.width != self.jobs[i].layout.width or job.layout.stored != self.jobs[i].layout.stored:
                    raise InvalidArgumentError("chunks of one column store values differently")
                part.offset, part.size, part.num_rows, part.codec = job.offset, job.size, group_rows[k], job.codec
                part.most_level, part.decompressor = job.most_level, job.decompressor
                self.jobs[i].most_level = max(self.jobs[i].most_level, part.most_level)
                room += job.room
                parts.push_back(part)
            self.jobs[i].room = room if self.jobs[i].form == STRINGS else 0
        self.parts = columns
        return 0

    cdef int64_t copied_bytes(self, int64_t i) noexcept:
        """Return the bytes of a chunk that `export` copies."""
        cdef ChunkJob* job = &self.jobs[i]
        if job.is_null or job.form == NUMBERS:
            return 0
        if job.form == CODES:
            return room_of((job.length + 1) * 4) + room_of(job.used)
        return room_of(job.used) if job.used < LEAST_TAKEN else 0

    cdef int64_t export(self, int64_t i, int64_t num_kept, uint8_t* text, BatchColumns* columns, list owners) except -1:
        """Export the result of a chunk, and return how many bytes of it were copied to `text`."""
        cdef ChunkJob* job = &self.jobs[i]
        cdef const void* valid = job.bits if job.nulls else NULL
        cdef const void* values = job.out
        cdef const uint8_t* data = job.grown.data() if job.grown.data() is not NULL else job.text
        cdef int64_t size = self.copied_bytes(i)
        if job.is_null:
            held = zeros(max((num_kept + 7) // 8, self.value_bytes(i, num_kept), 64))
            owners.append(held)
            valid = values = <const void*><uintptr_t>held.address
        if job.form == NUMBERS:
            columns.set(i, num_kept, job.nulls, valid, values, False, NULL)
        elif job.form == CODES:
            columns.set(i, num_kept, job.nulls, valid, values, False, NULL)
            if not job.length or job.is_null:
                held = zeros(64)
                owners.append(held)
                data = <const uint8_t*><uintptr_t>held.address
                columns.set_dictionary(i, 0, data, data)
            else:
                memcpy(text, job.ends.data(), (job.length + 1) * 4)
                memcpy(text + room_of((job.length + 1) * 4), data, job.used)
                columns.set_dictionary(i, job.length, text, text + room_of((job.length + 1) * 4))
        elif job.is_null:
            columns.set(i, num_kept, job.nulls, valid, values, True, values)
        elif size:
            if job.used:
                memcpy(text, data, job.used)
            columns.set(i, num_kept, job.nulls, valid, values, True, text)
        else:
            if data is job.text:
                owners.append(self.texts[i])
            else:
                held = taken(&job.grown, job.used)
                owners.append(held)
                data = <const uint8_t*><uintptr_t>held.address
            columns.set(i, num_kept, job.nulls, valid, values, True, data)
        return size

    cdef object found(self, int64_t i, int64_t num_kept, tuple dictionary):
        """Return the result of a chunk, with `dictionary` unless it is None."""
        cdef ChunkJob* job = &self.jobs[i]
        cdef Block block = self.blocks[i]
        cdef int64_t size, bits = (num_kept + 7) // 8
        check_status(job.status)
        if job.status != DONE:
            return None
        if job.is_null:
            return self.nulls(i, num_kept, dictionary)
        valid = block.buffer.slice(job.bits - block.data, bits) if job.nulls else None
        size = job.layout.bytes_of(num_kept) if job.layout.width else num_kept * 4 + (4 if job.form == STRINGS else 0)
        values = block.buffer.slice(job.out - block.data, size)
        if job.form == NUMBERS:
            return valid, job.nulls, values
        if job.form == CODES:
            return (valid, job.nulls, values) + (self.dictionary(i) if dictionary is None else dictionary)
        if job.grown.data() is not NULL and job.used >= LEAST_TAKEN:
            return valid, job.nulls, values, taken(&job.grown, job.used)
        if job.grown.data() is not NULL or 4 * job.used < job.room:  # a slice would hold all of the room
            data = job.grown.data() if job.grown.data() is not NULL else job.text
            return valid, job.nulls, values, copied(data, job.used)
        return valid, job.nulls, values, (<Block>self.texts[i]).cut(job.used) if job.room else copied(NULL, 0)

    cdef tuple nulls(self, int64_t i, int64_t num_kept, tuple dictionary):
        """Return a chunk of nulls alone."""
        cdef ChunkJob* job = &self.jobs[i]
        valid = zeros((num_kept + 7) // 8)
        if job.form == NUMBERS:
            return valid, num_kept, zeros(job.layout.bytes_of(num_kept))
        if job.form == CODES:
            return (valid, num_kept, zeros(num_kept * 4)) + (self.dictionary(i) if dictionary is None else dictionary)
        return valid, num_kept, zeros((num_kept + 1) * 4), zeros(0)

    cdef tuple dictionary(self, int64_t i):
        cdef ChunkJob* job = &self.jobs[i]
        offsets = copied(job.ends.data(), (job.length + 1) * 4) if job.length else bytes(4)
        return offsets, copied(job.grown.data(), job.used), job.length
