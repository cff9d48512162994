"""Commands for authors of plugins: new, check."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import Any

import click

from delta_core.cli.options import CommandGroup, as_json
from delta_core.cli.output import print_facts, print_json, print_note, print_table
from delta_core.cli.plugin_templates import KINDS, make_plugin
from delta_core.errors import InvalidArgumentError, PluginError

__all__ = ["plugin"]

MISUSED = 2


@click.group(cls=CommandGroup)
def plugin() -> None:
    """Make a package with a plugin, or check one: features, engines, formats, committers, functions.

    \b
    Examples:
      delta-core plugin new my-stamps --kind feature
      delta-core plugin check ./my-stamps
    """


@plugin.command()
@click.argument("name")
@click.option("--kind", type=click.Choice(list(KINDS)), required=True, help="The kind of plugin.")
@click.option("--output", "-o", metavar="DIR", help="The folder to make; by default NAME in the current one.")
def new(name: str, kind: str, output: str | None) -> None:
    """Make a package with a working plugin, its tests and a file for continuous integration.

    \b
    Examples:
      delta-core plugin new my-stamps --kind feature
      delta-core plugin new my-duck --kind engine -o plugins/duck
    """
    folder = Path(output or name)
    try:
        made = make_plugin(name, kind, folder)
    except InvalidArgumentError as e:
        raise click.UsageError(e.message) from e
    for path in made:
        click.echo(path)
    place = str(folder) if folder.is_absolute() else f"./{folder}"  # pip looks up a plain name on the package index
    print_note(f"Next: python -m pip install {quote(place)} pytest && python -m pytest {quote(f'{place}/tests')}")


@plugin.command()
@click.argument("package")
@click.option("--tests", metavar="DIR", help="The folder of its tests; by default tests in the folder of its source.")
@click.option("--spark/--no-spark", default=True, help="Whether tests on Spark are run.")
@as_json
def check(package: str, tests: str | None, spark: bool, json_output: bool) -> None:
    """Run the contract of an installed plugin, and show which parts of tables it touches and what its hooks cost.

    PACKAGE is the name of a distribution, or the folder of its source, whose tests are run then. Costs are processor
    times, measured on a few numbers of files and extrapolated to 1,000,000. The exit code is 1 if an entry point can't
    be used or a test fails.

    \b
    Examples:
      delta-core plugin check ./delta-row-ttl
      delta-core plugin check delta-row-ttl --no-spark --json
    """
    # in a process of its own: tests and plugins are imported there
    command = [sys.executable, "-m", "delta_core.testing.plugin_check", package, tests or "", "spark" * spark]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  (our own arguments)
    if done.returncode == MISUSED:
        raise click.UsageError(done.stderr)
    if done.returncode:
        raise PluginError(f"Checking {package} failed: {done.stderr.strip().splitlines()[-1]}")
    report = json.loads(done.stdout)
    if json_output:
        print_json(report)
    else:
        _print(report)
    if not report["isGood"]:
        click.get_current_context().exit(1)


def _print(report: dict[str, Any]) -> None:
    points = ", ".join(f"{p['name']} ({p['group']})" for p in report["entryPoints"])
    print_facts({"Package": report["package"], "Entry points": points})
    many = f"{report['extrapolatedTo']:,} (extrapolated)"
    for feature in report["features"]:
        click.echo()
        touched = {n.capitalize(): v for n, v in feature.items() if v and n != "costs"}
        print_facts({n: ", ".join(v) if isinstance(v, list) else v for n, v in touched.items()})
        if feature["costs"]:
            click.echo()
            columns = [*(f"{n:,} files" for n in feature["costs"][0]["numFiles"]), many]
            rows = [
                (c["hook"], *(f"{t:.2f} ms" for t in c["milliseconds"]), f"{c['extrapolatedMilliseconds']:.1f} ms")
                for c in feature["costs"]
            ]
            print_table(["hook", *columns], rows, columns)
    for error in report["errors"]:
        click.echo(f"\n{error}")
    run = report["contract"]
    if run is None:
        print_note("No contract was run: pass the folder of the package's source, or its tests by --tests.")
        return
    for failure in run["failures"]:
        click.echo(f"\nFAILED {failure}")
    source = f"the tests of {run['tests']}" if run["tests"] else "the contract alone, without the package's own tests"
    print_note(f"{run['passed']} passed, {len(run['failures'])} failed, {run['skipped']} skipped: {source}.")
