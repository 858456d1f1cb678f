"""Small weight models with nothing at a special value, and their noise: what the tests of several files need."""

import dataclasses
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from metaprior.inputs import InputMap, Projection
from metaprior.kernels import RBF, Kernel
from metaprior.networks import Dense
from metaprior.random import StandardNormals
from metaprior.weight_gp import Conditional, SparseGP, WeightNoise
from metaprior.weights import MetaGP, MetaGPSpec, initial_metagp


class StopWhen:
    """A stop rule that is a function of the history and ends with the last model."""

    best_model = None

    def __init__(self, function: Callable[[dict], bool]) -> None:
        self.function = function

    def should_stop(self, model, history) -> bool:
        return self.function(history)

    def progress(self) -> dict:
        return {}

    def resume(self, progress, best_model) -> None:
        """Nothing to go on from."""


def small_metagp(
    conditional: Conditional,
    sizes: Sequence[int] = (2, 3, 2),
    *,
    input_kernel: Kernel | None = None,
    local_layers: tuple[int, ...] | None = None,
    projection: Projection | None = None,
    weight_gp: str = "shared",
    heteroscedastic: bool = False,
    weight_std: float = 0.3,
    n_inducing: int = 6,
    jitter: float = 1e-10,
    seed: int = 0,
) -> MetaGP:
    """A MetaGP whose q(v), codes, scales and weight noise are all random."""
    rng = np.random.default_rng(seed)
    spec = MetaGPSpec(
        n_inducing=n_inducing,
        kernel_in=RBF([1.8, 2.4]),
        kernel_out=RBF([2.2, 1.6]),
        input_kernel=input_kernel,
        projection=projection,
        local_layers=local_layers,
        weight_gp=weight_gp,
        conditional=conditional,
        heteroscedastic=heteroscedastic,
        jitter=jitter,
    )
    model = initial_metagp(spec, Dense(sizes).weight_layers, rng.standard_normal((20, sizes[0])), rng)
    slopes = [0.5 * rng.standard_normal(2) for _ in range(2)] if heteroscedastic else [None, None]
    with np.errstate(divide="ignore"):
        weight_noise = WeightNoise(np.asarray(np.log(weight_std)), *slopes)
    log_scale = 0.3 * rng.standard_normal(model.log_scale.shape)
    model = dataclasses.replace(model, log_scale=log_scale, weight_noise=weight_noise)
    return with_sparse_gps(model, lambda m: random_sparse_gp(m, rng))


def with_sparse_gps(model: MetaGP, change: Callable[[SparseGP], SparseGP]) -> MetaGP:
    return dataclasses.replace(model, sparse_gps=tuple(change(m) for m in model.sparse_gps))


def random_sparse_gp(sparse_gp: SparseGP, rng: np.random.Generator) -> SparseGP:
    """The GP with codes that lie well apart and a random q(v)."""
    codes = [rng.standard_normal(c.shape) for c in (sparse_gp.code_in, sparse_gp.code_out)]
    aux = None if sparse_gp.code_aux is None else rng.standard_normal(sparse_gp.code_aux.shape)
    m = sparse_gp.n_inducing
    q = rng.standard_normal(m), np.log(rng.uniform(0.3, 1.2, m)), 0.3 * rng.standard_normal((m, m))
    return SparseGP(*q, sparse_gp.kernel_in, sparse_gp.kernel_out, *codes, aux)


def random_input_map(rng: np.random.Generator) -> InputMap:
    """Two layers from two dimensions to three and back, with a random q(V)."""
    shapes = (3, 2), (2, 3)
    means = tuple(rng.standard_normal(shape) for shape in shapes)
    return InputMap(means, tuple(np.log(rng.uniform(0.2, 1.5, shape)) for shape in shapes), jnp.tanh)


def noise_of(model: MetaGP, num_rows: int, seed: int | None = None) -> StandardNormals:
    """One draw's normals; all zero without a seed."""
    sizes = model.sizes()
    shapes = (sizes.latents,), (sizes.weights,), (sizes.spectral,), (num_rows, sizes.per_row)
    if seed is None:
        return StandardNormals(*[jnp.zeros(s) for s in shapes])
    rng = np.random.default_rng(seed)
    return StandardNormals(*[jnp.asarray(rng.standard_normal(s)) for s in shapes])


def inputs(num_rows: int, num_columns: int, seed: int = 7) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal((num_rows, num_columns)))


def replace(normals: StandardNormals, **parts: jax.Array) -> StandardNormals:
    return dataclasses.replace(normals, **parts)


def flat(weights: Sequence[jax.Array]) -> jax.Array:
    return jnp.concatenate([w.ravel() for w in weights])


@eqx.filter_jit
def drawn_weights(model: MetaGP, x: jax.Array, normals: StandardNormals) -> jax.Array:
    """All weights, flat, for every draw along the noise's leading axis."""
    prepared = model.prepared()
    return jax.vmap(lambda n: flat(prepared.draw(n).weights(x, n.rows)))(normals)


def affine(model: MetaGP, x: jax.Array, spectral: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Weights are mean + map @ normals, z at its mean: return the mean [S, W] and the map [S, W, n].

    An affine function is known from its values at 0 and at the unit vectors. One map for each row of spectral
    normals; a conditional without them has one.
    """
    sizes = model.sizes()
    spectral = np.zeros((1, sizes.spectral)) if spectral is None else spectral
    size = sizes.weights + len(x) * sizes.per_row
    points = np.tile(np.concatenate([np.zeros((1, size)), np.eye(size)]), (len(spectral), 1))
    noise = StandardNormals(
        jnp.zeros((len(points), sizes.latents)),
        jnp.asarray(points[:, : sizes.weights]),
        jnp.asarray(np.repeat(spectral, size + 1, axis=0)),
        jnp.asarray(points[:, sizes.weights :].reshape(len(points), len(x), sizes.per_row)),
    )
    values = np.asarray(drawn_weights(model, x, noise)).reshape(len(spectral), size + 1, -1)
    return values[:, 0], np.swapaxes(values[:, 1:] - values[:, :1], 1, 2)
