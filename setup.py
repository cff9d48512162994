"""List the compiled extensions; everything else about the package is in pyproject.toml."""

import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCES = sorted(Path("ext").glob("*/*.pyx"))
#: The package of the kernels of a folder, or of one kernel: those that serve one table feature only are in its plugin.
PACKAGES = {
    "lance": "delta_plugins.lance",
    "log": "delta_core.kernels",
    "memory": "delta_core.kernels",
    "parquet": "delta_core.parquet",
    "rows": "delta_core.kernels",
    "storage": "delta_core.storage",
    "variant": "delta_plugins.variant_type",
    "z85": "delta_plugins.deletion_vectors",
}
#: Cython's code for memory views, compiled once for all extensions: it takes longer to compile than most of them.
SHARED = "delta_core.kernels._cyutility"

#: A line that includes another file of `ext/`, in C++ or Cython.
INCLUDE = re.compile(r'^\s*(?:#include|include|cdef extern from) "([^"]+)"', re.MULTILINE)


def included(source: Path, found: set[Path]) -> set[Path]:
    """Add the files of `ext/` that a source includes, directly or through others; a change in one compiles it again."""
    for name in INCLUDE.findall(source.read_text(encoding="utf-8")):
        for path in (source.parent / name, Path("ext") / name):
            if path.is_file() and path not in found:
                found.add(path)
                included(path, found)
    return found


EXTENSIONS = [
    Extension(
        f"{PACKAGES.get(source.stem) or PACKAGES[source.parent.name]}._{source.stem}",
        [str(source)],
        include_dirs=["ext"],
        extra_compile_args=["-O3", "-g0"],
        depends=sorted(map(str, included(source, set()))),
    )
    for source in SOURCES
]

# Kernels check every offset by hand, if it is read; Cython's own checks would raise IndexError inside nogil loops.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
}


class ParallelBuild(build_ext):
    """Compile the extensions on all cores."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()


def check_compiler() -> None:
    """End with one line if the C++ compiler that builds would run is not there; Windows has its own search."""
    command = os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++"
    program = command.split()[0]
    if not {"sdist", "clean"} & set(sys.argv) and os.name != "nt" and shutil.which(program) is None:
        sys.exit(
            f"error: delta_core is compiled from C++, and the compiler {program!r} is not found. Install one "
            "(Debian, Ubuntu: apt-get install g++; macOS: xcode-select --install) or name it in the variable CXX."
        )


check_compiler()

setup(
    ext_modules=cythonize(
        [*EXTENSIONS, Extension(SHARED, [], extra_compile_args=["-g0"])],
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
        include_path=["ext"],
        nthreads=os.cpu_count() or 1,
        shared_utility_qualified_name=SHARED,
    ),
    cmdclass={"build_ext": ParallelBuild},
)
