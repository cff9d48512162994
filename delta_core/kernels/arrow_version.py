"""The version of PyArrow, for the few arguments that older versions lack."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["ARROW_VERSION"]

#: The major version.
ARROW_VERSION = int(pa.__version__.split(".")[0])
