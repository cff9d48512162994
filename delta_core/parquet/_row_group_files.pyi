import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

class Files(Buffer):
    def __init__(self, file: NDArray[np.uint8]) -> None: ...
    def ends(self) -> NDArray[np.int64]: ...
