"""Indices that other writers recorded leave the rows that a scan without them returns."""

from __future__ import annotations

import pytest

from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.format import open_dataset
from tests.lance.recorded_files import FOLDER, datasets

INDEXED = [p for p in datasets() if not isinstance(p, str) or "index" in p]
#: Conditions on the columns that the recorded indices are of.
PREDICATES = (
    "id = 30", "id in (21, 22, 999999)", "id < 30", "not (id >= 40)", "id is null", "id > 25 and id <= 27",
    "g = 'g3'", "g != 'g3'", "g is null", "not (g = 'g3' and id < 500)", "g = 'g1' or id = 7",
    "g like 'g%' and v > 0.9", "array_contains(l, 0)", "not array_contains(l, 0)", "array_contains(l, 1) or id = 5",
    "v > 0.99", "v < 0.01 and id < 400", "v is null", "s = 'name 161'", "s in ('name 161', 'name 1115')", "s is null",
)  # fmt: skip


def effects(dataset: LanceDataset, predicate: str) -> dict[str, str]:
    return dict(dataset.scan([], predicate).explain().effects)


@pytest.mark.golden
@pytest.mark.parametrize("name", INDEXED)
def test_recorded_indices_leave_the_rows_of_a_scan(name: str) -> None:
    dataset = open_dataset(f"{FOLDER}/{name}")
    columns = set(dataset.schema().names)
    for predicate in PREDICATES:
        if not {c for c in ("id", "g", "l", "v", "s") if f"{c} " in predicate or f"({c}," in predicate} <= columns:
            continue
        found = dataset.scan([], predicate, metadata=["_rowaddr"])
        expected = dataset.scan([], predicate, metadata=["_rowaddr"], use_indices=False).to_table()
        assert found.to_table() == expected, predicate
        assert found.count() == expected.num_rows


@pytest.mark.golden
@pytest.mark.parametrize("name", [p for p in INDEXED if not isinstance(p, str) or "--index-2" in p])
def test_recorded_indices_are_used_if_their_files_can_be_read(name: str) -> None:
    dataset = open_dataset(f"{FOLDER}/{name}")
    for predicate, index in (("id = 30", "id_idx"), ("g = 'g3'", "g_idx"), ("array_contains(l, 0)", "l_idx")):
        text = effects(dataset, predicate)[f"index {index!r}"]
        assert text.startswith("used for ") or text == "not used: its files have a version that is not read"
    assert effects(dataset, "g = 'g3'")["index 'g_idx'"].startswith("used for ") or name.startswith("0.")


@pytest.mark.golden
@pytest.mark.skipif(FOLDER is None, reason="no recorded datasets in ../shared/golden/lance")
def test_reuse_index_and_index_without_type_are_not_used() -> None:
    found = effects(open_dataset(f"{FOLDER}/14.0.2--frag_reuse_index-2.2"), "id = 3")
    assert found["index '__lance_frag_reuse'"] == "not used: indices of type FragmentReuse are not read"
    assert found["index 'id_idx'"] == "not used: it has no fragment of this version"
    [(name, text)] = effects(open_dataset(f"{FOLDER}/repo-v0.18.2--index_no_details"), "id = 3").items()
    assert (name, text) == ("index 'id_idx'", "not used: indices of type unknown are not read")
