"""List the compiled extensions; everything else about the package is in pyproject.toml."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import numpy
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

EXTENSIONS = [
    Extension(
        f"{PACKAGES.get(source.stem) or PACKAGES[source.parent.name]}._{source.stem}",
        [str(source)],
        include_dirs=["ext", numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
        extra_compile_args=["-O3", "-g0"],
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
