"""The expressions that a table's metadata contains: new ones are stored in a form that all readers read alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from delta_core.expressions.sql import DoubleQuotes, portable_sql
from delta_core.kernel.plugins.features import TableFeature
from delta_core.kernel.protocol.actions import Metadata
from delta_core.schema.fields import with_field_metadata
from delta_core.schema.types import Field

__all__ = ["portable_metadata"]

#: Returns the new text of an expression, from the name of its field or property and its text.
Change = Callable[[str, str], str]


def portable_metadata(
    metadata: Metadata, known: Iterable[Metadata], features: Iterable[TableFeature], double_quotes: DoubleQuotes
) -> Metadata:
    """Return metadata whose new expressions contain no double quotes, which readers read in different ways.

    Parameters
    ----------
    metadata : Metadata
        As it was passed.
    known : iterable of Metadata
        Those whose expressions stay as they are: they are in a log.
    features : iterable of TableFeature
        Those that specify where expressions are.
    double_quotes : "name" or "text"
        The meaning of double quotes in new expressions.

    Raises
    ------
    ExpressionError
        For an expression with an empty name.
    """
    keys = [key for feature in features for key in feature.expressions]
    if not _has_quotes(metadata, keys):
        return metadata
    there: set[tuple[str, str]] = set()

    def note(place: str, text: str) -> str:
        there.add((place, text))
        return text

    def portable(place: str, text: str) -> str:
        return text if (place, text) in there else portable_sql(text, double_quotes)

    for other in known:
        _rewrite(other, keys, note)
    return _rewrite(metadata, keys, portable)


def _has_quotes(metadata: Metadata, keys: Collection[str]) -> bool:
    """Return whether an expression may contain a double quote; True for most of those that don't, but never False."""
    columns = metadata.schema_string
    return any('"' in text for text in metadata.configuration.values() if isinstance(text, str)) or (
        '\\"' in columns and any(key in columns for key in keys)
    )


def _rewrite(metadata: Metadata, keys: Collection[str], change: Change) -> Metadata:
    prefixes = tuple(key.partition("<")[0].lower() for key in keys if "<" in key)

    def of_field(f: Field) -> Mapping[str, Any]:
        return {k: _changed(f.name, v, change) if k in keys else v for k, v in f.metadata.items()}

    configuration = {
        name: _changed(name, text, change) if name.lower().startswith(prefixes) else text
        for name, text in metadata.configuration.items()
    }
    metadata = replace(metadata, configuration=configuration)
    if not any(key in metadata.schema_string for key in keys):
        return metadata
    schema = with_field_metadata(metadata.schema, of_field)
    return metadata if schema == metadata.schema else replace(metadata, schema_string=schema.to_json())


def _changed(place: str, value: Any, change: Change) -> Any:
    """Change an expression's text, or the texts within JSON; values of other kinds are rejected elsewhere."""
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith("{"):
        return change(place, value)
    try:
        return json.dumps(_changed_json(place, json.loads(value), change), separators=(",", ":"))
    except ValueError:
        return value


def _changed_json(place: str, value: Any, change: Change) -> Any:
    if isinstance(value, dict):
        return {k: _changed_json(place, v, change) for k, v in value.items()}
    return change(place, value) if isinstance(value, str) else value
