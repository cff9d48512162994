"""Import this module before anything that imports `deltalake`, and it is this library under that name.

``python -m delta_core.as_deltalake SCRIPT [ARGUMENTS]`` and ``python -m delta_core.as_deltalake -m MODULE [ARGUMENTS]``
run a program so.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from delta_core.deltalake_names.finder import install_as_deltalake

__all__ = ["main"]

_USAGE = """usage: python -m delta_core.as_deltalake [--arro3] SCRIPT [ARGUMENTS]
       python -m delta_core.as_deltalake [--arro3] -m MODULE [ARGUMENTS]

Runs a Python program in which `import deltalake` imports delta_core. With --arro3 its tables and readers are those of
arro3, as deltalake's are, and else those of PyArrow."""


def main() -> None:
    """Run the script or module that the command line names, with the rest of it as its arguments."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--arro3"]:
        install_as_deltalake(arro3=True)
        del arguments[0]
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(_USAGE)
        sys.exit(0 if arguments and arguments[0] != "-m" else 2)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[:1] = [str(Path.cwd())]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    if not Path(arguments[0]).exists():
        print(f"python -m delta_core.as_deltalake: there is no file {arguments[0]!r}", file=sys.stderr)
        sys.exit(2)
    sys.argv = arguments
    sys.path[:1] = [str(Path(arguments[0]).absolute().parent)]
    runpy.run_path(arguments[0], run_name="__main__")


install_as_deltalake()
if __name__ == "__main__":
    main()
