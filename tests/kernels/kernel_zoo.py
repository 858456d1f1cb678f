"""Kernels of every class and of every kind of composition, and points to try them at."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk

from metaprior.kernels import (
    RBF,
    Constant,
    HyperKernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
)

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((6, 2)), RNG.standard_normal((6, 2))
COINCIDENT = np.concatenate([A[:4], A[:2]])
SCALES = np.array([3.0, 0.2])
ARD = (0.7, 1.9)

#: Ours, and the twin: scikit-learn's kernel on the same columns.
PAIRS = {
    "rbf": (RBF(ARD), sk.RBF(ARD)),
    "matern12": (Matern12(ARD), sk.Matern(ARD, nu=0.5)),
    "matern32": (Matern32(ARD), sk.Matern(ARD, nu=1.5)),
    "matern52": (Matern52(ARD), sk.Matern(ARD, nu=2.5)),
    "rational_quadratic_06": (RationalQuadratic(0.8, 0.6), sk.RationalQuadratic(0.8, 0.6)),
    "rational_quadratic_3": (RationalQuadratic(0.8, 3.0), sk.RationalQuadratic(0.8, 3.0)),
    "linear": (Linear(1.0), sk.DotProduct(sigma_0=0.0)),
    "linear_with_variance": (Linear(2.5), 2.5 * sk.DotProduct(sigma_0=0.0)),
    "constant": (Constant(1.7), sk.ConstantKernel(1.7)),
    "scaled": (2.5 * Matern52(ARD), sk.ConstantKernel(2.5) * sk.Matern(ARD, nu=2.5)),
    "sum": (RBF(ARD) + Linear(1.0), sk.RBF(ARD) + sk.DotProduct(sigma_0=0.0)),
    "sum_with_number": (0.5 + RBF(ARD), 0.5 + sk.RBF(ARD)),
    "product": (RBF(ARD) * Matern12(0.9), sk.RBF(ARD) * sk.Matern(0.9, nu=0.5)),
    "tree": (
        (RBF(ARD) + 2.0 * Linear(1.0)) * RationalQuadratic(1.1, 2.0) + Constant(0.3),
        (sk.RBF(ARD) + 2.0 * sk.DotProduct(sigma_0=0.0)) * sk.RationalQuadratic(1.1, 2.0) + 0.3,
    ),
}
#: Kernels that scikit-learn does not have.
OURS = {
    "linear_ard": Linear([0.5, 2.0]),
    "periodic": Periodic([1.3, 2.1], [0.8, 1.5]),
    "active_dims": RBF(0.7).on(1) + Periodic(1.3, 0.8).on(0),
    "active_dims_product": Matern32(0.7).on(1) * Periodic(1.3, 0.8).on(0),
    "nested": 2.0 * (3.0 * RBF(0.7)) + (Matern12(0.6) + (RBF(1.1) * (Linear(2.0) * Constant(3.0))).on(1)),
}
ZOO = {name: ours for name, (ours, _) in PAIRS.items()} | OURS
every_kernel = pytest.mark.parametrize("kernel", ZOO.values(), ids=ZOO.keys())

_matrix = eqx.filter_jit(lambda kernel, a, b: kernel(a, b))


def outer(a, b):
    """A function for `Custom`."""
    return jnp.exp(-jnp.sum(jnp.abs(a[:, None] - b[None]), axis=-1))


def matrix_at(kernel, a, b):
    """Return the cross-matrix in float64."""
    with jax.enable_x64(True):
        return np.asarray(_matrix(kernel.bound_to(a.shape[1]), jnp.asarray(a), jnp.asarray(b)))


def parts_of(kernel, path=""):
    """Return every part with hyper-parameters of its own, by the prefix that its parameters have in `get_params`."""
    own = {path: kernel} if isinstance(kernel, HyperKernel) else {}
    for name, child in kernel.children().items():
        own |= parts_of(child, f"{path}{name}__")
    return own
