"""The base of public structs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import NODEFAULT, Struct, StructMeta

if TYPE_CHECKING:
    import inspect

__all__ = ["PublicStruct"]


class _PublicStructMeta(StructMeta):
    @property
    def __signature__(self) -> inspect.Signature:
        """What ``help()`` shows: types are text, since they may be of modules that nothing has imported yet."""
        import inspect

        types: dict[str, Any] = {}
        for base in reversed(self.__mro__):
            types.update(inspect.get_annotations(base))
        fields = self.__struct_fields__
        defaults = (NODEFAULT,) * (len(fields) - len(self.__struct_defaults__)) + self.__struct_defaults__
        return inspect.Signature(
            [
                inspect.Parameter(
                    name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD,
                    default=inspect.Parameter.empty if default is NODEFAULT else default,
                    annotation=types[name],
                )
                for name, default in zip(fields, defaults, strict=True)
            ]
        )


class PublicStruct(Struct, metaclass=_PublicStructMeta):
    """A struct that names types of modules which start-up does not import.

    A plain `msgspec.Struct` imports the types of its fields when it is asked for its signature, so that ``help()``
    fails with a NameError.
    """
