"""The program itself: exit codes, errors, help, completion."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from delta_core.cli.app import COMMANDS, cli, main
from delta_core.testing.table_builder import TableBuilder

NAMES = cli.list_commands(click.Context(cli))


def test_fault_of_the_table_is_one_line_and_exit_code_1(run: Any, tmp_path: Path) -> None:
    result = run("info", tmp_path / "nothing")
    assert result.code == 1
    assert result.out == ""
    assert result.err.startswith("delta-core: No Delta table")
    assert result.err.count("\n") == 1


def test_process_ends_with_the_exit_code_and_whole_output(tmp_path: Path) -> None:
    code = "import atexit; from delta_core.cli import program; atexit.register(print, 'at the end'); program()"
    for arguments, expected in ((["info", str(tmp_path / "nothing")], 1), (["--version"], 0)):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == expected
        assert done.stdout.endswith("at the end\n")
        assert bool(done.stderr) == bool(expected)


def test_debug_shows_the_traceback_wherever_it_is(run: Any, tmp_path: Path) -> None:
    for arguments in (("--debug", "info", tmp_path / "nothing"), ("info", tmp_path / "nothing", "--debug")):
        result = run(*arguments)
        assert result.code == 1
        assert "Traceback" in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("fly",),
        ("info",),
        ("head", "t", "-n", "-1"),
        ("info", "t", "--version", "x"),
        ("cat", "t", "-f", "xml"),
        ("info", "t", "--version", "1", "--timestamp", "2024-01-01"),
        ("info", "t", "--storage-option", "key"),
        ("changes", "t", "--start", "1", "--start-timestamp", "2024-01-01"),
        ("completion", "tcsh"),
        ("head", "t", "--columns", "a,,b"),
        ("head", "t", "--timezone", "Mars"),
    ],
    ids=str,
)
def test_misuse_shows_the_usage_and_exits_with_2(run: Any, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert "Usage: delta-core" in result.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("head", "--where", "id >"), 2),
        (("head", "--where", "nope = 1"), 1),
        (("head", "--columns", "nope"), 1),
        (("head", "--version", "9"), 1),
        (("head", "--timestamp", "soon"), 2),
        (("cat", "-o", "out.xml"), 2),
        (("cat", "-o", "/no/such/place/out.csv"), 2),
        (("changes", "--start", "9"), 2),
    ],
    ids=str,
)
def test_what_is_at_fault_decides_the_exit_code(
    run: Any, table: TableBuilder, arguments: tuple[str, ...], code: int
) -> None:
    command, *options = arguments
    result = run(command, table.uri, *options)
    assert result.code == code, result.err
    assert result.err.startswith("delta-core: ")
    assert "Traceback" not in result.err


def test_unexpected_error_requires_a_report(run: Any, table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_core.cli.inspect._describe", lambda *_: 1 / 0)
    result = run("info", table.uri)
    assert result.code == 1
    assert "internal error: ZeroDivisionError" in result.err
    assert "report" in result.err


def test_interrupt_exits_with_130(run: Any, table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("delta_core.cli.inspect._describe", interrupt)
    assert run("info", table.uri).code == 130


def test_storage_options_reach_the_file_system(run: Any) -> None:
    made = TableBuilder("memory://cli/t").create({"id": "long"}).append([{"id": 1}])
    assert run("head", made.uri, "--storage-option", "skip_instance_cache=true", "--json").json == [{"id": 1}]


@pytest.mark.parametrize("name", NAMES)
def test_help_of_every_command_has_examples(run: Any, name: str) -> None:
    result = run(name, "--help")
    assert result.code == 0
    assert f"delta-core {name}" in result.out.split("Examples:")[1]


def test_help_states_the_exit_codes_and_every_command(run: Any) -> None:
    text = run("--help").out
    assert "Exit codes: 0 done, 1" in text
    assert all(f"\n  {name} " in text for name in NAMES)


@pytest.mark.parametrize("command", [(), ("alter",), ("feature",)])
def test_help_cuts_no_line_of_a_command(run: Any, command: tuple[str, ...]) -> None:
    assert "..." not in run(*command, "--help").out.partition("Commands:")[2]


def test_text_in_place_of_a_number_is_rejected_in_plain_words(run: Any, tmp_path: Path) -> None:
    assert "'x' is not a valid whole number" in run("head", tmp_path, "--limit", "x").err
    assert "'x' is not a valid number" in run("follow", tmp_path, "--interval", "x").err


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_commands_are_listed_by_their_own_first_line(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.get_short_help_str(1000) == COMMANDS[name]


def test_page_of_the_command_line_has_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"\n| `{name}` | " not in page] == []


def test_unknown_command_is_rejected(run: Any) -> None:
    result = run("infos")
    assert result.code == 2
    assert "No such command 'infos'. Did you mean 'info'?" in result.err
    assert "Did you mean" not in run("frobnicate").err


def test_version_of_the_program(run: Any) -> None:
    assert run("--version").out.startswith("delta-core, version ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_shells_script(run: Any, shell: str) -> None:
    result = run("completion", shell)
    assert result.code == 0
    assert "_DELTA_CORE_COMPLETE" in result.out
    assert "delta-core" in result.out


@pytest.mark.parametrize(("before", "within"), [((700, 10, 10), 50_000), ((90_000, 5, 5), 90_000), ((0, 10, 10), 0)])
def test_garbage_is_collected_less_often_within_the_program_only(
    monkeypatch: pytest.MonkeyPatch, before: tuple[int, int, int], within: int
) -> None:
    seen: list[tuple[int, int, int]] = []
    monkeypatch.setattr(cli, "main", lambda *_, **__: seen.append(gc.get_threshold()))
    own = gc.get_threshold()
    gc.set_threshold(*before)
    try:
        assert main(["info", "t"]) == 0
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*own)
    assert seen == [(within, *before[1:])]
