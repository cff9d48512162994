"""Names of manifests and the versions that they show."""

from __future__ import annotations

import random

import pytest

from delta_core.errors import CorruptTableError, VersionNotFoundError
from delta_plugins.lance.names import manifest_names, parse_versions


@pytest.mark.parametrize("scheme", [2, 1])
def test_versions_are_found_in_any_order(scheme: int) -> None:
    versions = [1, 2, 9, 10, 11, 100, 1 << 40]
    names = [manifest_names(v)[2 - scheme] for v in versions]
    random.Random(1).shuffle(names)
    found = parse_versions([*names, "latest_version_hint.json", ".tmp_7.manifest_x", "3.manifest-a1b2"], "t")
    assert found is not None
    assert (list(found.names), found.latest, found.scheme) == (versions, 1 << 40, scheme)
    assert found.name_of(10) == manifest_names(10)[2 - scheme]


def test_names_are_those_of_the_format() -> None:
    assert manifest_names(1) == ("18446744073709551614.manifest", "1.manifest")


def test_detached_versions_and_other_files_do_not_count() -> None:
    names = ["d9223372036854775809.manifest", "d1.manifest", "01.manifest", "x.manifest", ".manifest", "1.manifest.bak"]
    assert parse_versions(names, "t") is None
    found = parse_versions([*names, "2.manifest", "9223372036854775809.manifest"], "t")
    assert found is not None
    assert list(found.names) == [2]


def test_two_schemes_are_rejected() -> None:
    names = [*manifest_names(3), manifest_names(4)[0]]
    with pytest.raises(CorruptTableError, match=r"3\.manifest and 1844674407370955161[12]\.manifest"):
        parse_versions(names, "t")


def test_missing_version_is_reported_with_those_that_are_there() -> None:
    found = parse_versions([f"{v}.manifest" for v in range(20, 50)], "t")
    assert found is not None
    with pytest.raises(VersionNotFoundError, match="20 earlier ones and 40, 41") as e:
        found.name_of(7)
    assert e.value.version == 7
