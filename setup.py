"""List the compiled extensions; everything else about the package is in pyproject.toml."""

import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup  # isort: split

from distutils.ccompiler import CCompiler, new_compiler  # that of setuptools, once it is imported

from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

IS_WINDOWS = os.name == "nt"
#: Kernels of calls that Windows lacks; `delta_core.storage.scanned_folders` has their work there.
POSIX_ONLY = {Path("ext/storage/folders.pyx")}
SOURCES = sorted(set(Path("ext").glob("*/*.pyx")) - (POSIX_ONLY if IS_WINDOWS else set()))
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


#: Kernels that decode pages and vectors of deleted rows, compiled at -O3.
HOTTEST = {"lance/columns", "lance/pages", "parquet/pages", "rows/gather", "rows/roaring"}
#: Others that much of the time of a read or a write is spent in, with LOOPS where the compiler is GCC.
HOT = {"lance/page_writer", "log/dedup", "log/json", "log/path_texts", "rows/string_codes"}
#: The passes of -O2 and -O3 that make these kernels as fast as at -O3. GCC takes twice as long at -O3 as at -O1, and
#: most of what it compiles is Cython's code around the kernels.
LOOPS = [
    "-falign-jumps",
    "-falign-loops",
    "-finline-functions",
    "-finline-small-functions",
    "-fpeephole2",
    "-freorder-blocks-algorithm=stc",
    "-fstrict-aliasing",
    "-fthread-jumps",
    "-ftree-loop-vectorize",
    "-ftree-pre",
    "-ftree-vrp",
    "-funswitch-loops",
    "-fvect-cost-model=dynamic",
]

EXTENSIONS = [
    Extension(
        f"{PACKAGES.get(source.stem) or PACKAGES[source.parent.name]}._{source.stem}",
        [str(source)],
        include_dirs=["ext"],
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
    # less code to compile: comments, functions that bind as methods, methods that pickle
    "emit_code_comments": False,
    "binding": False,
    "auto_pickle": False,
}


class PackageBuild(build_py):
    """Copy the example plugins that `delta-core plugin new` has as templates."""

    def run(self) -> None:
        """Copy the packages, and then the templates: they have one source, which is no package of ours."""
        super().run()
        if self.editable_mode:
            return  # they are found in the clone
        target = Path(self.build_lib) / "delta_core" / "cli" / "templates"
        left_out = shutil.ignore_patterns("__pycache__", "build", "*.egg-info", ".pytest_cache")
        for template in sorted(Path("examples", "plugins").glob("acme-*")):
            shutil.copytree(template, target / template.name, ignore=left_out, dirs_exist_ok=True)


def is_gcc(command: list[str]) -> bool:
    """Return whether a compiler is GCC; others, such as clang, have not all of its passes."""
    macros = [*command, "-dM", "-E", "-x", "c", os.devnull]
    defined = subprocess.run(macros, capture_output=True, text=True, check=False).stdout  # noqa: S603
    return "__GNUC__" in defined and "__clang__" not in defined


def compilers() -> dict[str, list[str]]:
    """Return the commands of the variables CC and CXX; on Windows, clang of the package ziglang if they are not set."""
    if IS_WINDOWS:
        target = f"{'aarch64' if platform.machine() == 'ARM64' else 'x86_64'}-windows-gnu"
        names = {"CC": "cc", "CXX": "c++"}
        defaults = {v: [sys.executable, "-m", "ziglang", n, "-target", target] for v, n in names.items()}
    else:
        defaults = {v: (sysconfig.get_config_var(v) or n).split() for v, n in {"CC": "cc", "CXX": "c++"}.items()}
    return {v: shlex.split(os.environ.get(v, ""), posix=not IS_WINDOWS) or default for v, default in defaults.items()}


def clang_of_windows(chosen: CCompiler) -> CCompiler:
    """Return clang with the settings of the compiler that setuptools has chosen, which is Microsoft's."""
    c, cpp = compilers().values()
    # zig checks for undefined behaviour unless it is told not to
    flags = ["-Wall", "-fno-sanitize=undefined", "-DNDEBUG"]
    found = new_compiler(compiler="unix")
    found.set_executables(
        compiler=[*c, *flags],
        compiler_so=[*c, *flags],
        compiler_cxx=[*cpp, *flags],
        compiler_so_cxx=[*cpp, *flags],
        linker_so=[*c, "-shared", "-static"],
        linker_so_cxx=[*cpp, "-shared", "-static"],
        linker_exe=c,
    )
    for name in ("include_dirs", "library_dirs", "libraries", "macros", "objects"):
        setattr(found, name, getattr(chosen, name))
    return found


class KernelBuild(build_ext):
    """Translate the kernels to C and C++, and compile them on all cores."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        """Translate what has changed; commands that list metadata translate nothing."""
        translated = cythonize(
            # copies: what it returns lacks the attributes that setuptools has added
            [Extension(e.name, e.sources, include_dirs=e.include_dirs, depends=e.depends) for e in self.extensions],
            build_dir="build/cython",
            compiler_directives=DIRECTIVES,
            include_path=["ext"],
            nthreads=0 if IS_WINDOWS else os.cpu_count() or 1,  # processes of Windows would each run this file
            shared_utility_qualified_name=SHARED,
        )
        by_name = {e.name: e for e in translated}
        for extension in self.extensions:
            found = by_name[extension.name]
            extension.sources, extension.language = found.sources, found.language
        super().run()

    def build_extensions(self) -> None:
        """Compile all extensions, each with the flags for its kernels."""
        if IS_WINDOWS:
            self.compiler = clang_of_windows(self.compiler)
        fast = ["-O3"] if not is_gcc(self.compiler.compiler) else ["-O1", *LOOPS]
        threads = [] if IS_WINDOWS else ["-pthread"]
        for extension in self.extensions:
            (source,) = map(Path, extension.sources)
            kernel = f"{source.parent.name}/{source.stem}"
            is_cpp = source.suffix == ".cpp"
            level = ["-O3"] if kernel in HOTTEST else fast if kernel in HOT else ["-O1"]
            extension.extra_compile_args = [*level, "-g0", *(["-std=c++17", *threads] if is_cpp else [])]
            extension.extra_link_args = threads if is_cpp else []
        super().build_extensions()


def check_compilers() -> None:
    """End with one line if nothing can be compiled here, before anything is translated."""
    if {"sdist", "clean"} & set(sys.argv):
        return
    if IS_WINDOWS and not {"CC", "CXX"} <= set(os.environ):
        if importlib.util.find_spec("ziglang") is None:
            sys.exit(
                "error: delta_core is compiled by clang on Windows: Microsoft's compiler has no 128-bit integers. "
                "Run `pip install ziglang`, or install LLVM-MinGW and name its compilers in the variables CC and CXX."
            )
        return
    for (variable, command), language in zip(compilers().items(), ("C", "C++"), strict=True):
        if shutil.which(command[0]) is None:
            sys.exit(
                f"error: delta_core is compiled from {language}, and the compiler {command[0]!r} is not found. Install "
                "one (Debian, Ubuntu: apt-get install g++; macOS: xcode-select --install) or name it in the variable "
                f"{variable}."
            )
        # 64-bit GCC for Windows aligns its stack to 16 bytes only, and AVX code that it compiles crashes
        if IS_WINDOWS and is_gcc(command):
            sys.exit(f"error: {variable} is {command[0]!r}, which is GCC; on Windows, delta_core is compiled by clang.")


check_compilers()

setup(ext_modules=[*EXTENSIONS, Extension(SHARED, [])], cmdclass={"build_ext": KernelBuild, "build_py": PackageBuild})
