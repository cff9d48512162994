"""Array functions that Numba compiles: their arguments, their cache, and calls without Numba or without a cache."""

from __future__ import annotations

import errno
import logging
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core.errors import InvalidArgumentError, MissingDependencyError
from delta_core.kernels.jit import array_function
from tests.architecture.source import ROOT

THREE = np.int64(3)


@array_function("int64(int64)")
def tripled(x: Any) -> Any:
    return x * THREE


@array_function("int64[::1](int64[::1], boolean[::1])")
def triples(values: Any, valid: Any) -> Any:
    out = np.zeros(len(values), np.int64)
    for i in range(len(values)):
        if valid[i]:
            out[i] = tripled(values[i])
    return out


@array_function("void(int64[::1], uint8[::1])", "void(int64[::1], int32[::1])", out=["sums"])
def add(sums: Any, values: Any) -> None:
    for i in range(len(values)):
        sums[i] += values[i]


@array_function("void(int64[::1])")
def overwrites_its_input(values: Any) -> None:
    values[0] = 1


def triples_of(values: list[int]) -> list[int]:
    found: list[int] = triples(np.array(values, np.int64), np.ones(len(values), np.bool_)).tolist()
    return found


def test_arrow_arrays_arrive_as_the_numbers_in_their_memory() -> None:
    array = pa.array([7, 1, None, 3])
    assert triples(array, array.is_valid()).tolist() == [21, 3, 0, 9]
    assert triples(array[2:], array[2:].is_valid()).tolist() == [0, 9]
    assert triples(array[:0], array[:0].is_valid()).tolist() == []


def test_buffers_arrive_as_bytes_and_none_as_no_bytes() -> None:
    sums = np.zeros(3, np.int64)
    add(sums, pa.py_buffer(b"abc"))
    add(sums, None)
    add(sums, np.array([1, 2], np.int32))
    assert sums.tolist() == [98, 100, 99]


@pytest.mark.parametrize(
    "arguments",
    [
        (pa.array([1, 2]), pa.py_buffer(b"ab")),  # memory of Arrow is not written to
        (np.zeros(2, np.int64), np.zeros(2, np.float64)),
        (np.zeros(4, np.int64)[::2], pa.py_buffer(b"ab")),
        (np.zeros((2, 2), np.int64), pa.py_buffer(b"ab")),
        (np.zeros(2, np.int64), "ab"),
    ],
    ids=["read-only", "dtype", "gaps", "dimensions", "text"],
)
def test_arguments_that_fit_no_signature_are_rejected_with_the_signatures(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"add was called with .*void\(int64\[::1\], uint8\[::1\]\)"):
        add(*arguments)


def test_strings_are_rejected_before_the_call() -> None:
    with pytest.raises(InvalidArgumentError, match="string"):
        add(np.zeros(1, np.int64), pa.array(["a"]))


def test_index_outside_an_array_raises() -> None:
    with pytest.raises(IndexError):
        add(np.zeros(1, np.int64), pa.py_buffer(b"abc"))


def test_code_that_writes_to_an_input_is_not_compiled() -> None:
    with pytest.raises(Exception, match="Cannot modify readonly array"):
        overwrites_its_input(np.zeros(1, np.int64))


def test_declaration_without_signature_or_with_an_unknown_output_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="no signature"):
        array_function()(triples_of)
    with pytest.raises(InvalidArgumentError, match=r"\['sum'\].*\['values'\]"):
        array_function("void(int64[::1])", out=["sum"])(triples_of)


def test_pickle_finds_the_function_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(triples)) is triples


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_processes_call_the_function(method: str) -> None:
    triples_of([1])
    with ProcessPoolExecutor(1, mp_context=get_context(method)) as pool:
        values = pool.submit(triples, np.array([2], np.int64), np.array([True])).result(timeout=120)
    assert values.tolist() == [6]


# --- in fresh processes ---

MODULE = """
import numpy as np
from delta_core.kernels.jit import array_function

@array_function("int64[::1](int64[::1])")
def doubled(values):
    return values * np.int64(2)
"""
RUN = """
import logging, sys
logging.basicConfig(level="INFO", stream=sys.stdout)
import numpy as np, doubling
assert "numba" not in sys.modules
assert doubling.doubled(np.arange(3)).tolist() == [0, 2, 4]
[dispatcher] = doubling.doubled._dispatcher.stats.cache_hits.values() or [0]
print("hits", dispatcher)
"""


def run(folder: Path, code: str, **environment: str) -> str:
    paths = os.pathsep.join([str(ROOT), str(folder)])
    cleared = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**cleared, "PYTHONPATH": paths, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "doubling.py").write_text(MODULE)
    return tmp_path


def test_first_call_imports_numba_and_the_next_process_loads_from_the_cache(module: Path) -> None:
    assert run(module, RUN) == "hits 0\n"
    assert list((module / "__pycache__").glob("*.nbi"))
    assert run(module, RUN) == "hits 1\n"


def test_changed_code_is_compiled_again(module: Path) -> None:
    run(module, RUN)
    (module / "doubling.py").write_text(MODULE.replace("np.int64(2)", "np.int64(20)"))
    assert run(module, RUN.replace("[0, 2, 4]", "[0, 20, 40]")) == "hits 0\n"


def test_truncated_cache_does_not_fail_the_call(module: Path) -> None:
    run(module, RUN)
    [index] = (module / "__pycache__").glob("*.nbi")
    index.write_bytes(b"")
    assert "compiled in this process alone" in run(module, RUN)


def test_missing_numba_raises_what_to_install(module: Path) -> None:
    (module / "numba.py").write_text("raise ModuleNotFoundError('No module named numba', name='numba')")
    code = """
import numpy as np, doubling
from delta_core.errors import MissingDependencyError
try:
    doubling.doubled(np.arange(3))
except MissingDependencyError as e:
    print(e, e.package)
"""
    expected = (
        "doubling.doubled is compiled by numba, which is not installed. Run: pip install 'delta-core-lake[numba]' numba"
    )
    assert run(module, code).strip() == expected


# --- faults of the cache ---


def fresh(name: str) -> Any:
    """An array function that this process has not compiled yet, of a name of its own in the cache."""

    def function(values: Any) -> Any:
        return values.sum()

    function.__qualname__ = function.__name__ = name
    return array_function("int64(int64[::1])")(function)


def test_read_only_folders_leave_the_function_without_a_cache(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import numba.core.caching

    def refuse(*args: Any, **options: Any) -> None:
        raise PermissionError(errno.EACCES, "read-only")

    monkeypatch.setattr(numba.core.caching.tempfile, "TemporaryFile", refuse)
    with caplog.at_level(logging.INFO):
        assert fresh("on_read_only_folders")(np.arange(4)) == 6
    assert "compiled in this process alone" in caplog.text


def test_full_disk_leaves_the_function_without_a_cache(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import numba.core.caching

    def fill(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "save", fill)
    with caplog.at_level(logging.INFO):
        assert fresh("on_a_full_disk")(np.arange(4)) == 6
    assert "No space left" in caplog.text


def test_numba_that_can_not_be_imported_is_reported_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingDependencyError, match=r"delta-core-lake\[numba\]"):
        fresh("without_numba")(np.arange(4))


def test_threads_that_call_first_at_once_get_the_same_values() -> None:
    function = fresh("from_threads")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: int(function(np.arange(4))), range(8))) == [6] * 8
