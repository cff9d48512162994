"""Filesystems that behave as some stores do, on this machine's disk; registered with fsspec by `register`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractFileSystem

__all__ = ["register"]


class _OnDisk(LocalFileSystem):  # type: ignore[misc]
    """Local files under a scheme of their own; fsspec keeps no instances, so that tests share nothing."""

    cachable = False

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        scheme = cls.protocol if isinstance(cls.protocol, str) else cls.protocol[0]
        return LocalFileSystem._strip_protocol(str(path).removeprefix(f"{scheme}://"))


class RenamingFileSystem(_OnDisk):
    """As HDFS: no exclusive creation, and a rename that fails if the target exists."""

    protocol = "renaming"
    pipe_file = AbstractFileSystem.pipe_file

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        os.link(source, target)
        Path(source).unlink()


class SilentRenamingFileSystem(RenamingFileSystem):
    """As WebHDFS: a rename that could not be done raises nothing."""

    protocol = "silentrenaming"

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        try:
            super().mv(path1, path2)
        except FileExistsError:
            return


class ReplacingFileSystem(_OnDisk):
    """As SFTP: no exclusive creation, and a rename that replaces."""

    protocol = "replacing"
    pipe_file = AbstractFileSystem.pipe_file

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        Path(self._strip_protocol(path1)).replace(self._strip_protocol(path2))


class CopyingFileSystem(_OnDisk):
    """Neither exclusive creation nor a rename: fsspec copies and deletes."""

    protocol = "copying"
    pipe_file = AbstractFileSystem.pipe_file
    mv = AbstractFileSystem.mv


class LyingFileSystem(_OnDisk):
    """Takes ``mode="create"`` and overwrites, as s3fs did for small files."""

    protocol = "lying"

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        Path(self._strip_protocol(path)).parent.mkdir(parents=True, exist_ok=True)
        Path(self._strip_protocol(path)).write_bytes(value)


class LookingFileSystem(LyingFileSystem):
    """Looks whether a file is there before it writes: rejects a second put, but not one at the same time."""

    protocol = "looking"

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        if mode == "create" and self.exists(path):
            raise FileExistsError(path)
        time.sleep(0.02)
        super().pipe_file(path, value)


def register() -> None:
    """Make fsspec find them."""
    kinds = (RenamingFileSystem, SilentRenamingFileSystem, ReplacingFileSystem, CopyingFileSystem)
    for kind in (*kinds, LyingFileSystem, LookingFileSystem):
        fsspec.register_implementation(kind.protocol, kind, clobber=True)
