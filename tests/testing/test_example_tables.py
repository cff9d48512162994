"""Contracts whose tables need domains and actions beside rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from delta_core.api import ActionKind, TableFeature
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.testing.feature_contract import ExampleTable, FeatureContract
from delta_core.testing.feature_tables import MadeTable

NOTE = pa.struct([("topic", pa.string()), ("text", pa.string())])


class Notes:
    FEATURE = TableFeature(
        "acme.notes", "writer", "Notes about the table.", actions=(ActionKind("acmeNote", NOTE, key=("topic",)),)
    )


class NotesContract(FeatureContract):
    name = "acme.notes"

    @property
    def registry(self) -> PluginRegistry:
        return PluginRegistry([Notes])

    def make(self, example: ExampleTable, folder: Path) -> MadeTable:
        made = super().make(example, folder)
        transaction = made.snapshot.begin("NOTE")
        transaction.set_domain("acme.notes", '{"topics": 2}')
        for topic in ("owner", "unit"):
            transaction.add_action("acmeNote", {"topic": topic, "text": "x"})
        transaction.commit()
        return made


def _notes(made: MadeTable) -> Sequence[str]:
    return sorted(note["topic"] for note in made.snapshot.custom_actions("acmeNote"))


def test_domains_and_actions_of_an_overridden_make_stay_when_rows_change(tmp_path: Path) -> None:
    made = NotesContract().make(ExampleTable(), tmp_path)
    made.move()
    made.append()
    made.checkpoint()
    assert made.snapshot.domains() == {"acme.notes": '{"topics": 2}'}
    assert _notes(made) == ["owner", "unit"]
    assert made.read().num_rows == 2 * ExampleTable().rows.num_rows
