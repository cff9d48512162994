"""Errors of this library that arise while Spark plans or runs a query, under their own types.

Errors that Python raises when the driver queries it, errors of the driver's Java, failed row checks and data files that
Spark can't read reach PySpark as Java exceptions. PySpark turns these into Python's by one function, in whose place
another is put here.
"""

from __future__ import annotations

import copy
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, Protocol
from urllib.parse import unquote
from weakref import WeakSet

from delta_core.engines.spark.java.sources import PACKAGE
from delta_core.engines.spark.spark_errors import as_spark_error, as_stream_error, copied_error, own_class
from delta_core.engines.spark.unconfigured import explained
from delta_core.errors import (
    AccessDeniedError,
    DataFileError,
    DataFileNotFoundError,
    DeltaError,
    EngineError,
    shortened,
)

__all__ = [
    "FileNames",
    "SparkError",
    "WorkersLackPackageError",
    "cause_of",
    "convert_failures",
    "converted",
    "described",
    "failing_text",
    "failing_as",
    "is_checkpoint_lost",
    "is_task_of_write",
    "names_files",
    "names_root",
    "reason",
    "remembering",
]

#: Errors that were raised in answer to the driver, without their tracebacks: their attributes do not fit in a text.
_raised: deque[DeltaError] = deque(maxlen=32)
_lock = threading.Lock()
_is_installed = False
#: Java exceptions have causes, which may have causes.
_MOST_CAUSES = 16
_PROXY = "An exception was raised by the Python Proxy"
#: The messages of rows that fail on purpose begin with it.
_FAILING = "delta_core failed: "
_CHECK = re.compile(r"delta_core: (row (\d+) of a data file fails the check '.*)", re.IGNORECASE)
#: How Spark's messages begin: the name of the condition.
_CONDITION = re.compile(r"\s*\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]\s*")
#: The parts after the sentence that specifies the error: Java's stack, the query, Spark's plan, the class of the
#: condition.
_END = re.compile(
    r"\n\s+at |\n\s*at |\n== |;\n|\n['+:!]|\nDriver stacktrace|\n\nJVM stacktrace|\s*SQLSTATE: ", re.DOTALL
)
#: Where Spark's Parquet library runs into a null pointer if a footer has a logical type that it does not support.
_LOGICAL_TYPES = "getLogicalTypeAnnotation"
#: A task that failed, in the words of a job that failed for it.
_LOST_TASK = re.compile(r"most recent failure: .*?\((?:TID \d+)\).*?\): ", re.DOTALL)
_PYTHON = "Traceback (most recent call last):"
#: How the stacks of Java show a task that failed while it wrote rows: Spark may raise the cause alone.
_TASK_SIGNS = ("[TASK_WRITE_FAILED]", "FileFormatWriter$.executeTask")
_CHECKPOINT_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
_OWN_ERROR = re.compile(r"^((?:\w+\.)+)(\w+): (.*)", re.DOTALL)
_MODULE_MISSING = re.compile(r"ModuleNotFoundError: No module named '(delta_core|delta_plugins)\b")
_STREAM_FAILED = "org.apache.spark.sql.streaming.StreamingQueryException"
#: Exceptions that only carry others.
_WRAPPERS = (
    "java.lang.reflect.",
    "java.util.concurrent.ExecutionException",
    "org.apache.spark.sql.execution.adaptive.",
    "py4j.",
)
_WRAPPING = re.compile(r"\s*(Job aborted|Writing job aborted|\[TASK_WRITE_FAILED\]|Exception thrown in awaitResult)")


class WorkersLackPackageError(EngineError):
    """Spark's Python workers can't import this package."""


class FileNames(Protocol):
    """The files of a table that may lie outside its root."""

    def path_at(self, place: str) -> str | None:
        """Return the path in the log of the file at a place (as Hadoop spells it, decoded); None for other files."""


#: The tables that were read: a file that Spark can't read is this library's concern if it belongs to one of them.
_roots: dict[str, None] = {}
_MOST_ROOTS = 256
_files: WeakSet[Any] = WeakSet()


def names_root(root: str) -> None:
    """Have files below a root (as Hadoop spells it) that Spark can't read raise this library's errors."""
    with _lock:
        _roots.pop(_plain(root), None)
        _roots[_plain(root)] = None
        while len(_roots) > _MOST_ROOTS:
            del _roots[next(iter(_roots))]


def names_files(files: FileNames) -> None:
    """Do the same for files, as long as the object exists."""
    with _lock:
        _files.add(files)


def _plain(place: str) -> str:
    return re.sub(r"^file:/+", "file:/", place)


