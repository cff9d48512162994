"""Requests to the REST API: one JSON answer each, and one error of its own for each way to fail."""

from __future__ import annotations

import http.client
import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn
from urllib.parse import quote, urlencode

from delta_core.api import (
    CatalogAuthenticationError,
    CatalogConflictError,
    CatalogError,
    CatalogNameNotFoundError,
    CatalogPermissionError,
    CatalogResponseError,
    CatalogUnavailableError,
    check_encodable,
)
from delta_plugins.unity_catalog.options import Settings

__all__ = ["Api"]

_log = logging.getLogger(__name__)
#: How often a request is sent that the server could not take, and how long to wait before it is sent again, in s.
TRIES = 4
PAUSE = 0.2
_TIMEOUT = 60.0
#: How long an answer may take in all, in s, even if each part of it comes in time.
_TOTAL = 300.0
#: How many pages of a list may be empty one after the other: a server may filter, but not forever.
_MOST_EMPTY = 1000
#: The longest text of a server that an error repeats, and the largest answer that is read, in bytes.
_MOST_TEXT = 500
_MOST_BYTES = 64 << 20
#: The answers to requests that return nothing: servers send the status as text. A page of a proxy is none of them.
_EMPTY = (b"", b"200 OK")
#: The answers of a server, or of a proxy before it, that has not taken the request.
_BUSY = frozenset({429, 502, 503, 504})


class Api:
    """The REST API of a server.

    Parameters
    ----------
    settings : Settings
        Where it is, and the token.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @property
    def url(self) -> str:
        """The root of the API."""
        return self._settings.url

    def __repr__(self) -> str:
        return f"Api({self.url!r})"

    def get(self, path: str, subject: str, query: Mapping[str, Any] | None = None, body: Any = None) -> dict[str, Any]:
        """Send a GET request, again while the server can't be reached or is busy.

        Parameters
        ----------
        path : str
            The path below the API's root, with names percent-encoded.
        subject : str
            The object of the request, for errors.
        query : Mapping, optional
            Parameters of the URL.
        body : object, optional
            The JSON body.
        """
        return self._repeated("GET", path, subject, query, body)

    def post(self, path: str, subject: str, body: Any, *, repeats: bool = False) -> dict[str, Any]:
        """Send a POST request.

        Parameters
        ----------
        path, subject, body
            As of `get`.
        repeats : bool
            Whether the request may be sent again if its answer was lost, since the server acts on it once.
        """
        return self._repeated("POST", path, subject, None, body) if repeats else self._send("POST", path, subject, body)

    def delete(self, path: str, subject: str) -> None:
        """Send a DELETE request; path and subject as of `get`."""
        self._send("DELETE", path, subject, None)

    def pages(self, path: str, subject: str, items: str, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list, page by page.

        Parameters
        ----------
        path, subject, query
            As of `get`.
        items : str
            The field of an answer that has the objects.
        """
        token: str | None = None
        seen: set[str] = set()
        num_empty = 0
        while True:
            found = self.get(path, subject, {**query, **({"page_token": token} if token else {})})
            listed = found.get(items) or []
            if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
                self.malformed(subject, f"the field {items!r} is no list of objects")
            yield from listed
            following = found.get("next_page_token") or None
            if following is None:
                return
            token = str(following)
            if token in seen:
                self.malformed(subject, "a page names itself, or an earlier one, as the next one")
            seen.add(token)
            num_empty = 0 if listed else num_empty + 1
            if num_empty == _MOST_EMPTY:
                self.malformed(subject, f"{_MOST_EMPTY} pages after each other are empty, and it goes on")

    def _repeated(self, method: str, path: str, subject: str, query: Any, body: Any) -> dict[str, Any]:
        target = f"{path}?{urlencode({k: check_encodable(str(v)) for k, v in query.items()})}" if query else path
        for attempt in range(TRIES - 1):
            try:
                return self._send(method, target, subject, body)
            except CatalogUnavailableError as e:
                _log.info("Unity Catalog at %s does not answer for %s; trying again.", self.url, subject)
                time.sleep(min(5.0, e.facts.get("retry_after") or PAUSE * 2**attempt))
        return self._send(method, target, subject, body)

    def _send(self, method: str, path: str, subject: str, body: Any) -> dict[str, Any]:
        headers = {"Accept": "application/json", "User-Agent": "delta-core-lake"}
        if self._settings.token is not None:
            headers["Authorization"] = f"Bearer {self._settings.token}"
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)  # noqa: S310 (checked)
        refused: tuple[int, bytes, Any] | None = None
        lost: BaseException | str | None = None
        try:
            with _OPENER.open(request, timeout=_TIMEOUT) as response:
                status, found = response.status, _read_within(response, _MOST_BYTES + 1, _TOTAL)
        except urllib.error.HTTPError as e:
            with e:
                refused = e.code, _read_some(e), e.headers
        except (OSError, http.client.HTTPException) as e:
            # the reason of a URLError; the error itself may repeat the request
            lost = e.reason if isinstance(e, urllib.error.URLError) else e
        # raised here, not where these are handled: an error of urllib in its context can't be pickled, and Dask's
        # workers send an error's context along
        if refused is not None:
            self._fail(*refused, subject)
        if lost is not None:
            raise CatalogUnavailableError(
                f"Unity Catalog at {self.url} does not answer for {subject}: {type(lost).__name__}: {lost}. Check "
                "the address and that the server runs.",
                endpoint=self.url,
                name=subject,
            )
        if 300 <= status < 400:
            self._redirected(subject)
        return self._parsed(found, subject)

    def _parsed(self, found: bytes, subject: str) -> dict[str, Any]:
        if found.strip() in _EMPTY:
            return {}
        if len(found) > _MOST_BYTES:
            self.malformed(subject, f"it has more than {_MOST_BYTES >> 20} MiB")
        try:
            value = json.loads(found)
        except (ValueError, RecursionError):
            self.malformed(subject, "it is no JSON")
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.malformed(subject, f"it is {type(value).__name__}, expected an object")
        return value

    def malformed(self, subject: str, why: str) -> NoReturn:
        """Raise the error of an answer that is not as the API specifies.

        Parameters
        ----------
        subject : str
            The object of the request.
        why : str
            The fault of the answer, without the answer itself: it may hold credentials.

        Raises
        ------
        CatalogResponseError
            Always.
        """
        raise CatalogResponseError(
            f"The answer of Unity Catalog at {self.url} for {subject} can't be used: {why}. Check that the address is "
            "that of Unity Catalog's API 2.1, and not of a page or a proxy.",
            endpoint=self.url,
            name=subject,
        ) from None

    def _redirected(self, subject: str) -> NoReturn:
        raise CatalogResponseError(
            f"Unity Catalog at {self.url} redirects the request for {subject}, which is not followed, since the token "
            "would go along. Pass the address that it leads to.",
            endpoint=self.url,
            name=subject,
        )

    def _fail(self, status: int, found: bytes, headers: Any, subject: str) -> NoReturn:
        if 300 <= status < 400:
            self._redirected(subject)
        code, text = (self._hidden(part) for part in _reason(found))
        said = f" It reports{f' {code}' if code else ''}: {self._shown(text)}" if text else ""
        facts = {"endpoint": self.url, "name": subject, "status": status, "code": code}
        place = f"Unity Catalog at {self.url}"
        if status == 401:
            raise CatalogAuthenticationError(
                f"{place} does not accept the token for {subject}.{said} Pass a valid one by the storage option "
                "unity_catalog_token, or set UNITY_CATALOG_TOKEN or DATABRICKS_TOKEN in the environment.",
                **facts,
            )
        if status == 403:
            raise CatalogPermissionError(
                f"{place} does not permit the request for {subject}.{said} Request the privileges: USE CATALOG, USE "
                "SCHEMA and SELECT to read, MODIFY to write, EXTERNAL USE SCHEMA for credentials.",
                **facts,
            )
        if status == 404:
            raise CatalogNameNotFoundError(
                f"{place} does not have {subject}.{said} Check the spelling: catalog.schema.table.", **facts
            )
        if status == 409 or code.endswith("ALREADY_EXISTS"):
            raise CatalogConflictError(f"{place} rejects the request for {subject}: it conflicts.{said}", **facts)
        if status in _BUSY and code != "RESOURCE_EXHAUSTED":
            raise CatalogUnavailableError(
                f"{place} can't serve the request for {subject} now: status {status}.{said} Try again later.",
                retry_after=_seconds(headers),
                **facts,
            )
        raise CatalogError(f"{place} failed for {subject} with status {status}.{said}", **facts)

    def _hidden(self, text: str) -> str:
        """Return a text of the server without the token."""
        token = self._settings.token
        return text.replace(token, "***") if token else text

    def _shown(self, text: str) -> str:
        text = text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"
        return text if text.endswith((".", "…")) else f"{text}."


