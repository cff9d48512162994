"""The check of an installed plugin: its entry points, its contract, the parts of tables it touches, and its cost.

``python -m delta_core.testing.plugin_check PACKAGE`` prints it as JSON, for ``delta-core plugin check``.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from delta_core.errors import InvalidArgumentError, PluginError, did_you_mean
from delta_core.kernel.plugins.features import TableFeature
from delta_core.kernel.plugins.hook_calls import hook_name, marked_hooks
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet
from delta_core.kernel.plugins.state import TableState
from delta_core.runtime.entry_points import entry_groups
from delta_core.runtime.plugin_errors import FEATURES_GROUP
from delta_core.testing.feature_contract import FeatureContract, table_state
from delta_core.testing.hook_costs import HookCost, measure_hooks

__all__ = ["MANY_FILES", "ContractRun", "FeatureFacts", "PluginReport", "check_plugin"]

#: The number of files for which costs are extrapolated.
MANY_FILES = 1_000_000
#: The contract of a feature whose tests are not available: no table of its own, so that rules may be idle.
_GENERIC = """
from delta_core.testing.feature_contract import FeatureContract


class TestFeature{number}(FeatureContract):
    name = {name!r}
    without_rules = "the tests of the package are not available"
    unread = {properties!r}
    uncompared = {functions!r}
"""


class FeatureFacts(Struct, frozen=True):
    """The parts of tables that a feature touches, and the cost of its hooks.

    Parameters
    ----------
    name, kind, summary : str
        As of `TableFeature`.
    hooks, properties, domains, actions, fields, permits, functions, operations : tuple of str
        Their names.
    costs : tuple of HookCost
        Of the hooks that could be called.
    """

    name: str
    kind: str
    summary: str
    hooks: tuple[str, ...]
    properties: tuple[str, ...]
    domains: tuple[str, ...]
    actions: tuple[str, ...]
    fields: tuple[str, ...]
    permits: tuple[str, ...]
    functions: tuple[str, ...]
    operations: tuple[str, ...]
    costs: tuple[HookCost, ...]


class ContractRun(Struct, frozen=True):
    """The result of the tests.

    Parameters
    ----------
    tests : str
        The folder of the tests; empty: the contract alone, without tables of the package's own.
    passed, skipped : int
        Numbers of tests.
    failures : tuple of str
        Tests that failed, each with its message.
    """

    tests: str
    passed: int
    skipped: int
    failures: tuple[str, ...]


class PluginReport(Struct, frozen=True):
    """The check of a package.

    Parameters
    ----------
    package : str
        Name and version.
    entry_points : tuple of (str, str, str)
        Group, name and value.
    errors : tuple of str
        Entry points that can't be used.
    features : tuple of FeatureFacts
        The features that it provides.
    contract : ContractRun or None
        None if there is no test to run.
    """

    package: str
    entry_points: tuple[tuple[str, str, str], ...]
    errors: tuple[str, ...]
    features: tuple[FeatureFacts, ...]
    contract: ContractRun | None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        run = self.contract
        return {
            "package": self.package,
            "entryPoints": [dict(zip(("group", "name", "value"), p, strict=True)) for p in self.entry_points],
            "errors": list(self.errors),
            "features": [
                {n: getattr(f, n) for n in f.__struct_fields__ if n != "costs"} | {"costs": [_cost(c) for c in f.costs]}
                for f in self.features
            ],
            "extrapolatedTo": MANY_FILES,
            "contract": None
            if run is None
            else {"tests": run.tests, "passed": run.passed, "skipped": run.skipped, "failures": list(run.failures)},
            "isGood": self.is_good,
        }

    @property
    def is_good(self) -> bool:
        """Whether every entry point can be used and no test failed."""
        return not self.errors and not (self.contract is not None and self.contract.failures)


def _cost(cost: HookCost) -> dict[str, Any]:
    return {
        "hook": cost.hook,
        "numFiles": list(cost.sizes),
        "milliseconds": [s * 1e3 for s in cost.seconds],
        "microsecondsPerFile": cost.seconds_per_file * 1e6,
        "extrapolatedMilliseconds": cost.seconds_of(MANY_FILES) * 1e3,
    }


def check_plugin(package: str, tests: str | None = None, spark: bool = True) -> PluginReport:
    """Import what a distribution offers, run its contract, and measure its hooks.

    Parameters
    ----------
    package : str
        The name of an installed distribution, or the folder of its source.
    tests : str, optional
        The folder of its tests; by default ``tests`` in the folder of its source. Without tests, features are tested
        by `FeatureContract` alone.
    spark : bool
        Whether tests whose names contain ``spark`` are run.

    Raises
    ------
    InvalidArgumentError
        If the distribution is not installed, offers nothing, or its tests are not there.
    """
    folder = Path(package) if (Path(package) / "pyproject.toml").is_file() else None
    name = package if folder is None else _name_of(folder)
    points = _points_of(name)
    if not points:
        known = sorted({p.dist.name for group in entry_groups().values() for p in group if p.dist is not None})
        hint = f" Install it: python -m pip install {package}" if folder is not None else did_you_mean(name, known)
        raise InvalidArgumentError(f"No installed distribution {name!r} has entry points of delta_core.{hint}")
    if tests is not None and not Path(tests).exists():
        raise InvalidArgumentError(f"There are no tests at {tests}.")
    if tests is None and folder is not None and (folder / "tests").is_dir():
        tests = str(folder / "tests")
    errors, features = [], []
    registry = PluginRegistry()
    for point in points:
        try:
            if point.group == FEATURES_GROUP:
                plugin = registry.load(point.name)
                assert plugin is not None
                if plugin.FEATURE.name == point.name:
                    features.append(_facts(plugin, registry, tests))
            else:
                point.load()
        except PluginError as e:
            errors.append(e.message)
        except Exception as e:  # noqa: BLE001  (the report is about it)
            errors.append(f"Entry point {point.name} of {point.group}: {type(e).__name__}: {e}")
    first = points[0].dist
    return PluginReport(
        f"{first.name} {first.version}",
        tuple((p.group, p.name, p.value) for p in points),
        tuple(errors),
        tuple(features),
        _run(tests, features, folder, spark),
    )


def _name_of(folder: Path) -> str:
    try:
        return str(tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["name"])
    except (KeyError, tomllib.TOMLDecodeError) as e:
        raise InvalidArgumentError(f"{folder / 'pyproject.toml'} has no name of a project: {e}.") from e


def _points_of(name: str) -> list[Any]:
    def plain(text: str) -> str:
        return text.lower().replace("_", "-").replace(".", "-")

    found = (p for group in entry_groups().values() for p in group if p.dist is not None)
    return sorted((p for p in found if plain(p.dist.name) == plain(name)), key=lambda p: (p.group, p.name))


def _facts(plugin: Any, registry: PluginRegistry, tests: str | None) -> FeatureFacts:
    feature: TableFeature = plugin.FEATURE
    plugins = PluginSet({feature.name: plugin}, frozenset(), check=False)
    functions = plugins.collect("functions", features=frozenset({feature.name}))
    costs = measure_hooks(plugins, _tables(feature.name, registry, tests))
    return FeatureFacts(
        feature.name,
        feature.kind,
        feature.summary,
        tuple(sorted(hook_name(n, f) for n, f in marked_hooks(plugin).items())),
        tuple(feature.properties),
        feature.domains,
        tuple(kind.name for kind in feature.actions),
        tuple(f"{f.action}.{f.name}" for f in feature.fields),
        feature.permits,
        tuple(f.name for f in functions),
        tuple(feature.operations),
        tuple(sorted(costs, key=lambda c: -c.seconds_of(MANY_FILES))),
    )


def _tables(name: str, registry: PluginRegistry, tests: str | None) -> Sequence[TableState]:
    """Return the tables of the package's contract, or a plain one with the feature."""
    for path in sorted(Path(tests).rglob("test_*.py")) if tests is not None else ():
        for found in runpy.run_path(str(path)).values():
            if isinstance(found, type) and issubclass(found, FeatureContract) and getattr(found, "name", "") == name:
                return found().writable()
    return [table_state([name], registry=registry)]


