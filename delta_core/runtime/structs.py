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
        """The signature, as ``help()`` shows it: types are text, since nothing may have imported their modules yet."""
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


class PublicStruct(Struct, metaclass=_PublicStructMeta, frozen=True):
    """A frozen struct some of whose types are of modules that start-up does not import.

    The signature of a plain `msgspec.Struct` needs the types themselves, so that ``help()`` fails with a NameError.
    """
