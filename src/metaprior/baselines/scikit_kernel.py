"""An adapter that makes a kernel of this library a kernel for scikit-learn's Gaussian processes.

theta is the vector of the logarithms of all hyper-parameters that are not fixed, in the order of the kernel's leaves.
JAX computes the matrix and its derivatives in float64: in forward mode one matrix per hyper-parameter, as scikit-learn
expects, and in reverse mode if only a gradient is needed.
"""

import math
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef
from jaxtyping import Array, Float
from sklearn.gaussian_process.kernels import Kernel as ScikitKernel

from metaprior.compilation import compiled, in_float64
from metaprior.kernels import Kernel
from metaprior.types import Leaf

#: The default bounds of a hyper-parameter, in standardised units.
LOWEST, HIGHEST = 1e-5, 1e5
#: Rows are padded to a multiple of this, so that data of different sizes share compiled programs.
ROWS_AT_ONCE = 64


class KernelForScikit(ScikitKernel):
    """A kernel that scikit-learn can evaluate, differentiate and optimise.

    Parameters
    ----------
    kernel : metaprior.kernels.Kernel
        All its hyper-parameters must be known, including periods, and it must be bound to the number of input columns.
    """

    def __init__(self, kernel: Kernel) -> None:
        """Keep the kernel unchanged, as scikit-learn's cloning requires."""
        self.kernel = kernel

    @property
    def theta(self) -> np.ndarray:
        """The logarithms of the hyper-parameters that are not fixed."""
        return _joined([leaf for leaf, free in zip(_leaves(self.kernel), _free(self.kernel), strict=True) if free])

    @theta.setter
    def theta(self, theta: np.ndarray) -> None:
        self.kernel = _moved(self.kernel, np.asarray(theta, np.float64))

    @property
    def bounds(self) -> np.ndarray:
        """The lowest and the highest theta, [P, 2]: the kernel's own bounds, or wide ones if it has none."""
        start = self.theta
        low, high = _end(self.kernel, -np.inf), _end(self.kernel, np.inf)
        low = np.where(np.isfinite(low), low, np.minimum(start, np.log(LOWEST)))
        return np.column_stack([low, np.where(np.isfinite(high), high, np.maximum(start, np.log(HIGHEST)))])

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return k(X, Y) and, with `eval_gradient`, its derivatives by theta, [N, N, P]."""
        a, b = _padded(X), _padded(X if Y is None else Y)
        with in_float64():
            matrix = np.asarray(_matrix(self.kernel, a, b))[: len(X), : len(X if Y is None else Y)].copy()
            if not eval_gradient:
                return matrix
            derivatives = np.asarray(_derivatives(self.kernel, self.theta, a))[:, : len(X), : len(X)]
        return matrix, np.moveaxis(derivatives, 0, 2)

    def pulled_back(self, X: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return sum_nm slope_nm dk(x_n, x_m) / dtheta: the gradient of a function whose derivative by k is `slope`.

        `eval_gradient` and a sum give the same, but with an array of rows x rows x hyper-parameters.
        """
        padding = -len(X) % ROWS_AT_ONCE
        with in_float64():
            moved = _pulled_back(self.kernel, _padded(X), np.pad(slope, ((0, padding), (0, padding))))
        return KernelForScikit(moved).theta

    def diag(self, X: np.ndarray) -> np.ndarray:
        """Return k(x, x) for every row."""
        with in_float64():
            return np.array(_diagonal(self.kernel, _padded(X)))[: len(X)]

    def is_stationary(self) -> bool:
        """Return False, because it is not known for a general kernel."""
        return False

    def __repr__(self) -> str:
        """Show the kernel itself."""
        return repr(self.kernel)


@compiled
def _matrix(kernel: Kernel, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
    return jax.lax.map(lambda rows: kernel(rows, b), _blocks(a)).reshape(len(a), len(b))


@compiled
def _derivatives(kernel: Kernel, theta: Float[Leaf, " P"], x: Float[Leaf, "N D"]) -> Float[Array, "P N N"]:
    def along(direction: Float[Array, " P"]) -> Float[Array, "N N"]:
        return jax.jvp(lambda t: _moved(kernel, t)(x, x), (theta,), (direction,))[1]

    return jax.lax.map(along, jnp.eye(theta.size))


@compiled
def _pulled_back(kernel: Kernel, x: Float[Leaf, "N D"], slope: Float[Leaf, "N N"]) -> Kernel:
    def more(total: Kernel, block: tuple[Array, Array]) -> tuple[Kernel, None]:
        rows, own = block
        moved = jax.vjp(lambda k: k(rows, x), kernel)[1](own)[0]
        return jax.tree.map(jnp.add, total, moved), None

    return jax.lax.scan(more, jax.tree.map(jnp.zeros_like, kernel), (_blocks(x), _blocks(slope)))[0]


def _blocks(rows: Float[Leaf, "N M"]) -> Float[Array, "B R M"]:
    """Return the rows in blocks, so that intermediate arrays of the kernel stay in the processor's cache."""
    return jnp.asarray(rows).reshape(-1, ROWS_AT_ONCE, rows.shape[1])


@compiled
def _diagonal(kernel: Kernel, x: Float[Leaf, "N D"]) -> Float[Array, " N"]:
    return kernel.diagonal(x)


def _moved(kernel: Kernel, theta: Leaf) -> Kernel:
    """Return the kernel at theta. Fixed hyper-parameters are unchanged."""
    leaves, structure = jax.tree.flatten(kernel)
    done = 0
    for place, free in enumerate(_free(kernel)):
        if free:
            shape = np.shape(leaves[place])
            leaves[place] = theta[done : done + math.prod(shape)].reshape(shape)
            done += math.prod(shape)
    return jax.tree.unflatten(structure, leaves)


def _leaves(kernel: Kernel) -> list[np.ndarray]:
    return [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(kernel)]


def _free(kernel: Kernel) -> list[bool]:
    """Return, for every leaf, whether training may move it: a matter of the kernel's settings, not of its values."""
    return _free_of(jax.tree.structure(kernel))


@lru_cache(maxsize=256)
def _free_of(structure: PyTreeDef) -> list[bool]:
    """Return the same for every kernel of a structure; without the cache it is half of the time of a small fit."""
    kernel: Kernel = jax.tree.unflatten(structure, [np.zeros(())] * structure.num_leaves)
    return [bool(np.all(np.isfinite(times))) for times in jax.tree.leaves(kernel.release_times())]


def _end(kernel: Kernel, value: float) -> np.ndarray:
    """Return theta with every hyper-parameter as near to a value as its bounds allow."""
    with in_float64():
        moved = jax.tree.map(lambda leaf: jnp.full(np.shape(leaf), value), kernel).projected()
    return KernelForScikit(moved).theta


def _joined(leaves: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([leaf.ravel() for leaf in leaves]) if leaves else np.zeros(0)


def _padded(x: Any) -> np.ndarray:
    rows = np.asarray(x, np.float64)
    return np.pad(rows, ((0, -len(rows) % ROWS_AT_ONCE), (0, 0)), mode="edge")
