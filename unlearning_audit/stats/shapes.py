"""Types of arrays that say their shapes, such as ``Float[np.ndarray, "models samples"]``.

They are written as jaxtyping writes them. Each stands for the array itself, and nothing is checked when code runs.
"""

from typing import Annotated as Bool
from typing import Annotated as Float
from typing import Annotated as Int
from typing import Annotated as Shaped

__all__ = ["Bool", "Float", "Int", "Shaped"]
