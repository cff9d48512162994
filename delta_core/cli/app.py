"""The program `delta-core`: its commands, its exit codes and how it reports errors."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import get_completion_class

from delta_core.cli import change, inspect, rows
from delta_core.errors import DeltaError, ExpressionError, InternalError, InvalidArgumentError

__all__ = ["cli", "main"]

PROGRAM = "delta-core"
FAILED, MISUSED, INTERRUPTED = 1, 2, 130


class _ReaderGoneError(Exception):
    """Whoever read our output closed the pipe."""


class _Program(click.Group):
    """Keeps a closed pipe from click, which would exit with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as e:
            raise _ReaderGoneError from e


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="delta_core", prog_name=PROGRAM)
@click.option("--debug", is_flag=True, help="Show the traceback of an error; may stand anywhere.")
def cli(debug: bool) -> None:
    """Read and write Delta Lake tables: what they are, what is in them, what changed.

    TABLE is a local path or the URI of any file system that fsspec knows (s3://, gs://, abfs:// ...).

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


for command in (
    inspect.info, inspect.schema, inspect.history, inspect.files, inspect.features, rows.head, rows.cat, rows.changes,
    inspect.log, change.create, change.write, change.checkpoint,
):  # fmt: skip
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; nothing but --debug shows a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    given = [a for a in given if a != "--debug"]
    try:
        cli.main(given, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.ClickException as e:
        e.show()
        return MISUSED
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (_ReaderGoneError, BrokenPipeError):
        # whoever read has seen enough; what Python still holds must not fail at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as e:  # noqa: BLE001 (the last line of defence of a program)
        return _report(e, debug)
    return 0


def _report(error: Exception, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    click.echo(f"{PROGRAM}: {_message(error)}", err=True)
    return MISUSED if isinstance(error, (InvalidArgumentError, ExpressionError)) else FAILED


def _message(error: Exception) -> str:
    if isinstance(error, InternalError) or not isinstance(error, (DeltaError, OSError)):
        name: Any = type(error).__name__
        return f"internal error: {name}: {error} (--debug shows where; please report it)"
    return str(error)
