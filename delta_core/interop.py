"""Objects for other libraries under their short name; they live in `delta_core.table.interop`."""

from delta_core.table import interop

__getattr__, __dir__ = interop.__getattr__, interop.__dir__
