"""The program `delta-core`: its commands, its exit codes and how it reports errors."""

from __future__ import annotations

import atexit
import gc
import os
import re
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import click
from click.shell_completion import get_completion_class

from delta_core.cli import commands
from delta_core.errors import DeltaError, ExpressionError, InternalError, InvalidArgumentError, did_you_mean

__all__ = ["cli", "main", "program"]

PROGRAM = "delta-core"
FAILED, MISUSED, INTERRUPTED = 1, 2, 130

#: New objects after which Python looks for garbage. Its default makes it look at all modules several times while they
#: are imported, and find none.
NEW_OBJECTS = 50_000


#: The one line of each command: what lists them loads none, and with it neither Arrow nor the table.
COMMANDS = {
    "info": "Show what a table is: version, size, protocol, properties.",
    "schema": "Show the columns.",
    "history": "Show the commits, newest first.",
    "files": "Show the data files of a version, and which of them a predicate leaves.",
    "features": "Show the table's features and the plugins that serve them; without TABLE, all that are installed.",
    "head": "Show some rows.",
    "cat": "Write rows as CSV, JSON lines, Parquet or Arrow, streaming.",
    "count": "Count the rows, exactly.",
    "explain": "Show which files and rows a read would touch, and why.",
    "sql": "Run a SQL query over tables, with DataFusion or DuckDB.",
    "changes": "Show or write the rows that changed, commit by commit.",
    "follow": "Print the rows of a table as JSON lines, then those that commits append, as they arrive.",
    "diff": "Show or write the rows in which two versions differ, by their row ids.",
    "log": "Show which log files a version is built from, and why these.",
    "create": "Create a table without rows.",
    "convert": (
        "Write a table to a new one of another format, or make a Delta table of a folder of Parquet files in place."
    ),
    "write": "Write rows of Parquet, CSV, JSON lines or Arrow files into a table; - reads standard input.",
    "delete": "Delete the rows for which a predicate is true.",
    "update": "Assign new values to columns of the rows for which a predicate is true.",
    "merge": "Update, delete and insert rows by comparing the table with rows of files; - reads standard input.",
    "alter": "Change a table's definition: columns, constraints, properties, features.",
    "feature": "Add table features, drop them, and list them.",
    "catalog": "List, create, register, rename and drop the names of a catalog.",
    "plugin": "Make a package with a plugin, or check one: features, engines, formats, committers, functions.",
    "clone": "Make the table CLONE, with the files of a version of TABLE.",
    "generate": "Write symlink manifests: lists of the table's files for engines that can't read the log.",
    "statistics": "Add statistics to files that lack them, from their footers.",
    "restore": "Restore a table to an older version, in a new commit.",
    "optimize": "Join small files and leave out many deleted rows, or write all rows again in another order.",
    "purge": "Write files with deleted rows again without these, so that no deletion vector is left.",
    "vacuum": "Delete files that no version within the retention needs.",
    "health": "Show in ten lines whether a table is well, and what to do if not.",
    "report": "Write a page about a table: its sizes, versions, order, statistics, upkeep and findings.",
    "verify": "Check a table's log, definition and files against the rules of the protocol; nothing is changed.",
    "cleanup": "Delete files of the log that are older than the table's log retention.",
    "compact-log": "Write the actions of the commits FIRST to LAST into one file of the log.",
    "repair": "Remove the entries of data files that are not there, and mend the log where that is certain.",
    "checkpoint": "Write a checkpoint of the latest version.",
}


class _ReaderGoneError(Exception):
    """The reader of our output closed the pipe."""


class _Program(click.Group):
    """Loads a command when it is requested, and keeps a closed pipe from click, which would exit with 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.add_command(getattr(commands, cmd_name.replace("-", "_")))
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}.{did_you_mean(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        texts = {n: c.get_short_help_str(1_000) for n, c in self.commands.items()} | COMMANDS
        with formatter.section("Commands"):
            formatter.write_dl([(n, texts[n]) for n in names])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as e:
            raise _ReaderGoneError from e


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="delta-core-lake", prog_name=PROGRAM)
@click.option("--debug", is_flag=True, help="Show the traceback of an error; may be anywhere.")
def cli(debug: bool) -> None:
    """Describe, read, change and maintain Delta Lake tables.

    TABLE is a local path or the URI of any file system that fsspec supports (s3://, gs://, abfs:// ...).

    Exit codes: 0 done, 1 the table or its data is at fault, 2 the command line is.
    """


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands and options in a shell.

    \b
    Examples:
      delta-core completion bash > ~/.local/share/bash-completion/completions/delta-core
      delta-core completion zsh > "${fpath[1]}/_delta-core"
      delta-core completion fish > ~/.config/fish/completions/delta-core.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(cli, {}, PROGRAM, "_DELTA_CORE_COMPLETE")
    click.echo(script.source_template % script.source_vars())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; nothing but --debug shows a traceback."""
    thresholds = gc.get_threshold()
    # 0 turns collections off
    if thresholds[0]:
        gc.set_threshold(max(NEW_OBJECTS, thresholds[0]), *thresholds[1:])
    try:
        return _run(arguments)
    finally:
        gc.set_threshold(*thresholds)


def program() -> NoReturn:
    """Run the program and end the process, with its exit code.

    Functions that were registered with `atexit` are called. Python does not delete its objects one by one: for the
    modules of a small read that takes a sixth of the time.
    """
    code = main()
    # it prints what these functions raise, as Python does at its end
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # None where the caller closed it
            stream.flush()
    os._exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    given = [a for a in given if a != "--debug"]
    if sys.stdout is None:
        click.echo(f"{PROGRAM}: The output can't be written: stdout is closed.", err=True)
        return MISUSED
    try:
        code = cli.main(given, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.ClickException as e:
        e.show()
        return MISUSED
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (_ReaderGoneError, BrokenPipeError):
        # the reader has seen enough; data that Python still holds must not fail at exit
        _drop_output()
        return 0
    except Exception as e:  # noqa: BLE001 (the last line of defence of a program)
        return _report(e, debug)
    return code if isinstance(code, int) else 0


def _report(error: Exception, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    if _is_of_output(error):
        click.echo(f"{PROGRAM}: The output can't be written: {error}.", err=True)
        _drop_output()
        return MISUSED
    click.echo(f"{PROGRAM}: {_message(error)}", err=True)
    return MISUSED if isinstance(error, (InvalidArgumentError, ExpressionError)) else FAILED


def _is_of_output(error: Exception) -> bool:
    """Return whether an error is one of stdout: those of tables have a type of their own, or the name of a file."""
    return isinstance(error, OSError) and not isinstance(error, DeltaError) and error.filename is None


def _drop_output() -> None:
    """Lead stdout nowhere: what Python still holds must not fail at exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: Exception) -> str:
    if isinstance(error, InternalError) or not isinstance(error, (DeltaError, OSError)):
        name: Any = type(error).__name__
        return f"internal error: {name}: {error} (--debug shows where; please report it)"
    # arguments of the Python API become the options of the command line
    text = re.sub(r"\b(schema_mode|mode)='(\w+)'", lambda m: f"--{m[1].replace('_', '-')} {m[2]}", str(error))
    text = re.sub(r"\btruncate_history(=True)?\b", "--truncate-history", text)
    return re.sub(r"set the table property (\S+=\w+)", r"set \1 (create --property, or alter set-property)", text)
