# distutils: language = c++
"""Metadata of Lance datasets: messages, manifests and sequences of row ids, and filters of indices.

`delta_plugins.lance.wire`, `.fragments`, `.row_ids` and `.index.zones` are its public API.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stddef cimport size_t
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

import numpy as np

from delta_core.api import CorruptTableError, InvalidArgumentError


include "lance/wire.pxi"
include "lance/manifest.pxi"
include "lance/block_filters.pxi"
