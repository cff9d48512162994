"""The program of `decoder.cpp`, and the files that it begins with."""

from __future__ import annotations

import shutil
import struct
import subprocess
from decimal import Decimal
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.parquet._footer import Footer
from delta_core.parquet._pages import has_zstd

__all__ = ["COMPILER", "build", "write_seeds"]

COMPILER = shutil.which("g++") or shutil.which("c++")
_ROOT = Path(__file__).resolve().parents[3]
_CODECS = {"NONE": 0, "SNAPPY": 1, "LZ4": 4, "GZIP": 5} | ({"ZSTD": 3} if has_zstd() else {})


def build(folder: Path) -> Path:
    """Compile the program; raises RuntimeError with what the compiler reports."""
    program = folder / "decoder"
    sanitizers = "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    source = Path(__file__).with_name("decoder.cpp")
    command = [
        COMPILER or "g++",
        "-std=c++17",
        "-O1",
        "-g",
        *sanitizers,
        f"-I{_ROOT / 'ext'}",
        source,
        "-o",
        program,
        "-ldl",
    ]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return program


def write_seeds(folder: Path) -> list[Path]:
    """Write footers and column chunks of small Parquet files, each in the form that the program takes."""
    out: list[Path] = []
    rows = 300
    columns = {
        "i": (pa.array([i // 3 if i % 7 else None for i in range(rows)], pa.int64()), 8),
        "f": (pa.array([i * 0.5 for i in range(rows)], pa.float32()), 4),
        "s": (pa.array([f"text {i % 11}" * (i % 4) if i % 5 else None for i in range(rows)]), 0),
    }
    # with the layout of their values, see `layout_of` in decoder.cpp
    others = {
        "flag": (pa.array([i % 3 > 0 if i % 7 else None for i in range(rows)]), 32),
        "small": (pa.array([i % 100 - 50 if i % 9 else None for i in range(rows)], pa.int8()), 33),
        "short": (pa.array([i - 99 for i in range(rows)], pa.int16()), 34),
        "instant": (pa.array([i * 10**12 if i % 7 else None for i in range(rows)], pa.timestamp("us")), 37),
        "money": (pa.array([Decimal(i) if i % 7 else None for i in range(rows)], pa.decimal128(10, 0)), 40 + 5),
        "amount": (pa.array([Decimal(-i) * 10**20 for i in range(rows)], pa.decimal128(30, 0)), 40 + 13),
    }
    # the same in further encodings
    further = [
        ("i", "DELTA_BINARY_PACKED", 8), ("f", "BYTE_STREAM_SPLIT", 4), ("s", "DELTA_LENGTH_BYTE_ARRAY", 0),
        ("s", "DELTA_BYTE_ARRAY", 0), ("small", "DELTA_BINARY_PACKED", 33), ("money", "DELTA_BYTE_ARRAY", 45),
        ("amount", "BYTE_STREAM_SPLIT", 53),
    ]  # fmt: skip
    decimal = pa.decimal128(20, 0)
    entries = pa.map_(pa.string(), pa.list_(pa.int64()))
    nested = {
        "l": pa.array([[k if k % 3 else None for k in range(i % 5)] if i % 7 else None for i in range(rows)]),
        "m": pa.array([[(f"k{k}", [k] * k) for k in range(i % 4)] for i in range(rows)], entries),
        "t": pa.array([{"x": None if i % 3 else i, "y": [{"z": f"text {i}"}] * (i % 3)} for i in range(rows)]),
        "b": pa.array([[None if k % 3 else k % 2 > 0 for k in range(i % 20)] for i in range(rows)]),
        "e": pa.array(
            [[{"x": k, "y": f"{i}"} if k % 3 else None for k in range(i % 4)] if i % 7 else None for i in range(rows)]
        ),
        "d": pa.array([[Decimal(i % 9) - 4] * (i % 4) if i % 7 else None for i in range(rows)], pa.list_(decimal)),
    }
    table = pa.table({name: array for name, (array, _) in (columns | others).items()} | nested)
    # of the columns in them: bytes of a value (of a decimal, 16 more), and the definition level of an element of the
    # innermost list
    inner = [(8, 2), (0, 2), (8, 4), (8, 0), (0, 3), (1, 2), (8, 2), (0, 2), (16 + 9, 2)]
    for number, (codec, version, dictionary) in enumerate(product(_CODECS, ("1.0", "2.0"), (True, False))):
        path = folder / f"{number}.parquet"
        pq.write_table(
            table,
            path,
            compression=codec,
            data_page_version=version,
            use_dictionary=dictionary,
            data_page_size=512,
            write_page_index=True,
            use_deprecated_int96_timestamps=True,
            bloom_filter_options={name: {"ndv": 50} for name in columns},
        )
        data = path.read_bytes()
        (length,) = struct.unpack("<i", data[-8:-4])
        out.append(_write(folder / f"{number}.footer", b"F" + data[-8 - length : -8]))
        metadata = pq.read_metadata(path)
        group, schema = metadata.row_group(0), metadata.schema
        footer = Footer(data[-8 - length : -8])
        for i, (name, (_, width)) in enumerate(columns.items()):
            chunk = group.column(i)
            first = chunk.dictionary_page_offset or chunk.data_page_offset
            head = struct.pack("<BBBBq", ord("C"), _CODECS[codec], width, 1, rows)
            body = data[first : first + chunk.total_compressed_size]
            out.append(_write(folder / f"{number}.{name}.chunk", head + body))
            at, size, first, first_size, second, second_size = (footer.chunk(0, i) or ())[7:]
            head = struct.pack("<BBBBq", ord("I"), first_size & 255, width, first_size >> 8, rows)
            index = data[first : first + first_size] + data[second : second + second_size]
            out.append(_write(folder / f"{number}.{name}.index", head + index))
            out.append(_write(folder / f"{number}.{name}.bloom", b"B" + head[1:] + data[at : at + size]))
        if codec != "LZ4":  # such files are read one by one
            whole = folder / f"{number}.whole.parquet"
            form = {"use_dictionary": dictionary, "data_page_version": version, "row_group_size": 200}
            pq.write_table(table.select([*columns, "e"]), whole, compression=codec, data_page_size=512, **form)
            out.append(
                _write(folder / f"{number}.whole", struct.pack("<BBBBq", ord("W"), 0, 1, 0, rows) + whole.read_bytes())
            )
        for i, (name, (_, layout)) in enumerate(others.items(), start=len(columns)):
            chunk = group.column(i)
            first = chunk.dictionary_page_offset or chunk.data_page_offset
            head = struct.pack("<BBBBq", ord("C"), _CODECS[codec], layout, 1, rows)
            out.append(
                _write(folder / f"{number}.{name}.chunk", head + data[first : first + chunk.total_compressed_size])
            )
        for name, encoding, layout in further if not dictionary else ():
            other = folder / f"{number}.{name}.{encoding}.parquet"
            plain = {"use_dictionary": False, "column_encoding": encoding, "data_page_version": version}
            pq.write_table(table.select([name]), other, compression=codec, data_page_size=512, **plain)
            chunk = pq.read_metadata(other).row_group(0).column(0)
            first, size = chunk.data_page_offset, chunk.total_compressed_size
            head = struct.pack("<BBBBq", ord("C"), _CODECS[codec], layout, 1, rows)
            body = other.read_bytes()[first : first + size]
            out.append(_write(folder / f"{number}.{name}.{encoding}.chunk", head + body))
        for i, (width, slot) in enumerate(inner, start=len(columns) + len(others)):
            chunk, column = group.column(i), schema.column(i)
            first = chunk.dictionary_page_offset or chunk.data_page_offset
            levels = column.max_definition_level, column.max_repetition_level
            head = struct.pack("<BBBBqBB", ord("N"), _CODECS[codec], width, levels[0], rows, levels[1], slot)
            body = struct.pack("<q", chunk.num_values) + data[first : first + chunk.total_compressed_size]
            out.append(_write(folder / f"{number}.{i}.nested", head + body))
    return out


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
