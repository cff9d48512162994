"""Checks of arguments that callers pass."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from delta_core.errors import ArgumentInterfaceError, ArgumentRangeError, ArgumentTypeError, InvalidArgumentError

__all__ = [
    "check_kinds",
    "check_names",
    "check_number",
    "check_options",
    "is_of_deltalake",
    "mode_text",
    "path_text",
    "properties_by_position",
]

#: The types of the arguments that calls have in common, by name; None is the default of each.
_KINDS: Mapping[str, type] = {
    **dict.fromkeys(
        (
            "app_id",
            "description",
            "dest",
            "mode",
            "name",
            "partition_strategy",
            "path",
            "schema_mode",
            "source_alias",
            "sql",
            "src",
            "table_name",
            "target_alias",
        ),
        str,
    ),
    **dict.fromkeys(
        (
            "configuration",
            "constraints",
            "custom_metadata",
            "known_sizes",
            "metadata",
            "new_values",
            "properties",
            "session_config",
            "storage_options",
            "updates",
        ),
        Mapping,
    ),
    **dict.fromkeys(
        (
            "accept_root_dir",
            "allow_out_of_range",
            "allow_protocol_versions_increase",
            "as_large_types",
            "collect_stats",
            "dry_run",
            "enforce_retention_duration",
            "flatten",
            "full",
            "ignore_missing_files",
            "merge_schema",
            "missing_dir_ok",
            "protocol_downgrade_allowed",
            "raise_if_key_not_exists",
            "raise_if_not_exists",
            "raise_if_nullable",
            "recursive",
            "streamed_exec",
        ),
        bool,
    ),
}
#: None is no value of these: it is neither true nor false, and a ``dry_run`` of None would delete.
_NEVER_NONE = frozenset(
    (
        *("app_id", "constraints", "dest", "mode", "path", "sql", "src", "table_name"),
        *(name for name, kind in _KINDS.items() if kind is bool),
    )
)
_WORDS = {str: "text", bool: "True or False", Mapping: "a mapping"}
_P = ParamSpec("_P")
_T = TypeVar("_T")


def check_number(
    name: str, found: Any, least: int, *, what: str = "a whole number", kinds: tuple[type, ...] = (int,)
) -> None:
    """Reject an argument that is neither None nor a number of some kinds from ``least`` on.

    Parameters
    ----------
    name : str
        The argument's, for the message.
    found : object
        Its value.
    least : int
        The least number that it may be.
    what : str
        The expected value, for the message.
    kinds : tuple of type
        The types of such a number; a bool is none.

    Raises
    ------
    ArgumentTypeError
        It is no such number.
    InvalidArgumentError
        It is below the least; an ArgumentRangeError if it is negative.
    """
    if found is None:
        return
    is_number = isinstance(found, kinds) and not isinstance(found, bool)
    # NaN is not from any number on
    if not is_number or not found >= least:
        kind = ArgumentTypeError if not is_number else ArgumentRangeError if found < 0 else InvalidArgumentError
        raise kind(f"Found {name}={found!r}, expected {what} from {least} on.")


def mode_text(found: Any) -> Any:
    """Return the name of a mode in lower case, as modes are compared; anything else as it is."""
    return found.lower() if isinstance(found, str) else found


def check_options(found: Any) -> None:
    """Reject storage options that are neither None nor a mapping.

    Raises
    ------
    ArgumentTypeError
        They are something else.
    """
    if found is not None and not isinstance(found, Mapping):
        raise ArgumentTypeError(
            f"Found storage_options of type {type(found).__name__}, expected a dictionary of names to values, such as "
            "{'region': 'eu-central-1'}."
        )


def path_text(found: Any) -> str:
    """Return the path or URI of a table as text.

    Parameters
    ----------
    found : str or path
        The place that a caller passed.

    Raises
    ------
    ArgumentTypeError
        It is neither text nor a path.
    """
    text = os.fspath(found) if isinstance(found, os.PathLike) else found
    if not isinstance(text, str):
        kind = type(found)
        is_small = found is None or isinstance(found, (int, float, bytes))
        shown = repr(found) if is_small else f"an object of type {kind.__module__}.{kind.__qualname__}"
        hint = " Rows are passed after the table's place." if hasattr(found, "__arrow_c_stream__") else ""
        raise ArgumentTypeError(
            f"Found {shown} as the place of a table, expected a path or a URI such as s3://bucket/table.{hint}"
        )
    return text


def check_names(argument: str, given: object) -> None:
    """Reject one text where a list of names is due, which is a sequence of its characters too, and what is no list.

    Raises
    ------
    ArgumentTypeError
        The value is a text, or neither None nor iterable.
    """
    if isinstance(given, (str, bytes)) or not (given is None or isinstance(given, Iterable)):
        raise ArgumentTypeError(f"Found {argument}={given!r}, expected a list of names.")


def is_of_deltalake(value: object, name: str | None = None) -> bool:
    """Return whether a value is an object of the `deltalake` package, which is not imported for it.

    Parameters
    ----------
    value : object
        The value.
    name : str, optional
        Of its class; any unless given.
    """
    kind = type(value)
    return kind.__module__.partition(".")[0] == "deltalake" and name in (None, kind.__name__)


def check_kinds(given: Iterable[tuple[str, Any]]) -> None:
    """Reject arguments that are of another type than calls with an argument of that name take.

    Parameters
    ----------
    given : iterable of (str, object)
        The names of arguments and their values; other names pass, and so does None, but for what is true or
        false.

    Raises
    ------
    ArgumentTypeError
        One is of another type.
    """
    for name, value in given:
        kind = _KINDS.get(name)
        if kind is None or isinstance(value, kind) or (value is None and name not in _NEVER_NONE):
            continue
        # the class of NumPy's truth values is named so, with the underscore before NumPy 2
        if kind is bool and type(value).__name__ in ("bool", "bool_"):
            continue
        # a value of storage options may be a secret
        shown = (
            f"={value!r}" if value is None or isinstance(value, (int, float)) else f" of type {type(value).__name__}"
        )
        # a program may take a value that has no items by either
        error = ArgumentInterfaceError if kind is Mapping else ArgumentTypeError
        raise error(f"Found {name}{shown}, expected {_WORDS[kind]}.")


def properties_by_position(*names: str, most: int | None = None) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Let callers pass arguments that are by name only by position too, after the others, as ``deltalake`` does.

    Such a call warns that it is deprecated. The types of all arguments are checked, by `check_kinds`.

    Parameters
    ----------
    *names : str
        The arguments, in the order of their positions.
    most : int, optional
        How many arguments the function takes by position itself; by default all that it can.
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        own: int = function.__code__.co_argcount if most is None else most
        order = function.__code__.co_varnames[:own]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> _T:
            check_kinds(zip(order, args, strict=False))
            check_kinds(kwargs.items())
            extra = args[own:]
            if not extra:
                return function(*args, **kwargs)
            name = function.__name__
            if len(extra) > len(names):
                raise TypeError(f"{name} takes {len(names)} arguments after its own by position, not {len(extra)}.")
            import warnings

            warnings.warn(
                f"{name} takes {', '.join(names[: len(extra)])} by name; by position they are deprecated.",
                DeprecationWarning,
                stacklevel=2,
            )
            for argument, value in zip(names, extra, strict=False):
                if kwargs.get(argument) is not None:
                    raise TypeError(f"{name} got {argument} by position and by name.")
                kwargs[argument] = value
            return function(*args[:own], **kwargs)

        return call

    return decorate
