"""Which storage options are secrets: in no pickle, log or picture of a table unless requested."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from delta_core.errors import without_passwords
from delta_core.runtime.patterns import lazy_pattern

__all__ = ["secret_names", "shown_uri", "without_secrets"]

#: Words of the names of secrets: ``AWS_SECRET_ACCESS_KEY``, ``sas_token``, ``connectionString`` ...
_WORDS = frozenset({
    "auth", "authorization", "cert", "cookie", "cookies", "credential", "credentials", "headers", "key", "keys", "pass",
    "passphrase", "passwd", "password", "pwd", "sas", "secret", "secrets", "signature", "token",
})  # fmt: skip
_RUN_TOGETHER = lazy_pattern(r"connection_?string|password|secret|token|accountkey|accesskey", re.IGNORECASE)
_WORD = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
#: Values of secrets' names that are none: how to find a credential, or that there is to be none.
_PLAIN = frozenset({"anon", "browser", "cache", "cloud", "google_default"})


def without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return storage options without secrets, also those within further mappings."""
    return {
        name: without_secrets(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
        if not _is_secret(name, value)
    }


def secret_names(options: Mapping[str, Any]) -> list[str]:
    """Return the names of the options that `without_secrets` leaves out."""
    return list(_names(options))


def _names(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if _is_secret(name, value):
            yield str(name)
        elif isinstance(value, Mapping):
            yield from (f"{name}.{inner}" for inner in _names(value))


def _is_secret(name: Any, value: Any) -> bool:
    if value is None or isinstance(value, bool) or isinstance(value, str) and value in _PLAIN:
        return False
    if isinstance(value, str) and without_passwords(value) != value:
        return True
    text = str(name)
    words = {word.lower() for word in _WORD.findall(text)}
    return not words.isdisjoint(_WORDS) or _RUN_TOGETHER.search(text) is not None


shown_uri = without_passwords
