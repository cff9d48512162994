"""The prose linter finds words of its list in texts, messages and names, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose.lint import ROOT, Words, check_page, check_python, check_source, check_tree, read_words

WORDS = Words({"refus(e|ed)": "reject", "of which": "a relative clause"}, {"door": "plugin_api"}, ("each of which",))


@pytest.mark.parametrize(
    "text",
    [
        '"""Refuse a row."""\n',
        "# files that are refused\n",
        'raise ValueError(f"Row {1} was refused.")\n',
        'click.option("--force", help="Write rows that are refused.")\n',
        "def test_plugin_door_opens() -> None: ...\n",
        "class PluginDoor:\n    pass\n",
        '"""Files of\nwhich one is empty."""\n',
    ],
)
def test_bad_python_is_reported_with_its_replacement(text: str) -> None:
    (found,) = check_python("module.py", text, WORDS)
    assert found.line == 1
    assert found.instead in str(found)


@pytest.mark.parametrize(
    "text",
    [
        '"""Reject a row, each of which has a number."""\n',
        'refused = "refused"\n',
        '"""The key ``refused`` of a document."""\n',
        "def test_doors() -> None: ...\n",
        '"""Count rows.\n\n    >>> count(\n    ...     refused)\n    1\n"""\n',
    ],
)
def test_good_python_passes(text: str) -> None:
    assert check_python("module.py", text, WORDS) == []


def test_page_is_checked_outside_its_code() -> None:
    page = "A row is refused.\n\n```python\nrefused = 1\n```\n\nSee `refused`.\nFiles of which one is empty.\n"
    assert [f.line for f in check_page("page.md", page, WORDS)] == [1, 8]


def test_comments_of_other_languages_are_checked() -> None:
    assert [f.line for f in check_source("kernel.h", "int refused; // ok\n// refused\n", WORDS)] == [2]


def test_sentence_over_lines_of_comments_is_searched_as_one() -> None:
    for name, text in [
        ("kernel.h", "// Files of\n// which one is empty.\nint files;\n"),
        ("kernel.h", "/* Files of\n * which one is empty. */\n"),
        ("kernel.pyx", "#: Files of\n#: which one is empty.\n"),
        ("kernel.pxi", 'cdef int f():\n    """Files of\n    which one is empty."""\n'),
    ]:
        (found,) = check_source(name, text, WORDS)
        assert found.line == text.count("\n", 0, text.index("of")) + 1


def test_docstrings_of_cython_are_checked() -> None:
    text = 'def f():\n    """Return a row.\n\n    It is refused.\n    """\n    x = "refused"\n'
    assert [f.line for f in check_source("kernel.pyx", text, WORDS)] == [4]


REFERENCE = [
    ("The bytes behind the end are zero.", "The bytes after the end are zero."),
    ("Return so many bytes.", "Return `size` bytes."),
    ("Return as many as fit.", "Return at most `size` bytes."),
    ("What follows is not read.", "The bytes that follow are not read."),
    ("Whoever calls it frees the memory.", "The caller frees the memory."),
    ("A writer who lost waits.", "A writer that lost waits."),
    ("Memory that nobody uses.", "Memory that is not in use."),
    ("Skip the page at hand.", "Skip the current page."),
    ("The bytes can't be had.", "The bytes can't be read."),
    ("Set what came of it.", "Set the result."),
]


@pytest.mark.parametrize(("bad", "good"), REFERENCE)
@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("ext/log/scan.h", "// {}\n"),
        ("ext/log/scan.pyx", "# {}\n"),
        ("ext/log/scan.pxi", 'def f():\n    """{}"""\n'),
        ("delta_core/kernels/scan.py", '"""{}"""\n'),
        ("delta_core/kernels/scan.py", "# {}\n"),
    ],
)
def test_reference_folders_are_written_as_references(name: str, form: str, bad: str, good: str) -> None:
    words, check = read_words(), check_python if name.endswith(".py") else check_source
    (found,) = check(name, form.format(bad), words)
    assert found.instead
    assert check(name, form.format(good), words) == []
    assert check("tests/" + name, form.format(bad), words) == []


def test_question_may_begin_with_what() -> None:
    assert check_source("ext/log/scan.h", "// What is read? The file.\n", read_words()) == []


def test_reference_folders_exist_and_contain_all_kernels() -> None:
    folders = read_words().reference_folders
    assert "ext" in folders
    assert all((ROOT / folder).is_dir() for folder in folders)


def test_word_list_names_a_replacement_for_each_pattern() -> None:
    words = read_words()
    assert all([*words.text.values(), *words.names.values(), *words.reference.values()])


def test_folders_that_builds_leave_behind_are_not_checked(tmp_path: Path) -> None:
    for folder in ("examples/plugin/build/lib", "delta_core/dist", "docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "page.md").write_text("A row is refused.\n")
    assert [f.path for f in check_tree(WORDS, tmp_path)] == ["docs/page.md"]