def quoted(name: str) -> str:
    """Return a name as a part of a path."""
    return quote(check_encodable(name), safe="")


def _read_within(response: Any, most: int, seconds: float) -> bytes:
    """Return an answer, at most ``most`` bytes of it."""
    end = time.monotonic() + seconds
    parts: list[bytes] = []
    rest = most
    while rest and (part := response.read1(min(rest, 1 << 20))):
        parts.append(part)
        rest -= len(part)
        if time.monotonic() > end:
            raise TimeoutError(f"the answer was not complete after {seconds:g} s")
    return b"".join(parts)


def _read_some(error: urllib.error.HTTPError) -> bytes:
    try:
        return _read_within(error, 1 << 20, _TOTAL)
    except (OSError, http.client.HTTPException):
        return b""


def _reason(found: bytes) -> tuple[str, str]:
    """Return the code and the message of an error's answer; of a page of a proxy neither."""
    try:
        value = json.loads(found)
    except (ValueError, RecursionError):
        return "", ""
    if not isinstance(value, dict):
        return "", ""
    inner = value.get("error")
    if isinstance(inner, dict):
        value = inner
    code, text = value.get("error_code") or value.get("type"), value.get("message")
    return code if isinstance(code, str) else "", text if isinstance(text, str) else ""


def _seconds(headers: Any) -> float | None:
    try:
        return max(0.0, float(headers.get("Retry-After")))
    except (TypeError, ValueError):
        return None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follow no redirect: urllib would send the token to the other host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)
