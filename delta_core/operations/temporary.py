"""Temporary files of operations that need more memory than they may take."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from delta_core.errors import DeltaError, SpillError
from delta_core.runtime.arguments import check_number

__all__ = ["check_limits", "temporary_files"]


@contextmanager
def temporary_files() -> Iterator[None]:
    """Turn the system's errors into one that specifies where the files are and what to do; this library's own stay.

    Raises
    ------
    SpillError
        In place of an OSError.
    """
    try:
        yield
    except DeltaError:  # some are errors of files too
        raise
    except OSError as e:
        where = tempfile.tempdir or "the temporary directory"
        raise SpillError(
            f"Temporary files below {where} could not be written or read: {e}. Make room there, choose another "
            "directory by the environment variable TMPDIR, or allow the operation more memory.",
            path=tempfile.tempdir,
        ) from e


def check_limits(max_spill_size: Any, max_temp_directory_size: Any, least_memory: int = 0) -> None:
    """Reject limits, in bytes of memory and of temporary files, that are no numbers; None is no limit.

    Raises
    ------
    InvalidArgumentError
        For text, a float, or a number that is too small.
    """
    check_number("max_spill_size", max_spill_size, least_memory, what="a number")
    check_number("max_temp_directory_size", max_temp_directory_size, 0, what="a number")
