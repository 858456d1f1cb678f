"""The slow, obvious twin of the integrated output layer, and the small cases that its tests draw.

Every output weight is written out at every row, w_io(x) = s_i (f(z_i, z_o, x) + sigma_w eps_io). The covariance of all
of them follows from their codes, is conditioned on the values of the same GP that were drawn below, and is pushed
through the activations. Values of functions are ordered output after output.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy import stats

from dense import kernel_matrix
from metaprior.compilation import _options
from metaprior.inputs import Projection
from metaprior.kernels import RBF, Kernel, Periodic
from metaprior.kernels.compose import Product, Sum
from metaprior.likelihoods import Gaussian
from metaprior.networks import Dense
from metaprior.output_layer import FunctionGP
from metaprior.output_layer.base import Batch
from metaprior.weight_gp import Conditional, Pathwise, WeightNoise
from metaprior.weights import MetaGP, MetaGPSpec, initial_metagp
from small import noise_of

JITTER = 1e-10
#: Layers, and what the specification adds.
CASES = {
    "one GP": ((2, 3, 2), {"heteroscedastic": True}),
    "GP per layer": ((2, 4, 1), {"weight_gp": "per_layer"}),
    "local output": (
        (2, 3, 1),
        {"input_kernel": RBF([1.2, 0.9]), "local_layers": (-1,), "projection": Projection((2,), "tanh")},
    ),
    "all local, one GP": ((2, 3, 2), {"input_kernel": RBF([1.5, 2.0]) + 0.4}),
    "classes": (
        (2, 4, 3),
        {"weight_gp": "per_layer", "input_kernel": RBF(1.7), "local_layers": (-1,), "local_noise": True},
    ),
    "all local, GP per layer": (
        (2, 2, 3, 2),
        {"input_kernel": RBF(1.5) * Periodic(2.5, 1.1), "weight_gp": "per_layer"},
    ),
}
ALL = np.random.default_rng(7).standard_normal((10, 2))
OLD, NEW, FIRST = slice(0, 7), slice(7, 10), slice(0, 3)
X, X_NEW = ALL[OLD], ALL[NEW]
NOISE = np.array([0.3, 0.25, 0.4])


def quickly(function: Callable) -> Callable:
    """Compile: what runs once had better compile quickly than run quickly."""

    @functools.cache
    def program() -> Callable:
        return eqx.filter_jit(function, compiler_options={**_options(), "xla_backend_optimization_level": 0})

    return lambda *arguments: program()(*arguments)


def integrated_metagp(
    sizes: tuple[int, ...],
    conditional: Conditional = Pathwise(8, 8),  # noqa: B008
    *,
    jitter: float = JITTER,
    weight_std: float = 0.4,
    **options,
) -> MetaGP:
    """A MetaGP below an integrated output layer with nothing at a special value; the output has a noise of its own."""
    rng = np.random.default_rng(0)
    kernels = {"kernel_in": RBF([1.8, 2.4]), "kernel_out": RBF([2.2, 1.6])}
    spec = MetaGPSpec(n_inducing=6, conditional=conditional, jitter=jitter, integrated=True, **kernels, **options)
    model = initial_metagp(spec, Dense(sizes).weight_layers, rng.standard_normal((20, sizes[0])), rng)
    slopes = [0.5 * rng.standard_normal(2) for _ in range(2)] if spec.heteroscedastic else [None, None]
    with np.errstate(divide="ignore"):
        noises = [WeightNoise(np.asarray(np.log(std)), *slopes) for std in (weight_std, 0.6)]
    sparse_gps = []
    for m in model.sparse_gps:
        count = m.n_inducing
        below = None if m.below_diagonal is None else 0.2 * rng.standard_normal((count, count))
        aux = None if m.code_aux is None else rng.uniform(-3, 3, m.code_aux.shape)
        spread = np.log(rng.uniform(0.3, 1.2, count))
        sparse_gps.append(dataclasses.replace(m, log_diagonal=spread, below_diagonal=below, code_aux=aux))
    return dataclasses.replace(
        model,
        log_scale=0.3 * rng.standard_normal(model.log_scale.shape),
        weight_noise=noises[0],
        output=dataclasses.replace(model.output, weight_noise=noises[1]),
        sparse_gps=tuple(sparse_gps),
    )


@quickly
def _drawn(weights, noise, network):
    """What the library says of one draw: the process, the weights below at all rows, the moments of the prior."""
    gp = FunctionGP.of(weights.prepared().draw(noise), network)
    old, new, none = gp.rows(X), gp.rows(X_NEW), jnp.zeros((len(ALL), 0))
    moments = gp.prior.mean(old), gp.prior.covariance(new, old), gp.prior.own_covariance(new)
    return gp, gp.draw.weights(jnp.asarray(ALL), none), moments


class Setting(NamedTuple):
    """One draw of a case: the process, the moments of its prior, its twin, and targets."""

    gp: FunctionGP
    prior: tuple
    written: "Written"
    y: np.ndarray

    @classmethod
    def of(cls, case: str) -> "Setting":
        sizes, options = CASES[case]
        weights = integrated_metagp(sizes, **options)
        gp, below, prior = _drawn(weights, noise_of(weights, 0, seed=1), Dense(sizes))
        y = np.random.default_rng(2).standard_normal(len(X) * sizes[-1])
        return cls(gp, prior, written_out(weights, gp, below), y)

    @property
    def dense(self) -> "Functions":
        return Functions(self.written.push @ self.written.mean, self.written.covariance_of_functions)

    @property
    def noise(self) -> np.ndarray:
        return np.repeat(NOISE[: self.gp.prior.num_outputs], len(X))

    @property
    def likelihood(self) -> Gaussian:
        return Gaussian(np.log(NOISE[: self.gp.prior.num_outputs]))

    @property
    def evidence(self) -> float:
        covariance = self.dense.block(OLD, OLD) + np.diag(self.noise**2)
        return stats.multivariate_normal(self.dense.mean_at(OLD), covariance).logpdf(self.y)

    def batch(self, padded: bool) -> Batch:
        """The rows at X, with two rows of nonsense among them or not."""
        x, y, weight = X, self.y.reshape(-1, len(X)).T, np.ones(len(X))
        if padded:
            x, y, weight = (np.insert(a, [4, 4], b, axis=0) for a, b in ((x, 0), (y, np.nan), (weight, 0)))
        return Batch(jnp.asarray(x), jnp.asarray(y), jnp.asarray(weight))


class Written(NamedTuple):
    """All output weights at all rows: their mean, their covariance, and the matrix that takes them to the functions."""

    mean: np.ndarray
    covariance: np.ndarray
    push: np.ndarray

    @property
    def covariance_of_functions(self) -> np.ndarray:
        return self.push @ self.covariance @ self.push.T

    @property
    def root(self) -> np.ndarray:
        values, vectors = np.linalg.eigh(self.covariance)
        return vectors * np.sqrt(np.maximum(values, 0))


def _matrix(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if isinstance(kernel, Sum):
        return _matrix(kernel.left, a, b) + _matrix(kernel.right, a, b)
    if isinstance(kernel, Product):
        return _matrix(kernel.left, a, b) * _matrix(kernel.right, a, b)
    return kernel_matrix(kernel, a, b)


def _activations(below: list) -> np.ndarray:
    """The last hidden layer, and 1 for its bias unit, from the explicit weights below."""
    h, ones = ALL, np.ones((len(ALL), 1))
    for w in below:
        each = np.broadcast_to(np.asarray(w), (len(ALL), *w.shape[-2:]))
        h = np.tanh(np.einsum("ni,nij->nj", np.concatenate([h, ones], axis=1), each))
    return np.concatenate([h, ones], axis=1)


def written_out(weights: MetaGP, gp: FunctionGP, below: list) -> Written:
    """Write out the output weights given a draw of all that is below."""
    z, output, weight_layer = np.asarray(gp.draw.z), weights.output, weights.weight_layers[-1]
    names = [(n, i, o) for n in range(len(ALL)) for i in weight_layer.inputs for o in weight_layer.outputs]
    rows, units_in, units_out = (np.array(side) for side in zip(*names, strict=True))
    source = output if output.group is None else weights.sparse_gps[output.group]
    eps, aux = ALL, weights.input_kernel if output.local else None
    for v in gp.draw.projections:
        eps = np.tanh(eps @ np.asarray(v).T / np.sqrt(v.shape[1]))

    def covariance(a: tuple, b: tuple) -> np.ndarray:
        k = _matrix(source.kernel_in, a[0], b[0]) * _matrix(source.kernel_out, a[1], b[1])
        return k if aux is None else k * _matrix(aux, a[2], b[2])

    def noise(own: WeightNoise, z_in: np.ndarray, z_out: np.ndarray) -> np.ndarray:
        slope = np.zeros(len(z_in)) if own.slope_in is None else z_in @ own.slope_in + z_out @ own.slope_out
        return np.exp(2 * own.log_std + slope)

    codes = z[units_in], z[units_out], eps[rows]
    mean, prior = np.zeros(len(names)), covariance(codes, codes)
    if output.group is not None:
        u = np.asarray(gp.draw.own[output.group].values)
        known = z[list(source.units_in)], z[list(source.units_out)], source.code_aux
        k_uu = covariance(known, known) + source.whole * np.diag(noise(weights.weight_noise, *known[:2]))
        k_uu = k_uu + JITTER * np.mean(np.diag(k_uu)) * np.eye(len(u))
        projection = np.linalg.solve(k_uu, covariance(known, codes)).T
        mean, prior = projection @ u, prior - projection @ covariance(known, codes)
    same = (units_in[:, None] == units_in) & (units_out[:, None] == units_out)
    if output.local_noise:
        same = same * _matrix(aux, codes[2], codes[2])
    h, push = _activations(below), np.zeros((len(weight_layer.outputs), len(ALL), len(names)))
    for place, (n, i, o) in enumerate(names):
        scale = np.exp(weights.log_scale[-1][int(i == weight_layer.inputs[-1])])
        push[o - weight_layer.outputs[0], n, place] = scale * h[n, i - weight_layer.inputs[0]]
    return Written(mean, prior + same * noise(output.weight_noise, *codes[:2]), push.reshape(-1, len(names)))


class Functions(NamedTuple):
    """The prior of the functions at all rows, and what follows from it."""

    mean: np.ndarray
    covariance: np.ndarray

    def at(self, rows: slice) -> np.ndarray:
        return np.arange(len(self.mean)).reshape(-1, len(ALL))[:, rows].ravel()

    def mean_at(self, rows: slice) -> np.ndarray:
        return self.mean[self.at(rows)]

    def block(self, a: slice, b: slice) -> np.ndarray:
        return self.covariance[np.ix_(self.at(a), self.at(b))]

    @property
    def inducing_gram(self) -> np.ndarray:
        gram = self.block(FIRST, FIRST)
        return gram + JITTER * np.mean(np.diag(gram)) * np.eye(len(gram))

    def observed(self, y: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior at X_NEW after y = f(X) + noise."""
        gain = self.block(NEW, OLD) @ np.linalg.inv(self.block(OLD, OLD) + np.diag(noise**2))
        return self.mean_at(NEW) + gain @ (y - self.mean_at(OLD)), self.block(NEW, NEW) - gain @ self.block(OLD, NEW)

    def induced(self, y: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior of Titsias (2009) there, with the first rows as inducing rows."""
        scaled, cross = self.block(FIRST, OLD) / noise, self.block(NEW, FIRST)
        small = np.linalg.inv(self.inducing_gram + scaled @ scaled.T)
        mean = self.mean_at(NEW) + cross @ small @ scaled @ ((y - self.mean_at(OLD)) / noise)
        return mean, self.block(NEW, NEW) - cross @ (np.linalg.inv(self.inducing_gram) - small) @ cross.T


def by_row(covariance: np.ndarray) -> np.ndarray:
    """Return every new row's own covariance of outputs."""
    parts = covariance.reshape(-1, 3, len(covariance) // 3, 3)
    return np.stack([parts[:, n, :, n] for n in range(3)])


def random_gram(size: int, seed: int) -> np.ndarray:
    """Return a well-conditioned covariance."""
    root = np.random.default_rng(seed).standard_normal((size, size))
    return root @ root.T / size + 0.1 * np.eye(size)
