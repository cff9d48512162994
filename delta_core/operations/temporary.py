"""Temporary files of operations that need more memory than they may take."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from delta_core.errors import SpillError

__all__ = ["temporary_files"]


@contextmanager
def temporary_files() -> Iterator[None]:
    """Turn the system's errors into one that specifies where the files are and what to do.

    Raises
    ------
    SpillError
        In place of an OSError.
    """
    try:
        yield
    except OSError as e:
        where = tempfile.tempdir or "the temporary directory"
        raise SpillError(
            f"Temporary files below {where} could not be written or read: {e}. Make room there, choose another "
            "directory by the environment variable TMPDIR, or allow more memory with max_spill_size.",
            path=tempfile.tempdir,
        ) from e
