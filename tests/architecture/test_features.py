"""Table features live behind the plugin API: the core names none of them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files

import pyarrow as pa
import pytest

from delta_core.api import CommitSummary
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.protocol.legacy_versions import IMPLIED_BY_READER, IMPLIED_BY_WRITER
from delta_core.testing.feature_contract import table_state
from tests.architecture.source import ROOT, modules, texts
from tests.bundled import needs

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAMES = sorted(PROJECT["entry-points"]["delta_core.features"])

#: The one module of the core that names features: those that old protocol versions imply, whatever is installed.
IMPLIED = "delta_core.kernel.protocol.legacy_versions"

#: Words of the protocol that mean something else too: the whole text, and where it may be.
OTHER_MEANINGS = {
    "domainMetadata": ("delta_core", "the action that features store their state in"),
    "v2Checkpoint": (
        "delta_core.kernel.log.hint",
        "a field of _last_checkpoint, which is read before the features are known",
    ),
}

#: The names of delta-spark's settings, and the module that has them, or how they end.
SETTINGS_OF = "delta_core.engines.spark.settings"
SETTINGS = json.loads(files("delta_core.engines.spark").joinpath("delta_settings.json").read_text(encoding="utf-8"))

#: Properties that decide what every writer or reader does; a feature declares some of them too.
CORE_PROPERTIES = {
    "delta.checkpointPolicy": "whether checkpoints may have unique names, of which the property's values are checked",
    "delta.writePartitionColumnsToParquet": "what files hold, in tables without the feature too",
}
#: Fields of file actions that the protocol defines: they are columns of a file table, and the core interprets the
#: first only (it names the logical file).
FILE_FIELDS = ("deletionVector", "baseRowId", "defaultRowCommitVersion", "clusteringProvider")


def _declared(*attributes: str) -> set[str]:
    """Return names of properties, domains and requests that the bundled features declare."""
    features = [f for f in PluginRegistry().everything.features.values() if f.name in NAMES]
    found = {n for f in features for a in attributes for n in _texts_of(getattr(f, a))}
    return {n.partition("<")[0].rstrip(".") for n in found}


def _texts_of(names: Iterable[str] | Mapping[str, str]) -> Iterable[str]:
    return [*names, *(v for v in names.values() if v.startswith("delta."))] if isinstance(names, Mapping) else names


def _core_texts() -> list[tuple[str, int, str]]:
    core = [m for m in modules() if m.startswith("delta_core") and not m.startswith("delta_core.testing")]
    return [(m, line, text) for m in core for line, text in texts(m)]


def test_core_names_no_property_or_domain_of_a_feature() -> None:
    names = _declared("properties", "reserved", "flags", "domains", "requests") - CORE_PROPERTIES.keys()
    # arguments of operations, and the row-level words of one property
    names = {n for n in names if n.startswith("delta.")}
    assert len(names) > 10
    exceptions = {
        ("delta_core.cli.change", "delta.enableDeletionVectors"): "an example of a property in a command's help",
        ("delta_core.engines.spark.create_text", "delta.constraints"): "ALTER TABLE alone sets it, in a statement",
    }
    wrong = [
        f"{module}:{line} names {name}"
        for module, line, text in _core_texts()
        for name in names
        if name in text and (module, name) not in exceptions
    ]
    assert wrong == []


def test_core_has_fields_of_a_feature_as_columns_of_files_only() -> None:
    """Row ids and clustering are values of plugins: the modules that list the columns of an action name them."""
    columns = {
        "delta_core.kernel.protocol.actions", "delta_core.kernels.json_actions",
        "delta_core.kernel.log.checkpoint_writer", "delta_core.kernel.log.commit_chunks",
        "delta_core.kernel.commit.intents", "delta_core.engines.spark.plan.replay",
    }  # fmt: skip
    found = {module for module, _, text in _core_texts() if text in FILE_FIELDS[1:]}
    assert found - columns == set()


@needs("deletionVectors", "inCommitTimestamp")
def test_core_names_no_checksum_field_of_a_feature() -> None:
    plugins = PluginRegistry().everything
    switches = {"delta.enableDeletionVectors": "true", "delta.enableInCommitTimestamps": "true"}
    table = table_state(["deletionVectors", "inCommitTimestamp"], properties=switches)
    none = pa.table({"size": pa.array([], pa.int64()), "dvCardinality": pa.array([], pa.int64())})
    commit = CommitSummary(table.version, {"inCommitTimestamp": 1}, None, none, none)
    names = {field.name for field in plugins.collect("checksum_fields", table=table, commit=commit)}
    assert {"numDeletionVectorsOpt", "inCommitTimestampOpt"} <= names
    assert [f"{module}:{line} names {text}" for module, line, text in _core_texts() if text in names] == []


def test_operations_of_features_are_named_by_the_public_api_only() -> None:
    features = [f for f in PluginRegistry().everything.features.values() if f.name in NAMES]
    # a purpose of scans, and an argument of operations
    names = {name for f in features for name in f.operations} - {"changes", "cluster_by"}
    assert names
    public = (
        "delta_core.table.alterer",
        "delta_core.table.optimizer",
        "delta_core.table.delta_table",
        "delta_core.table.reading",
        "delta_core.cli",
    )
    texts_below = [(m, line, text) for m, line, text in _core_texts() if not m.startswith(public)]
    assert [f"{m}:{line} names {text}" for m, line, text in texts_below if text in names] == []


def test_property_that_the_core_shares_with_a_feature_is_still_declared() -> None:
    assert CORE_PROPERTIES.keys() <= _declared("properties")


def _means_other(module: str, text: str) -> bool:
    if module == SETTINGS_OF:
        return any(name.endswith(text) for name in SETTINGS)
    return text in OTHER_MEANINGS and module.startswith(OTHER_MEANINGS[text][0])


def test_features_are_installed_by_entry_point() -> None:
    assert len(NAMES) > 20


IMPLIED_BY = (*IMPLIED_BY_READER.values(), *IMPLIED_BY_WRITER.values())
IMPLIED_NAMES = sorted({name for names in IMPLIED_BY for name in names})


@pytest.mark.parametrize("name", IMPLIED_NAMES)
def test_feature_that_old_versions_imply_has_a_plugin(name: str) -> None:
    assert name in NAMES


def test_core_names_no_feature() -> None:
    word = re.compile(r"\b(?:" + "|".join(map(re.escape, NAMES)) + r")\b")
    wrong = [
        f"{module}:{line} specifies {text!r}"
        for module in modules()
        if module.startswith("delta_core") and not module.startswith(("delta_core.cli", "delta_core.testing", IMPLIED))
        for line, text in texts(module)
        if word.search(text) and not _means_other(module, text)
    ]
    assert not wrong, "\n".join(wrong)
