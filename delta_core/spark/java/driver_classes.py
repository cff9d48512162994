"""The Java classes of this folder within a driver: compiled by Spark's compiler, and kept for the next driver.

Compiling takes a new JVM most of a second. What was compiled of the same source, by the same Spark and Java, is loaded.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from delta_core.errors import EngineError
from delta_core.spark.java.sources import PACKAGE, source

__all__ = ["class_loader"]


def class_loader(spark: Any) -> Any:
    """Return a loader of our classes.

    Raises
    ------
    EngineError
        If this version of Spark can't compile them.
    """
    jvm = spark._jvm
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    archive = _place(str(spark.version), str(jvm.java.lang.System.getProperty("java.version")))
    if archive is not None and archive.is_file():
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped, unused-ignore]  # where pyspark is not there

        urls = spark._sc._gateway.new_array(jvm.java.net.URL, 1)
        urls[0] = jvm.java.io.File(str(archive)).toURI().toURL()
        loader = jvm.java.net.URLClassLoader(urls, parent)
        # what can't be loaded is compiled again
        with contextlib.suppress(Py4JJavaError):
            loader.loadClass(f"{PACKAGE}.TableFiles")
            return loader
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    try:
        compiler.cook(source())
    except Exception as e:
        raise EngineError(f"Spark {spark.version} can't compile the file index: {str(e)[:300]}") from e
    if archive is not None:
        with contextlib.suppress(OSError):
            _keep(archive, {str(name): bytes(body) for name, body in compiler.getBytecodes().items()})
    return compiler.getClassLoader()


def _place(*versions: str) -> Path | None:
    """Return where classes are kept; None if others could put theirs, or nothing can be written."""
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(home) if home else Path.home() / ".cache") / "delta_core"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        return None
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None
    key = hashlib.sha256("\n".join((*versions, source())).encode()).hexdigest()[:32]
    return folder / f"spark-driver-{key}.jar"


def _keep(place: Path, classes: dict[str, bytes]) -> None:
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=place.stem)
    try:
        with os.fdopen(handle, "wb") as out, zipfile.ZipFile(out, "w") as jar:
            for found, body in classes.items():
                jar.writestr(f"{found.replace('.', '/')}.class", body)
        Path(name).replace(place)
    except BaseException:
        Path(name).unlink()
        raise
