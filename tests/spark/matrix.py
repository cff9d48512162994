"""``python -m tests.spark.matrix``: the tests of this folder on every minor version of PySpark, and beside delta-spark.

Each version is in a virtual environment of its own, over the packages of the one that runs this; the environments
are kept. Needs what ``pip install -e ".[test]"`` provides.
"""

from __future__ import annotations

import argparse
import os
import site
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("4.0.1", "4.1.1", "4.2.0", "4.3.0")
#: The environment that has Delta's own Spark library, and what it installs.
DELTA, DELTA_SPARK = "delta", ("pyspark==4.2.0", "delta-spark==4.4.0")
#: Fetches that library's jars, which processes that do so at once would spoil for each other.
FETCH = (
    "from delta import configure_spark_with_delta_pip as configured; from pyspark.sql import SparkSession; "
    "configured(SparkSession.builder.master('local[1]')).getOrCreate().stop()"
)
#: The version on which Spark Connect is tested too.
CONNECT = "4.2.0"


def environment(folder: Path, version: str) -> Path:
    """Return the interpreter of a version's environment, which is made if it is not there whole."""
    home = folder / version
    python = home / "bin" / "python"
    packages = DELTA_SPARK if version == DELTA else (f"pyspark=={version}",)
    wanted = packages[0].removeprefix("pyspark==")
    if _version(python) == wanted:
        return python
    venv.create(home, clear=True, with_pip=False)
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *packages], check=True)
    own = next((home / "lib").glob("python*/site-packages"))
    # behind the environment's own, and with the .pth files of editable installs
    lines = [f"import site; site.addsitedir({path!r})" for path in site.getsitepackages()]
    (own / "shared.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if _version(python) != wanted:
        raise SystemExit(f"{python} finds pyspark {_version(python)}, expected {wanted}")
    if version == DELTA:
        done = subprocess.run([python, "-c", FETCH], env=_clean(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"delta-spark's jars can't be fetched: {done.stderr[-2000:]}")
    return python


def _version(python: Path) -> str | None:
    if not python.exists():
        return None
    code = "import pyspark; print(pyspark.__version__)"
    done = subprocess.run([python, "-c", code], cwd=ROOT, env=_clean(), capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _clean() -> dict[str, str]:
    """Return the environment without what leads to another Spark."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "PYTHONPATH"))}


def run(python: Path, arguments: list[str], version: str, connect: bool) -> int:
    """Run the tests on one version; return pytest's exit code."""
    # PySpark 4.0 leaves sockets to the garbage collector; every other warning stays an error
    command = [python, "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider", "-W", "ignore::ResourceWarning"]
    command += ["-m", "spark and peer" if version == DELTA else "not peer"]
    command += [] if connect or version == DELTA else ["--ignore", "tests/spark/test_connect.py"]
    tests = ["tests/spark", "tests/interop"] if version == DELTA else ["tests/spark"]
    return subprocess.run([*command, *(arguments or tests)], cwd=ROOT, env=_clean(), check=False).returncode


def main() -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.matrix", description=__doc__)
    parser.add_argument("version", nargs="*", help=f"which (default: {' '.join(VERSIONS)} {DELTA})")
    parser.add_argument("--connect", default=CONNECT, help="if Spark Connect is tested too (default: %(default)s)")
    parser.add_argument("--environments", type=Path, default=ROOT / ".matrix", help="where they are kept")
    parser.add_argument("--pytest", nargs=argparse.REMAINDER, default=[], help="arguments for pytest, up to the end")
    options = parser.parse_args()
    options.environments.mkdir(parents=True, exist_ok=True)
    results = []
    for version in options.version or (*VERSIONS, DELTA):
        start = time.monotonic()
        python = environment(options.environments.resolve(), version)
        print(f"== pyspark {version}, environment {time.monotonic() - start:.0f} s", flush=True)
        code = run(python, options.pytest, version, version == options.connect)
        routes = (
            "with delta-spark"
            if version == DELTA
            else "classic and Connect"
            if version == options.connect
            else "classic"
        )
        results.append((f"{version}, {routes}", code, time.monotonic() - start))
    for name, code, seconds in results:
        print(f"{name}: {'green' if code == 0 else f'pytest exit code {code}'}, {seconds:.0f} s")
    return int(any(code for _, code, _ in results))


if __name__ == "__main__":
    sys.exit(main())
