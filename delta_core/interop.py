"""Objects for other libraries under their short name; they live in `delta_core.table.interop`."""

from delta_core.table.interop import __all__, __dir__, __getattr__  # noqa: F401