def _run(tests: str | None, features: Iterable[FeatureFacts], folder: Path | None, spark: bool) -> ContractRun | None:
    """Run tests in a process of their own."""
    with tempfile.TemporaryDirectory() as place:
        target = tests
        if target is None:
            texts = [
                _GENERIC.format(number=i, name=f.name, properties=f.properties, functions=f.functions)
                for i, f in enumerate(features)
            ]
            if not texts:
                return None
            target = str(Path(place) / "test_generic.py")
            Path(target).write_text("".join(texts), "utf-8")
        report = Path(place) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
        command += [f"--junitxml={report}", *(() if spark else ("-k", "not spark")), str(Path(target).resolve())]
        done = subprocess.run(  # noqa: S603  (our own arguments)
            command, cwd=place if tests is None else folder, capture_output=True, text=True, check=False
        )
        if not report.exists():
            reason = (done.stderr or done.stdout).strip().splitlines()[-1:]
            return ContractRun(tests or "", 0, 0, (f"pytest failed: {''.join(reason)}",))
        return _results(tests or "", ElementTree.parse(report))  # noqa: S314  (written by pytest)


def _results(tests: str, report: Any) -> ContractRun:
    passed, skipped, failures = 0, 0, []
    for case in report.getroot().iter("testcase"):
        wrong = [part for part in case if part.tag in ("failure", "error")]
        if wrong:
            text = wrong[0].get("message") or (wrong[0].text or "").strip()
            failures.append(f"{case.get('name')}: {text.strip()}")
        elif any(part.tag == "skipped" for part in case):
            skipped += 1
        else:
            passed += 1
    return ContractRun(tests, passed, skipped, tuple(failures) or (() if passed else ("no test was run",)))


def main() -> int:
    """Print the check of a package as JSON; return 2 and print the reason if there is no such package."""
    package, tests, spark = sys.argv[1:]
    try:
        report = check_plugin(package, tests or None, spark == "spark")
    except InvalidArgumentError as e:
        sys.stderr.write(e.message)
        return 2
    json.dump(report.to_dict(), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
