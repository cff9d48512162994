"""Errors of this library that arise while Spark plans or runs a query, under their own types.

What Python raises when the driver asks it, what the driver's Java raises and what a row check finds reach PySpark as
Java exceptions. PySpark turns these into Python's by one function, in whose place another is put here.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from delta_core.engines.spark.java_source import PACKAGE
from delta_core.errors import DataFileError, DeltaError, EngineError

__all__ = ["convert_failures", "converted", "remembering"]

#: Errors that were raised in answer to the driver, without their tracebacks: what they know does not fit in a text.
_raised: deque[DeltaError] = deque(maxlen=32)
_lock = threading.Lock()
_is_installed = False
#: Java exceptions have causes, which may have causes.
_MOST_CAUSES = 16
_PROXY = "An exception was raised by the Python Proxy"
_CHECK = re.compile(r"delta_core: (row (\d+) of a data file fails the check '.*)", re.IGNORECASE)


@contextmanager
def remembering() -> Iterator[None]:
    """Remember the errors that are raised within, for `converted`."""
    try:
        yield
    except DeltaError as e:
        kept = _copy(e)
        cause = e.__cause__ or e.__context__
        if cause is not None:
            kept.add_note(f"Caused by {type(cause).__name__}: {cause}")
        with _lock:
            _raised.append(kept)
        raise


def convert_failures() -> None:
    """Have PySpark raise this library's errors where a Java exception stems from one; others stay what they are.

    Holds for the process, as what delta-spark does for its own errors; does nothing where PySpark has no such function.
    """
    global _is_installed
    from pyspark.errors.exceptions import captured

    with _lock:
        before: Callable[[Any], Any] | None = getattr(captured, "convert_exception", None)
        if _is_installed or before is None:
            return
        _is_installed = True

        @wraps(before)
        def convert(exception: Any) -> Any:
            return _safely_converted(exception) or before(exception)

        captured.convert_exception = convert


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
    """
    at = exception
    for _ in range(_MOST_CAUSES):
        if at is None:
            return None
        found = _one(at)
        if found is not None:
            return found
        at = at.getCause()
    return None


def _one(exception: Any) -> DeltaError | None:
    text = str(exception.getMessage() or "")
    if _PROXY in text:
        return _remembered(text)
    if (failed := _CHECK.search(text)) is not None:
        sentence = failed[1]
        return DataFileError(sentence[0].upper() + sentence[1:], row=int(failed[2]))
    if str(exception.getClass().getName()) == "java.lang.IllegalStateException":
        trace = exception.getStackTrace()
        if len(trace) and str(trace[0].getClassName()).startswith(f"{PACKAGE}."):
            return EngineError(text)
    return None


def _remembered(text: str) -> DeltaError | None:
    with _lock:
        raised = list(_raised)
    for e in reversed(raised):
        if f"{type(e).__module__}.{type(e).__qualname__}: {e.message}" in text:
            return _copy(e)
    return None


def _copy(e: DeltaError) -> DeltaError:
    out = type(e)(e.message, **e.facts)
    for note in getattr(e, "__notes__", ()):
        out.add_note(note)
    return out
