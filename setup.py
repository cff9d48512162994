"""List the compiled extensions; everything else about the package is in pyproject.toml."""

from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCES = sorted(Path("ext").glob("*.pyx"))

EXTENSIONS = [
    Extension(
        f"delta_core.kernels._{source.stem}",
        [str(source)],
        include_dirs=["ext", numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
        extra_compile_args=["-O3"],
    )
    for source in SOURCES
]

# Kernels check every offset by hand, where it is read; Cython's own checks would raise IndexError inside nogil loops.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
}

setup(ext_modules=cythonize(EXTENSIONS, build_dir="build/cython", compiler_directives=DIRECTIVES))
