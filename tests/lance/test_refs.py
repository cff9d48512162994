"""Tags and branches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_core.api import Storage, open_context
from delta_core.errors import CorruptTableError, UnsupportedFeatureError, VersionNotFoundError
from delta_plugins.lance.manifest import BasePath
from delta_plugins.lance.refs import Branch, Tag, branch_folder, find_tag, read_branches, read_tags
from delta_plugins.lance.sources import Places


def storage_with(root: Path, kind: str, **files: Any) -> Storage:
    folder = root / "_refs" / kind
    folder.mkdir(parents=True)
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}.json").write_text(text)
    return open_context(str(root)).log.engine.storage


def test_tags_are_found_by_name(tmp_path: Path) -> None:
    storage = storage_with(
        tmp_path,
        "tags",
        **{"a": {"version": 3, "manifestSize": 1}, "%C3%BC": {"version": 4, "branch": "dev", "metadata": {"k": "v"}}},
    )
    assert read_tags(storage) == {"a": Tag(3, manifest_size=1), "ü": Tag(4, "dev", {"k": "v"})}
    assert find_tag(storage, "a").version == 3
    with pytest.raises(VersionNotFoundError, match="no tag 'b'; there are: 'a', 'ü'"):
        find_tag(storage, "b")


def test_branches_are_found_by_name(tmp_path: Path) -> None:
    content = {"parentBranch": None, "parentVersion": 2, "createAt": 5}
    storage = storage_with(tmp_path, "branches", **{"feat%2Fx": content, "b": {**content, "parentBranch": "feat/x"}})
    assert read_branches(storage) == {"feat/x": Branch(None, 2, 5), "b": Branch("feat/x", 2, 5)}
    assert branch_folder("feat/x") == "tree/feat/x"
    assert branch_folder("main") == branch_folder(None) == ""


def test_dataset_without_references_has_none(tmp_path: Path) -> None:
    storage = open_context(str(tmp_path)).log.engine.storage
    assert read_tags(storage) == read_branches(storage) == {}


@pytest.mark.parametrize(
    "content", ["", "{", "[]", {}, {"version": "1"}, {"version": -1}, {"version": True}, {"version": 1, "branch": 2}]
)
def test_damaged_tag_is_rejected_by_its_file(tmp_path: Path, content: Any) -> None:
    storage = storage_with(tmp_path, "tags", t=content)
    with pytest.raises(CorruptTableError, match=r"_refs/tags/t\.json is damaged"):
        read_tags(storage)


def places(below: str, *bases: BasePath) -> Places:
    return Places(below, "/data/set", {b.id: b for b in bases})


def test_files_are_below_the_path_that_they_refer_to() -> None:
    found = places(
        "", BasePath(1, "/other/set/", True), BasePath(2, "s3://b/files", False), BasePath(3, "/data/set", True)
    )
    assert found.data(-1, "x") == "data/x"
    assert found.data(1, "x") == "/other/set/data/x"
    assert found.data(2, "x") == "s3://b/files/x"
    assert found.data(3, "x") == "data/x"
    assert found.other(1, "_deletions/y") == "/other/set/_deletions/y"
    assert places("tree/dev").data(-1, "x") == "tree/dev/data/x"


def test_branch_that_was_made_by_a_relative_path_finds_its_parent() -> None:
    assert places("tree/b", BasePath(0, "some/folder", True)).data(0, "x") == "data/x"
    assert places("tree/b", BasePath(0, "some/folder/tree/a", True)).data(0, "x") == "tree/a/data/x"


def test_relative_base_path_is_rejected_outside_of_branches() -> None:
    with pytest.raises(UnsupportedFeatureError, match="'some/folder'"):
        places("", BasePath(0, "some/folder", True))
    with pytest.raises(UnsupportedFeatureError, match="'files'"):
        places("tree/b", BasePath(0, "files", False))