@contextmanager
def remembering() -> Iterator[None]:
    """Remember the errors that are raised within, for `converted`; what is no DeltaError becomes an EngineError."""
    try:
        yield
    except DeltaError as e:
        _remember(e, e.__cause__ or e.__context__)
        raise
    except Exception as e:
        found = EngineError(f"{type(e).__name__}: {shortened(e)}")
        found.__cause__ = e
        as_spark_error(found)
        _remember(found, e)
        raise found from e


def _remember(e: DeltaError, cause: BaseException | None) -> None:
    copied = _copy(e)
    if cause is not None:
        copied.add_note(f"Caused by {type(cause).__name__}: {shortened(cause)}")
        with suppress(Exception):  # of a cause that can't be copied the note remains
            copied.__cause__ = copy.copy(cause).with_traceback(None)
    with _lock:
        _raised.append(copied)


def failing_text(e: DeltaError) -> str:
    """Return the text that a row has to raise (``raise_error``) so that the query fails with this error."""
    _remember(e, e.__cause__)
    return f"{_FAILING}{_shown(e)}"


def _shown(e: DeltaError) -> str:
    return f"{own_class(e).__module__}.{own_class(e).__qualname__}: {e.message}"


def convert_failures() -> None:
    """Have PySpark raise this library's errors if a Java exception stems from one; others stay what they are.

    The exception of a streaming query that failed has such an error as its ``__cause__``. Holds for the process, as
    what delta-spark does for its own errors; does nothing if PySpark has no such function.
    """
    global _is_installed
    from pyspark.errors.exceptions import captured
    from pyspark.sql.streaming.query import StreamingQuery

    with _lock:
        before: Callable[[Any], Any] | None = getattr(captured, "convert_exception", None)
        if _is_installed or before is None:
            return
        _is_installed = True

        @wraps(before)
        def convert(exception: Any) -> Any:
            found = _safely_converted(exception) or explained(_text(exception))
            if found is None:
                return before(_declared(exception))
            is_stream = _class_name(exception) == _STREAM_FAILED
            return as_stream_error(found) if is_stream else as_spark_error(found)

        captured.convert_exception = convert
        of_query = StreamingQuery.exception

        @wraps(of_query)
        def exception(self: Any) -> Any:
            found = of_query(self)
            cause = getattr(found, "_cause", None)  # as `convert` returned it
            if found is not None and isinstance(cause, DeltaError):
                found.__cause__ = cause
            return found

        StreamingQuery.exception = exception  # type: ignore[method-assign, unused-ignore]  # where pyspark is not there


def _declared(exception: Any) -> Any:
    """Return what a proxy of Java wraps if its interface does not declare it, as errors of Spark's parser."""
    is_wrapped = _class_name(exception) == "java.lang.reflect.UndeclaredThrowableException"
    return exception.getCause() if is_wrapped else exception


def _safely_converted(exception: Any) -> DeltaError | None:
    try:
        return converted(exception)
    except Exception:  # noqa: BLE001 (the exception at hand matters more than what could not be told of it)
        return None


def converted(exception: Any) -> DeltaError | None:
    """Return the error of this library from which a Java exception stems, None for others.

    Parameters
    ----------
    exception : py4j.java_gateway.JavaObject
        A ``Throwable``; its causes are searched too.
    """
    chain = _chain(exception)
    for at in chain:
        found = _one(at)
        if found is not None:
            return found
    for place, at in enumerate(chain):
        broken = _data_file(at, chain[place + 1 :])
        if broken is not None:
            return broken
    return None


def _chain(exception: Any) -> list[Any]:
    out: list[Any] = []
    while exception is not None and len(out) < _MOST_CAUSES:
        out.append(exception)
        exception = exception.getCause()
    return out


def _text(exception: Any) -> str:
    return str(exception.getMessage() or "")


def _one(exception: Any) -> DeltaError | None:
    text = _text(exception)
    if _PROXY in text:
        return _remembered(text) or _named(_python_error(text) if _PYTHON in text else "")
    if _FAILING in text:
        return _remembered(text) or _named(_sentence(text.partition(_FAILING)[2]))
    if (failed := _CHECK.search(text)) is not None:
        sentence = _sentence(failed[1])
        return DataFileError(sentence[0].upper() + sentence[1:], row=int(failed[2]))
    if _PYTHON in text:
        return _of_worker(text)
    if str(exception.getClass().getName()) == "java.lang.IllegalStateException":
        trace = exception.getStackTrace()
        if len(trace) and str(trace[0].getClassName()).startswith(f"{PACKAGE}."):
            return EngineError(text)
    return None


