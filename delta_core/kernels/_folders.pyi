import numpy as np
from numpy.typing import NDArray

from delta_core.kernels.arrow_buffers import StringBuffers

def entries(folder: bytes, prefix: bytes) -> tuple[bytes, NDArray[np.int64]]: ...
def visit(
    root: bytes, paths: StringBuffers, delete: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...
def hashes(texts: StringBuffers, secret: NDArray[np.uint64]) -> NDArray[np.uint64]: ...
