"""A manifest store in this process, and a storage on a disk, whose steps fail when a test requests it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from delta_core.errors import EngineError
from delta_core.storage import stores
from delta_core.storage.stores import open_storage
from delta_plugins.lance.manifest_stores.entries import ManifestEntry
from delta_plugins.lance.manifest_stores.storage import with_manifest_store

__all__ = ["STEPS", "KeptManifests", "KilledError", "Point", "Steps", "offer"]

#: Of a commit, in their order.
STEPS = ("stage", "claim", "copy", "settle", "drop")


class KilledError(BaseException):
    """The process was killed: nothing that it would do afterwards is done."""


class Steps:
    """Raises errors at steps of commits.

    ``fail(step, done, times)``: the step raises, and is done (the answer was lost) or not. ``kill(step, done)``: every
    later one raises too, until ``revive``.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._plan: tuple[str, bool, int, Callable[[], BaseException]] | None = None
        self._is_dead = False

    def fail(self, step: str, done: bool, times: int = 1, cause: type[OSError] = TimeoutError) -> None:
        def made() -> EngineError:
            error = EngineError(f"no answer at {step}")
            error.__cause__ = cause("no answer")
            return error

        self._plan = (step, done, times, made)

    def kill(self, step: str, done: bool) -> None:
        self._plan = (step, done, 1, KilledError)

    def revive(self) -> None:
        self._plan, self._is_dead = None, False

    def run(self, step: str, action: Callable[[], Any]) -> Any:
        if self._is_dead:
            raise KilledError
        self.seen.append(step)
        if self._plan is None or self._plan[0] != step:
            return action()
        name, done, times, error = self._plan
        self._plan = (name, done, times - 1, error) if times > 1 else None
        if done:
            action()
        self._is_dead = error is KilledError
        raise error()


class KeptManifests:
    """A manifest store in a dictionary."""

    name = "the store of the tests"

    def __init__(self, steps: Steps) -> None:
        self.entries: dict[tuple[str, int], ManifestEntry] = {}
        self._steps = steps
        self._lock = threading.Lock()

    def get(self, base: str, version: int) -> ManifestEntry | None:
        found: ManifestEntry | None = self._steps.run("get", lambda: self.entries.get((base, version)))
        return found

    def latest(self, base: str) -> ManifestEntry | None:
        def last() -> ManifestEntry | None:
            return self.entries[base, max(found)] if (found := self.versions(base)) else None

        found: ManifestEntry | None = self._steps.run("latest", last)
        return found

    def versions(self, base: str) -> list[int]:
        with self._lock:
            return sorted(v for b, v in self.entries if b == base)

    def claim(self, base: str, entry: ManifestEntry) -> bool:
        def put() -> bool:
            with self._lock:
                return self.entries.setdefault((base, entry.version), entry) is entry

        return bool(self._steps.run("claim", put))

    def settle(self, base: str, entry: ManifestEntry) -> bool:
        def put() -> bool:
            with self._lock:
                is_there = (base, entry.version) in self.entries
                if is_there:
                    self.entries[base, entry.version] = entry
            return is_there

        return bool(self._steps.run("settle", put))

    def change(self, base: str, version: int, **fields: Any) -> None:
        self.entries[base, version] = structs.replace(self.entries[base, version], **fields)


class StepStorage:
    """A disk whose steps of commits may fail."""

    def __init__(self, storage: Any, steps: Steps, exclusive: bool) -> None:
        self._storage = storage
        self._steps = steps
        self._is_exclusive = exclusive

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_storage":
            raise AttributeError(name)
        return getattr(self._storage, name)

    def put(self, path: str, data: bytes) -> None:
        in_folder = "_versions/" in path
        step = "other" if not in_folder else "copy" if path.endswith(".manifest") else "stage"
        self._steps.run(step, lambda: self._storage.put(path, data))

    def put_if_absent(self, path: str, data: Any, **options: Any) -> Any:
        if not self._is_exclusive:
            raise EngineError("the store overwrites") from NotImplementedError()
        step = "copy" if "_versions/" in path else "other"
        return self._steps.run(step, lambda: self._storage.put_if_absent(path, data, **options))

    def delete(self, paths: Iterable[str]) -> None:
        chosen = list(paths)
        step = "drop" if any("_versions/" in p for p in chosen) else "other"
        self._steps.run(step, lambda: self._storage.delete(chosen))


class Point(Struct, frozen=True):
    """An entry point, as installed packages have them."""

    name: str
    make: Callable[[str, Mapping[str, Any], Any], Any]

    @property
    def value(self) -> str:
        return f"package.{self.name}:make"

    def load(self) -> Any:
        return self.make


def offer(patch: Any, root: Path, steps: Steps, *, exclusive: bool = True) -> KeptManifests:
    """Offer the scheme ``kept``: ``kept://name`` is a folder of ``root``."""
    kept = KeptManifests(steps)

    def made(uri: str, options: Mapping[str, Any], allow_external: Any) -> Any:
        base = uri.partition("://")[2].strip("/")
        inner = open_storage(str(root / base), options, allow_external)
        return with_manifest_store(StepStorage(inner, steps, exclusive), kept, base)  # type: ignore[arg-type]

    patch.setattr(stores, "entry_points", lambda group: (Point("kept", made),))
    return kept
