"""A plugin's hooks as they are called: what goes wrong in one is reported with plugin and hook."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from msgspec import Struct

from delta_core.errors import did_you_mean
from delta_core.expressions.plugin_functions import Function
from delta_core.kernel import plugins as late_types
from delta_core.kernel.plugins import hookspecs
from delta_core.kernel.plugins.answers import find_misfit, shown
from delta_core.kernel.plugins.hookspecs import PROJECT, RESULTS
from delta_core.kernel.plugins.rules import (
    ActionColumn,
    ChecksumField,
    ColumnEncoding,
    CommitRule,
    CommitTimestamp,
    FileReference,
    ReadRule,
    WriteRule,
)
from delta_core.kernel.protocol.actions import DomainMetadata, Metadata
from delta_core.runtime.plugin_errors import contract_error, plugin_errors
from delta_core.schema.fields import ColumnMap
from delta_core.schema.types import TypeDef

__all__ = ["GuardedHooks", "guarded_hooks", "hook_name", "marked_hooks"]

_MARK = f"{PROJECT}_impl"
#: The type that each hook returns, or of the elements that it returns.
_ANSWERS: Mapping[str, tuple[type, ...]] = {
    "primitive_types": (TypeDef,),
    "functions": (Function,),
    "required_features": (str,),
    "prepare_metadata": (Metadata,),
    "prepare_domains": (DomainMetadata,),
    "accept_type_change": (bool,),
    "column_map": (ColumnMap,),
    "column_encodings": (ColumnEncoding,),
    "read_rules": get_args(ReadRule),
    "commit_timestamps": (CommitTimestamp,),
    "write_rules": get_args(WriteRule),
    "commit_rules": get_args(CommitRule),
    "finish_metadata": (Metadata,),
    "rebase_files": (ActionColumn,),
    "checksum_fields": (ChecksumField,),
    "file_references": (FileReference,),
    "retention_limits": (int,),
    "checkpoint_sidecars": (str,),
    "requires_catalog": (bool,),
}
#: The same, by their names in `delta_core.kernel.plugins`.
_LATE_ANSWERS = {"check_table": "TableCheck", "feature_steps": "FeatureStep", "plan_checkpoint": "CheckpointPlan"}


def marked_hooks(plugin: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions of a plugin that are marked as hooks, by their names in the plugin."""
    found: dict[str, Callable[..., Any]] = {}
    for name in dir(plugin):
        function = None if name.startswith("__") else getattr(plugin, name, None)
        if isinstance(getattr(function, _MARK, None), dict) and inspect.isroutine(function):
            found[name] = function
    return found


class GuardedHooks:
    """The hooks of one plugin, as attributes."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self.__dict__.update(functions)

    def __dir__(self) -> Iterable[str]:
        # pluggy looks at each attribute, with care: at no more than there are hooks
        return self.__dict__


def hook_name(name: str, function: Callable[..., Any]) -> str:
    """Return the hook that a marked function implements."""
    return str(getattr(function, _MARK).get("specname") or name)


def guarded_hooks(plugin: Any, feature: str) -> GuardedHooks:
    """Return a plugin's hooks, each of which reports its errors and wrong answers with the plugin's feature.

    Raises
    ------
    HookContractError
        For a hook that does not exist, or has an argument that its specification lacks.
    """
    guarded = {}
    for name, function in marked_hooks(plugin).items():
        hook = hook_name(name, function)
        if hook not in RESULTS:
            raise contract_error(feature, hook, "", f"does not exist.{did_you_mean(hook, RESULTS)}", plugin)
        known = _arguments(getattr(hookspecs, hook))
        unknown = [p for p in _arguments(function) if p not in known]
        if unknown:
            what = f"takes the argument {unknown[0]!r}; expected some of: {', '.join(known)}."
            raise contract_error(feature, hook, "", what + did_you_mean(unknown[0], known), plugin)
        guarded[name] = _guarded(function, plugin, feature, hook)
    return GuardedHooks(guarded)


def _arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the arguments that a call fills; those with defaults keep them."""
    code = getattr(function, "__code__", None)
    if code is None or inspect.ismethod(function) or hasattr(function, "__wrapped__"):
        found = inspect.signature(function).parameters.values()
        return tuple(p.name for p in found if p.default is p.empty)
    # much faster, and a table waits for it
    return tuple(code.co_varnames[: code.co_argcount - len(function.__defaults__ or ())])


def _guarded(function: Callable[..., Any], plugin: Any, feature: str, hook: str) -> Callable[..., Any]:
    kind = RESULTS[hook]
    is_list = kind == "list" or hook == "checkpoint_sidecars"

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with plugin_errors(feature, f"Hook {hook}", hook, plugin):
            answer = function(*arguments)
            if is_list and isinstance(answer, Iterable) and not isinstance(answer, (str, bytes)):
                answer = list(answer)
        wrong = _wrong_answer(answer, kind, feature, hook)
        if wrong:
            raise contract_error(feature, hook, "", wrong, plugin)
        return answer

    return call


def _types_of(hook: str) -> tuple[type, ...]:
    if hook in _LATE_ANSWERS:
        late = getattr(late_types, _LATE_ANSWERS[hook])
        return get_args(late) or (late,)
    return _ANSWERS[hook]


def _wrong_answer(answer: Any, kind: str, feature: str, hook: str) -> str:
    """Return what is wrong with what a hook returned, empty if nothing is."""
    if kind == "check":
        return "" if answer is None else f"returned {shown(answer)}; expected nothing"
    if answer is None and kind == "single":
        return ""
    if hook == "committer":
        fits = callable(getattr(answer, "commit", None))
        return "" if fits else f"returned {shown(answer)}; expected an object with the method commit(proposal)"
    types = _types_of(hook)
    if kind == "list" or hook == "checkpoint_sidecars":
        return _wrong_list(answer, types, feature)
    if not isinstance(answer, types):
        return f"returned {shown(answer)}; expected {_named(types)}"
    return _wrong_record(answer, feature)


def _wrong_list(answer: Any, types: tuple[type, ...], feature: str) -> str:
    if not isinstance(answer, list):
        return f"returned {shown(answer)}; expected a list or another iterable"
    for part in answer:
        if not isinstance(part, types):
            return f"returned {shown(part)}, which is no rule of it; expected {_named(types)}"
        wrong = _wrong_record(part, feature)
        if wrong:
            return wrong
    return ""


def _named(types: tuple[type, ...]) -> str:
    return " or ".join(t.__name__ for t in types)


def _wrong_record(record: Any, feature: str) -> str:
    if not isinstance(record, Struct):
        return ""
    misfit = find_misfit(record)
    if misfit is not None:
        return f"returned {misfit}"
    if isinstance(record, ActionColumn) and record.action not in ("add", "remove"):
        return f"returned ActionColumn.action={record.action!r}; expected 'add' or 'remove'"
    signed = getattr(record, "feature", feature)
    return "" if signed == feature else f"returned {type(record).__name__}.feature={signed!r}; expected {feature!r}"