def described(text: str) -> str:
    """Return the class of PySpark, the condition and the message of the error in the text of Java's exception.

    They are lines, the last ones those of the message; an empty text if there is no such error.
    """
    error = _remembered(text) or _named(_python_error(text) if _PYTHON in text else "")
    if error is None:
        return ""
    found: Any = as_spark_error(error)
    kind = next((k.__name__ for k in type(found).__mro__ if k.__module__.startswith("pyspark.errors")), "")
    condition = getattr(found, "spark_condition", None) or ""
    return f"{kind}\n{condition}\n{f'[{condition}] ' if condition else ''}{error.message}"


def _remembered(text: str) -> DeltaError | None:
    with _lock:
        raised = list(_raised)
    for e in reversed(raised):
        if _shown(e) in text:
            return _copy(e)
    return None


def _of_worker(text: str) -> DeltaError | None:
    """Return an error of this library that a Python worker raised, from the traceback that Spark reports."""
    if (missing := _MODULE_MISSING.search(text)) is not None:
        return WorkersLackPackageError(
            f"Spark's Python workers can't import {missing[1]}. Install it if they run, and set PYSPARK_PYTHON to the "
            "interpreter that has it before the session starts."
        )
    return _named(_python_error(text))


def _named(text: str) -> DeltaError | None:
    """Return an error of this library from its class and message, as a traceback ends with them; None for others."""
    own = _OWN_ERROR.match(text)
    module = None if own is None else sys.modules.get(own[1][:-1])
    kind = None if own is None else getattr(module, own[2], None)
    if own is None or not (isinstance(kind, type) and issubclass(kind, DeltaError)):
        return None
    return kind(own[3].strip())


def _python_error(text: str) -> str:
    """Return the last error of a traceback: its type and message."""
    lines = text[text.rindex(_PYTHON) :].split("SQLSTATE: ", maxsplit=1)[0].strip().splitlines()
    frames = [i for i, line in enumerate(lines) if line.startswith(("  ", _PYTHON))]
    # in front of the error are its frames; a Java stack may follow
    last = "\n".join(lines[frames[-1] + 1 :]) if frames else ""
    return _END.split(last, maxsplit=1)[0].strip()


# --- data files ----------------------------------------------------------------------------


def _data_file(exception: Any, causes: list[Any]) -> DeltaError | None:
    condition = _CONDITION.match(_text(exception))
    name = "" if condition is None else condition[1]
    if name != "PATH_NOT_FOUND" and not name.startswith("FAILED_READ_FILE"):
        return None
    facts = _parameters(exception)
    path = _path_of(facts.get("path", ""))
    if path is None:
        return None
    if name in ("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST"):
        return DataFileNotFoundError.of(path)
    if name.endswith("PARQUET_COLUMN_DATA_TYPE_MISMATCH"):
        column = re.sub(r"^\[|\]$", "", facts.get("column", ""))
        found, expected = facts.get("actualType", ""), facts.get("expectedType", "")
        return DataFileError(
            f"Data file {path!r} can't be read as the table's schema specifies: column {column} is stored as {found}, "
            f"expected {expected}.",
            path=path,
            column=column,
            found=found,
            expected=expected,
        )
    why = (_combined(causes) if causes else _sentence(_text(exception))).replace(f"{facts['path']} ", "it ")
    if any("Permission denied" in _text(e) or "AccessControl" in _class_name(e) for e in causes):
        return AccessDeniedError.of(path, why)
    if any(_fails_in(e, _LOGICAL_TYPES) for e in causes):
        return DataFileError(
            f"Data file {path!r} can't be read: this version of Spark does not support the Parquet type of one of its "
            "columns. Columns marked as variants need PySpark 4.1 or newer.",
            path=path,
        )
    return DataFileError(f"Data file {path!r} can't be read: it is no sound Parquet file ({why}).", path=path)


def _fails_in(exception: Any, method: str) -> bool:
    frames = exception.getStackTrace()  # none where the JVM leaves them out, of an exception that it throws often
    return len(frames) > 0 and frames[0].getMethodName() == method


def _path_of(place: str) -> str | None:
    decoded = _plain(unquote(place, errors="surrogateescape"))
    with _lock:
        roots, files = list(_roots), list(_files)
    root = max((r for r in roots if decoded.startswith(r)), key=len, default=None)
    if root is not None:
        return decoded[len(root) :]
    return next((path for f in files if (path := _path_in(f, decoded)) is not None), None)


