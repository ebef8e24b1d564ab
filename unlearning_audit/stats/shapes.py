"""Types of arrays that say their shapes, such as ``Float[np.ndarray, "models samples"]``.

They are written as jaxtyping writes them. Each stands for the array itself, and nothing is checked when code runs.
"""

from typing import Annotated as Bool
from typing import Annotated as Float
from typing import Annotated as Int
from typing import Annotated as Shaped

import numpy as np

__all__ = ["Bool", "Flags", "Float", "Int", "Mask", "Matrix", "OfModels", "Shaped", "Vector"]

#: Numbers, or yes and no, of n samples.
Vector = Float[np.ndarray, "n"]
Flags = Bool[np.ndarray, "n"]
#: A number, or yes or no, for each model and sample; a number for each model, such as that of its split.
Matrix = Float[np.ndarray, "models samples"]
Mask = Bool[np.ndarray, "models samples"]
OfModels = Int[np.ndarray, "models"]
