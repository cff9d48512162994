import numpy as np
from numpy.typing import NDArray

from delta_core.kernels.arrow_buffers import StringBuffers

def hashes(texts: StringBuffers, secret: NDArray[np.uint64]) -> NDArray[np.uint64]: ...