def _path_in(files: FileNames, place: str) -> str | None:
    try:
        return files.path_at(place)
    except Exception:  # noqa: BLE001 (a table of another query, whose log may be gone by now, says nothing of this file)
        return None


def _parameters(exception: Any) -> dict[str, str]:
    found = exception.getMessageParameters()
    return {str(key): str(found[key]) for key in found}


# --- what a failed job specifies ----------------------------------------------------------------


class SparkError(Exception):
    """Spark's report of a failure: a line for each cause, without Java's stacks.

    Parameters
    ----------
    java_exception : object, optional
        The exception of the driver, whose stack ``printStackTrace()`` shows.
    """

    def __init__(self, message: str, java_exception: Any = None) -> None:
        super().__init__(message)
        self.java_exception = java_exception

    def __reduce__(self) -> tuple[Any, ...]:
        return SparkError, self.args


@contextmanager
def failing_as(text: str, **facts: Any) -> Iterator[None]:
    """Raise what Spark raises within as an error of ours, whose message is a sentence or two; other errors pass.

    Raises
    ------
    EngineError
        If Spark raises.
    """
    try:
        yield
    except DeltaError:
        raise
    except Exception as e:
        if not _is_sparks(e):
            raise
        raise EngineError(f"{text}: {reason(e)}", **facts) from cause_of(e)


def is_task_of_write(error: BaseException) -> bool:
    """Whether a task failed while it wrote rows."""
    text = f"{error}\n{getattr(error, '_stackTrace', '')}"
    return any(sign in text for sign in _TASK_SIGNS)


def is_checkpoint_lost(error: BaseException) -> bool:
    """Whether a job failed since rows that an executor kept went with it; the query has to run again."""
    return any(_CHECKPOINT_LOST in str(e) for e in (error, error.__cause__))


def _is_sparks(e: BaseException) -> bool:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped, unused-ignore]  # where pyspark is not there
    from pyspark.errors import PySparkException

    return isinstance(e, (Py4JError, PySparkException))


def reason(error: BaseException) -> str:
    """Return why Spark failed, in a sentence or two."""
    java = _java(error)
    return shortened(_sentence(str(error)) if java is None else _combined(_chain(java)), 600)


def cause_of(error: BaseException) -> BaseException:
    """Return what is to be the cause of an error that stems from Spark's: the same without Java's stacks."""
    java = _java(error)
    if java is None:
        return error
    from pyspark.errors.exceptions import captured

    made: BaseException | None = None
    with suppress(Exception):
        made = captured.convert_exception(java)
    if made is not None and not isinstance(made, captured.UnknownException):
        return made
    lines = [f"{_class_name(e)}: {shortened(_sentence(_text(e)), 1000)}" for e in _chain(java)]
    return SparkError("\nCaused by ".join(dict.fromkeys(lines)), java)


def _java(error: BaseException) -> Any:
    found = getattr(error, "java_exception", None)
    return getattr(error, "_origin", None) if found is None else found


def _class_name(exception: Any) -> str:
    return str(exception.getClass().getName())


def _combined(chain: list[Any]) -> str:
    """Return the first exception that is not only a carrier, and the last one's text if it adds to that."""
    informative = [e for e in chain if not _is_wrapper(e)] or chain[-1:]
    first, last = _message(informative[0]), _message(informative[-1])
    return first if _sentence(_text(informative[-1])) in first else f"{first} ({last})"


def _is_wrapper(exception: Any) -> bool:
    is_plain = _class_name(exception) == "org.apache.spark.SparkException" and exception.getCause() is not None
    return _class_name(exception).startswith(_WRAPPERS) or (is_plain and _WRAPPING.match(_text(exception)) is not None)


def _message(exception: Any) -> str:
    text = _text(exception)
    if _PYTHON in text:
        return _python_error(text)
    name = _class_name(exception).rpartition(".")[2]
    sentence = _sentence(text)
    # Spark's own specify all in their message
    is_plain = _CONDITION.match(text) is not None or _class_name(exception).startswith(
        "org.apache.spark.SparkException"
    )
    return sentence if is_plain and sentence else f"{name}: {sentence}" if sentence else name


def _sentence(text: str) -> str:
    """Return a message without what follows it, on one line."""
    lost = _LOST_TASK.search(text)
    body = text if lost is None else text[lost.end() :]
    if _PYTHON in body:
        return _python_error(body)
    return " ".join(_END.split(body.strip(), maxsplit=1)[0].split()).rstrip(". ")


def _copy(e: DeltaError) -> DeltaError:
    out = copied_error(e)
    out.__cause__ = e.__cause__
    for note in getattr(e, "__notes__", ()):
        out.add_note(note)
    return out
