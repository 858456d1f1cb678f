"""The prior: functions and weights before any data (the paper's figures 2 and 3).

Given unit latents z (drawn, or your own), the weights are jointly Gaussian with covariance k_w over their codes. The
draws are exact, on the Kronecker grid of `full`. With an input kernel they are coherent over x.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from metaprior import kernels as _kernels
from metaprior.compilation import compilation_cache, compiled
from metaprior.kernels import Kernel
from metaprior.networks import Dense
from metaprior.networks.activations import Activation
from metaprior.numerics import jittered_cholesky
from metaprior.weight_gp import LayerLatents


def draw_latents(sizes: Sequence[int], latent_dim: int = 2, random_state: int = 0) -> np.ndarray:
    """Draw z ~ N(0, I) for every unit of a dense network with these layer sizes, including the bias units."""
    return np.random.default_rng(random_state).standard_normal((Dense(sizes).num_units, latent_dim))


def weight_covariance(
    sizes: Sequence[int], latents: np.ndarray, weight_kernel: Kernel | str = "rbf", weight_noise: float = 0.0
) -> np.ndarray:
    """Return the covariance of all W weights given z, of shape [W, W].

    Weights are ordered layer by layer, and within a layer by input unit and then by output unit. An entry is
    K_w[(i, j), (i', j')] = k(z_i, z_i') k(z_j, z_j'), plus weight_noise^2 on the diagonal. Time and memory grow with
    W^2, so this is meant for plots of small networks.
    """
    z = _checked_latents(sizes, latents)
    kernel = _kernels.named(weight_kernel, "weight_kernel").bound_to(z.shape[1])
    with jax.enable_x64(True):
        layer_latents = _layer_latents(sizes, z)
        rows_in = jnp.concatenate([jnp.repeat(e.z_in, len(e.z_out), axis=0) for e in layer_latents])
        rows_out = jnp.concatenate([jnp.tile(e.z_out, (len(e.z_in), 1)) for e in layer_latents])
        covariance = kernel(rows_in, rows_in) * kernel(rows_out, rows_out)
        return np.asarray(covariance + weight_noise**2 * jnp.eye(len(rows_in)))


def draw_functions(
    sizes: Sequence[int],
    x: np.ndarray,
    latents: np.ndarray,
    *,
    weight_kernel: Kernel | str = "rbf",
    input_kernel: Kernel | str | None = None,
    activation: str | Activation = "relu",
    num_functions: int = 40,
    weight_noise: float = 0.0,
    scales: Sequence[float] | None = None,
    random_state: int = 0,
) -> np.ndarray:
    """Draw functions from the prior given z.

    Parameters
    ----------
    sizes : sequence of int
        The layer sizes, from input to output.
    x : array of shape (N, D)
        Where the functions are evaluated. It is not standardised: kernels act on it as it is.
    latents : array of shape (units, latent_dim)
        The latents z, from `draw_latents` or your own.
    weight_kernel, input_kernel : Kernel or str
        The kernel on the latents of the two units of a weight, and the kernel on the input (None: global functions).
    activation : str or callable
        The activation of the hidden units.
    num_functions : int
        How many functions are drawn.
    weight_noise : float
        The weight noise sigma_w, relative to the scale of the layer.
    scales : sequence of float, default=None
        One scale per layer, for its weights and biases. None means 1 for all layers, as in the paper.
    random_state : int
        The seed of the draws; the latents are given.

    Returns
    -------
    ndarray of shape (num_functions, N, outputs)
    """
    x = np.asarray(x, np.float64)
    x = x[:, None] if x.ndim == 1 else x
    z = _checked_latents(sizes, latents)
    if x.shape[1] != sizes[0]:
        raise ValueError(f"x: expected {sizes[0]} columns, the size of the input layer; got {x.shape[1]}.")
    kernel = _kernels.named(weight_kernel, "weight_kernel").bound_to(z.shape[1])
    aux = None if input_kernel is None else _kernels.named(input_kernel, "input_kernel").bound_to(x.shape[1])
    network = Dense(sizes, activation)
    layer_scales = np.ones(len(sizes) - 1) if scales is None else np.asarray(scales, np.float64)
    if layer_scales.shape != (len(sizes) - 1,):
        raise ValueError(f"scales: expected {len(sizes) - 1} numbers, one per layer; got {layer_scales.size}.")
    with compilation_cache(), jax.enable_x64(True):
        layer_latents, inputs = _layer_latents(sizes, z), jnp.asarray(x)
        roots = (
            jnp.ones((1, 1)) if aux is None else _root(aux, inputs),
            _root(kernel, jnp.concatenate([e.z_in for e in layer_latents])),
            _root(kernel, jnp.concatenate([e.z_out for e in layer_latents])),
        )
        keys = jax.random.split(jax.random.key(random_state), num_functions)
        return np.asarray(_functions(network, roots, jnp.asarray(layer_scales), weight_noise, inputs, keys))


@compiled
def _functions(
    network: Dense,
    roots: tuple[jax.Array, jax.Array, jax.Array],
    scales: jax.Array,
    weight_noise: jax.Array | float,
    inputs: jax.Array,
    keys: jax.Array,
) -> jax.Array:
    """Draw one function per key. As a module-level function it is not recompiled for other kernels and latents."""
    root_aux, root_in, root_out = roots

    def function(key: jax.Array) -> jax.Array:
        grid_key, noise_key = jax.random.split(key)
        normals = jax.random.normal(grid_key, (root_aux.shape[1], root_in.shape[1], root_out.shape[1]))
        f = jnp.einsum("nk,ia,kab,jb->nij", root_aux, root_in, normals, root_out)
        noise = jax.random.normal(noise_key, f.shape[1:])
        weights = _blocks(f + weight_noise * noise, network, scales)
        layers = [
            lambda h, w=w: jnp.einsum("ni,nij->nj", h, jnp.broadcast_to(w, (len(h), *w.shape[1:]))) for w in weights
        ]
        return network(layers, inputs)

    return jax.lax.map(function, keys)


def _root(kernel: Kernel, points: jax.Array) -> jax.Array:
    return jittered_cholesky(kernel(points, points), jnp.asarray(1e-10, points.dtype))[0]


def _blocks(f: jax.Array, network: Dense, scales: jax.Array) -> list[jax.Array]:
    """Return the block of every layer in the grid over all units."""
    weight_layers = network.weight_layers
    rows = np.cumsum([0, *[len(w.inputs) for w in weight_layers]])
    columns = np.cumsum([0, *[len(w.outputs) for w in weight_layers]])
    return [f[:, rows[l] : rows[l + 1], columns[l] : columns[l + 1]] * scales[l] for l in range(len(weight_layers))]


def _layer_latents(sizes: Sequence[int], z: np.ndarray) -> list[LayerLatents]:
    weight_layers = Dense(sizes).weight_layers
    return [LayerLatents(jnp.asarray(z[list(w.inputs)]), jnp.asarray(z[list(w.outputs)]), w) for w in weight_layers]


def _checked_latents(sizes: Sequence[int], latents: np.ndarray) -> np.ndarray:
    z, num_units = np.asarray(latents, np.float64), Dense(sizes).num_units
    if z.ndim != 2 or z.shape[0] != num_units:
        raise ValueError(
            f"latents: expected one row for each of the {num_units} units (including bias units) of a network "
            f"{tuple(sizes)}; got shape {z.shape}. Use `draw_latents` to draw them."
        )
    return z
