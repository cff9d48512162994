"""The prose linter finds words of its list in texts, messages and names, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose.lint import Words, check_page, check_python, check_source, check_tree, read_words

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
    ],
)
def test_good_python_passes(text: str) -> None:
    assert check_python("module.py", text, WORDS) == []


def test_page_is_checked_outside_its_code() -> None:
    page = "A row is refused.\n\n```python\nrefused = 1\n```\n\nSee `refused`.\nFiles of which one is empty.\n"
    assert [f.line for f in check_page("page.md", page, WORDS)] == [1, 8]


def test_comments_of_other_languages_are_checked() -> None:
    assert [f.line for f in check_source("kernel.h", "int refused; // ok\n// refused\n", WORDS)] == [2]


def test_word_list_names_a_replacement_for_each_pattern() -> None:
    words = read_words()
    assert all([*words.text.values(), *words.names.values()])


def test_folders_that_builds_leave_behind_are_not_checked(tmp_path: Path) -> None:
    for folder in ("examples/plugin/build/lib", "delta_core/dist", "docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "page.md").write_text("A row is refused.\n")
    assert [f.path for f in check_tree(WORDS, tmp_path)] == ["docs/page.md"]
