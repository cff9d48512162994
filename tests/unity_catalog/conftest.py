"""A catalog that this process serves, and the options that reach it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_plugins.unity_catalog import rest
from delta_plugins.unity_catalog.catalog import UnityCatalog, open_unity
from tests.unity_catalog.fake import FakeCatalog, running


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the machine's own settings nor its patience."""
    for name in list(os.environ):
        if name.startswith(("UNITY_", "DATABRICKS_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(rest, "PAUSE", 0.01)


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeCatalog]:
    (tmp_path / "managed").mkdir()
    with running(FakeCatalog(staging_root=(tmp_path / "managed").as_uri())) as catalog:
        yield catalog


@pytest.fixture
def options(fake: FakeCatalog) -> dict[str, str]:
    return {"unity_catalog_url": fake.url}


@pytest.fixture
def unity(options: dict[str, str]) -> UnityCatalog:
    return open_unity("unity", options)
