"""Short-lived credentials of the catalog for a table's store, as storage options; renewed before they expire."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from delta_core.api import (
    CatalogError,
    CatalogNameNotFoundError,
    CatalogPermissionError,
    PerProcess,
    UnsupportedOperationError,
)
from delta_plugins.unity_catalog.options import Settings
from delta_plugins.unity_catalog.rest import Api

__all__ = ["Request", "StoreCredentials", "has_credentials", "path_request", "table_request"]

#: Credentials are renewed so long before they expire, in s; those that live shorter, after half of their life.
EARLY_S = 300.0
#: How long credentials serve whose end the catalog does not report, in s.
_UNKNOWN_S = 900.0
_S3, _GCS, _AZURE = ("s3", "s3a"), ("gs", "gcs"), ("abfs", "abfss", "az", "adl")

#: The path of a request for credentials, its body, and the operations to request, the most extensive one first.
Request = tuple[str, Mapping[str, str], tuple[str, ...]]


def has_credentials(scheme: str) -> bool:
    """Whether the catalog issues credentials for the stores of a scheme."""
    return scheme in (*_S3, *_GCS, *_AZURE)


def table_request(table_id: str) -> Request:
    """Return the request for the credentials of a table: to write if that is permitted, else to read."""
    return "/temporary-table-credentials", {"table_id": table_id}, ("READ_WRITE", "READ")


def path_request(location: str, operation: str) -> Request:
    """Return the request for the credentials of a place that no table has yet."""
    return "/temporary-path-credentials", {"url": location}, (operation,)


class StoreCredentials:
    """Storage options with credentials of the catalog; a callable as `open_storage` takes it as ``renewal``.

    Parameters
    ----------
    settings : Settings
        The catalog, and the options that the credentials are added to.
    request : tuple
        The result of `table_request` or `path_request`.
    scheme : str
        The scheme of the store.
    subject : str
        The object of the credentials, for errors.
    clock : function() -> float
        The time in s since the epoch.
    """

    def __init__(
        self, settings: Settings, request: Request, scheme: str, subject: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._request = request
        self._scheme = scheme
        self._subject = subject
        self._clock = clock
        self._lock = PerProcess(threading.Lock)
        self._options: dict[str, Any] = {}
        self._renew_at = 0.0
        self._expires_at = 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._settings, self._request, self._scheme, self._subject, self._clock)

    def __repr__(self) -> str:
        return f"StoreCredentials({self._subject!r})"

    def __call__(self) -> dict[str, Any]:
        """Return the options that are valid now, the same object until they are renewed.

        Raises
        ------
        CatalogError
            If the catalog issues none, and those that are there have expired.
        """
        if self._clock() < self._renew_at:
            return self._options
        with self._lock.get():
            now = self._clock()
            if now >= self._renew_at:
                try:
                    self._renew(now)
                except CatalogError:
                    if now >= self._expires_at:
                        raise
                    # the current ones still serve; the next access tries again, a little later
                    self._renew_at = min(now + 10.0, self._expires_at)
            return self._options

    def _renew(self, now: float) -> None:
        answer = self._issued()
        expiry = answer.get("expiration_time")
        if expiry is not None and (isinstance(expiry, bool) or not isinstance(expiry, (int, float))):
            self._malformed("expiration_time is no number")
        expires = now + _UNKNOWN_S if not expiry else expiry / 1000
        options = {**self._settings.storage, **self._store_options(answer)}
        self._options, self._expires_at = options, expires
        # never at once, or each access would renew
        self._renew_at = max(now + 1.0, expires - min(EARLY_S, (expires - now) / 2))

    def _issued(self) -> dict[str, Any]:
        path, body, operations = self._request
        api = Api(self._settings)
        for operation in operations:
            try:
                return api.post(path, self._subject, {**body, "operation": operation}, repeats=True)
            except CatalogPermissionError:
                if operation == operations[-1]:
                    raise
            except CatalogNameNotFoundError as e:
                # no missing file, which callers of a store take for an answer
                raise CatalogError(f"Credentials can't be issued any more: {e}", **e.facts) from e
        raise AssertionError

    def _store_options(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        if self._scheme in _S3 and (found := self._part(answer, "aws_temp_credentials")) is not None:
            out = {
                "aws_access_key_id": self._text(found, "access_key_id"),
                "aws_secret_access_key": self._text(found, "secret_access_key"),
            }
            token = found.get("session_token")
            return {**out, "aws_session_token": token} if token else out
        if self._scheme in _AZURE and (found := self._part(answer, "azure_user_delegation_sas")) is not None:
            return {"azure_storage_sas_token": self._text(found, "sas_token").removeprefix("?")}
        if self._scheme in _GCS and (found := self._part(answer, "gcp_oauth_token")) is not None:
            return {"token": _google(self._text(found, "oauth_token"))}
        names = [n for n in ("aws_temp_credentials", "azure_user_delegation_sas", "gcp_oauth_token") if answer.get(n)]
        if "r2_temp_credentials" in answer:
            raise UnsupportedOperationError(
                f"The catalog issues credentials of Cloudflare R2 for {self._subject}, which this client does not use. "
                "Open the table by its location with storage options of your own.",
                name=self._subject,
            )
        return self._malformed(
            f"it has {' and '.join(names) or 'no credentials'} for a store of the scheme {self._scheme}://"
        )

    def _part(self, answer: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = answer.get(name)
        if found is not None and not isinstance(found, dict):
            self._malformed(f"{name} is no object")
        return found

    def _text(self, found: Mapping[str, Any], name: str) -> str:
        value = found.get(name)
        if not isinstance(value, str) or not value:
            self._malformed(f"{name} is no text")
        return value

    def _malformed(self, why: str) -> NoReturn:
        Api(self._settings).malformed(self._subject, why)


def _google(token: str) -> Any:
    """Return a token as Google's library has it: gcsfs would look for a file of a text's name."""
    try:
        from google.oauth2.credentials import Credentials
    except ImportError:
        return token  # opening the store reports which package is missing
    return Credentials(token)  # type: ignore[no-untyped-call]
