"""Table features live behind the plugin API: the core names none of them."""

from __future__ import annotations

import re
import tomllib

from tests.architecture.source import ROOT, modules, texts

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAMES = sorted(PROJECT["entry-points"]["delta_core.features"])
LEGACY = {g: names for g, names in PROJECT["entry-points"].items() if g.startswith("delta_core.legacy.")}

#: Words of the protocol that mean something else too: the whole text, and where it may be.
OTHER_MEANINGS = {
    "domainMetadata": ("delta_core", "the action that features store their state in"),
    "v2Checkpoint": ("delta_core.log.hint", "a field of _last_checkpoint"),
}


def _means_other(module: str, text: str) -> bool:
    return text in OTHER_MEANINGS and module.startswith(OTHER_MEANINGS[text][0])


def test_features_are_installed_by_entry_point() -> None:
    assert {"columnMapping", "deletionVectors"} <= set(NAMES)


def test_legacy_versions_name_installed_features() -> None:
    named = {name for names in LEGACY.values() for name in names}
    assert named
    assert named <= set(NAMES)


def test_core_names_no_feature() -> None:
    word = re.compile(r"\b(?:" + "|".join(map(re.escape, NAMES)) + r")\b")
    wrong = [
        f"{module}:{line} specifies {text!r}"
        for module in modules()
        if module.startswith("delta_core") and not module.startswith(("delta_core.cli", "delta_core.testing"))
        for line, text in texts(module)
        if word.search(text) and not _means_other(module, text)
    ]
    assert not wrong, "\n".join(wrong)
