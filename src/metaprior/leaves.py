"""The type of a model's leaves: NumPy arrays while a model is built, kept and pickled, JAX arrays while it computes."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Array

if TYPE_CHECKING:
    Leaf = Any
else:
    Leaf = Array | np.ndarray
