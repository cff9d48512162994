"""Java classes within a driver: compiled by Spark's compiler, and kept for the next driver.

Compiling takes a new JVM most of a second. Classes compiled from the same source, by the same Spark and Java, are
loaded.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyspark

from delta_core.engines.spark.java.sources import source
from delta_core.errors import EngineError

__all__ = ["class_loader", "compiled"]


def class_loader(spark: Any) -> Any:
    """Return a loader of the classes of this folder.

    Raises
    ------
    EngineError
        If this version of Spark can't compile them.
    """
    jvm, gateway = spark._jvm, spark._sc._gateway
    urls = gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(compiled(jvm, source()))).toURI().toURL()
    return jvm.java.net.URLClassLoader(urls, jvm.java.lang.Thread.currentThread().getContextClassLoader())


def compiled(jvm: Any, text: str) -> Path:
    """Return an archive of classes: the one that is kept for the next driver, or, if none can be, one of this process.

    Parameters
    ----------
    jvm : JVMView
        The driver's, whose compiler and class path are used.
    text : str
        The classes' source.

    Raises
    ------
    EngineError
        If this version of Spark can't compile them.
    """
    place = _place(pyspark.__version__, str(jvm.java.lang.System.getProperty("java.version")), text)
    if place is not None and _is_whole(place):
        return place
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    try:
        compiler.cook(text)
    except Exception as e:
        raise EngineError(f"Spark {pyspark.__version__} can't compile delta_core's classes: {str(e)[:300]}") from e
    classes = {str(name): bytes(body) for name, body in compiler.getBytecodes().items()}
    if place is not None:
        with contextlib.suppress(OSError):
            _keep(place, classes)
            return place
    folder = tempfile.mkdtemp(prefix="delta_core_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # the driver opens it as long as this process runs
    _keep(Path(folder) / "classes.jar", classes)
    return Path(folder) / "classes.jar"


def _is_whole(archive: Path) -> bool:
    try:
        with zipfile.ZipFile(archive) as found:
            return found.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def _place(*content: str) -> Path | None:
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
    key = hashlib.sha256("\n".join(content).encode()).hexdigest()[:32]
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
