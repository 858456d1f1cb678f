"""The slow, obvious twin of the conditionals: every weight has its code written out, every matrix is formed.

NumPy and float64 only; the kernels are written a second time. Weights are ordered as `MetaGPDraw.weights` flattens:
layer after layer, [I, J] by rows, or [B, I, J] where the layer is local. The weight noise belongs to the weight and
not to the input, so it is the same at every row.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from metaprior.kernels import RBF, Constant, Kernel, Periodic
from metaprior.weights import MetaGP


class Gaussian(NamedTuple):
    mean: np.ndarray
    covariance: np.ndarray


class Terms(NamedTuple):
    """One group of layers: A = K_wu K_uu^-1, B = K_ww - A K_uw + noise, q(u), and every weight's scale."""

    projection: np.ndarray
    residual: np.ndarray
    mean_u: np.ndarray
    covariance_u: np.ndarray
    scale: np.ndarray


def _rbf(kernel: RBF, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    scaled = (a[:, None, :] - b[None, :, :]) / np.exp(np.asarray(kernel.log_lengthscale))
    return np.exp(-0.5 * np.sum(scaled**2, axis=-1))


def _periodic(kernel: Periodic, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    turn = np.pi * (a[:, None, :] - b[None, :, :]) / np.exp(np.asarray(kernel.log_period))
    scaled = np.sin(turn) / np.exp(np.asarray(kernel.log_lengthscale))
    return np.exp(-2 * np.sum(scaled**2, axis=-1))


def _constant(kernel: Constant, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.full((len(a), len(b)), np.exp(np.asarray(kernel.log_value)))


_MATRICES: dict[type, Callable] = {RBF: _rbf, Periodic: _periodic, Constant: _constant}


def kernel_matrix(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _MATRICES[type(kernel)](kernel, a, b)


class Codes(NamedTuple):
    """The codes of many weights, one a row: latents at both ends, eps (local), and who the weight is."""

    z_in: np.ndarray
    z_out: np.ndarray
    eps: np.ndarray | None
    name: np.ndarray  # (layer, i, j): equal for the same weight at different inputs

    def kernel(self, model: MetaGP, group: int, other: "Codes") -> np.ndarray:
        sparse_gp = model.sparse_gps[group]
        k = kernel_matrix(sparse_gp.kernel_in, self.z_in, other.z_in)
        k = k * kernel_matrix(sparse_gp.kernel_out, self.z_out, other.z_out)
        return k if self.eps is None else k * kernel_matrix(model.kernel_of(group), self.eps, other.eps)


def weight_codes(model: MetaGP, group: int, z: np.ndarray, eps: np.ndarray | None) -> Codes:
    """Write out the codes of a group's weights, one loop a letter."""
    rows = range(len(eps)) if model.local[group] else [None]
    found = [
        (z[i], z[j], None if n is None else eps[n], (layer, i, j))
        for layer in model.groups[group]
        for n in rows
        for i in model.weight_layers[layer].inputs
        for j in model.weight_layers[layer].outputs
    ]
    z_in, z_out, at, name = (list(column) for column in zip(*found, strict=True))
    return Codes(np.array(z_in), np.array(z_out), np.array(at) if model.local[group] else None, np.array(name))


def weight_variances(model: MetaGP, codes: Codes) -> np.ndarray:
    """sigma_w^2 of every code: std^2 exp(slope_in . z_in + slope_out . z_out)."""
    noise = model.weight_noise
    slope = np.zeros(len(codes.z_in))
    if noise.slope_in is not None:
        slope = codes.z_in @ noise.slope_in + codes.z_out @ noise.slope_out
    return np.exp(2 * noise.log_std + slope)


def scales(model: MetaGP, codes: Codes) -> np.ndarray:
    """exp(log_scale): the first column for weights, the second for biases (the last input unit)."""
    last = {layer: weight_layer.inputs[-1] for layer, weight_layer in enumerate(model.weight_layers)}
    return np.exp([model.log_scale[layer][int(i == last[layer])] for layer, i, _ in codes.name])


def terms(model: MetaGP, group: int, z: np.ndarray, eps: np.ndarray | None = None) -> Terms:
    sparse_gp = model.sparse_gps[group]
    w = weight_codes(model, group, z, eps)
    u = Codes(sparse_gp.code_in, sparse_gp.code_out, sparse_gp.code_aux, np.zeros(0))
    k_uu = u.kernel(model, group, u)
    k_uu = k_uu + model.start_jitter * np.mean(np.diag(k_uu)) * np.eye(len(k_uu))
    k_wu, k_ww = w.kernel(model, group, u), w.kernel(model, group, w)
    projection = k_wu @ np.linalg.inv(k_uu)
    same = np.all(w.name[:, None, :] == w.name[None, :, :], axis=-1)
    residual = k_ww - projection @ k_wu.T + same * weight_variances(model, w)
    root = np.linalg.cholesky(k_uu)
    factor = np.tril(sparse_gp.below_diagonal, -1) + np.diag(np.exp(sparse_gp.log_diagonal))
    covariance_u = root @ factor @ factor.T @ root.T
    return Terms(projection, residual, root @ sparse_gp.mean, covariance_u, scales(model, w))


def _full(t: Terms) -> np.ndarray:
    return t.residual + t.projection @ t.covariance_u @ t.projection.T


def _fitc(t: Terms) -> np.ndarray:
    return np.diag(np.diag(t.residual)) + t.projection @ t.covariance_u @ t.projection.T


def _diag(t: Terms) -> np.ndarray:
    return np.diag(np.diag(_full(t)))


_COVARIANCES: dict[str, Callable[[Terms], np.ndarray]] = {"full": _full, "fitc": _fitc, "diag": _diag}


def posterior(conditional: str, model: MetaGP, z: np.ndarray, eps: np.ndarray | None = None) -> Gaussian:
    """q(w | z) of all weights; groups of layers are independent given z."""
    starts, size = _places(model, 1 if eps is None else len(eps))
    mean, covariance = np.zeros(size), np.zeros((size, size))
    for group, layers in enumerate(model.groups):
        t = terms(model, group, z, eps)
        place = np.concatenate([starts[layer] for layer in layers])
        mean[place] = t.scale * (t.projection @ t.mean_u)
        covariance[np.ix_(place, place)] = np.outer(t.scale, t.scale) * _COVARIANCES[conditional](t)
    return Gaussian(mean, covariance)


def prior_covariance(model: MetaGP, z: np.ndarray, eps: np.ndarray | None = None) -> np.ndarray:
    """K_ww + sigma_w^2 I with the layers' scales: p(w | z) has it, whatever the inducing codes."""
    starts, size = _places(model, 1 if eps is None else len(eps))
    covariance = np.zeros((size, size))
    for group, layers in enumerate(model.groups):
        w = weight_codes(model, group, z, eps)
        same = np.all(w.name[:, None, :] == w.name[None, :, :], axis=-1)
        place, scale = np.concatenate([starts[layer] for layer in layers]), scales(model, w)
        k = w.kernel(model, group, w) + same * weight_variances(model, w)
        covariance[np.ix_(place, place)] = np.outer(scale, scale) * k
    return covariance


def layer_places(model: MetaGP, num_rows: int) -> list[np.ndarray]:
    """Where every layer's weights stand in the flat vector, in the layer's own shape."""
    places = _places(model, num_rows)[0]
    local = {layer: model.local[group] for group, layers in enumerate(model.groups) for layer in layers}
    shapes = [(len(w.inputs), len(w.outputs)) for w in model.weight_layers]
    return [
        place.reshape((num_rows, *shapes[layer]) if local[layer] else shapes[layer])
        for layer, place in enumerate(places)
    ]


def pushing(model: MetaGP, layer: int, h: np.ndarray) -> np.ndarray:
    """[B, J, W]: the matrices that take all weights, flat, to a layer's pre-activations at activations h."""
    places, size = layer_places(model, len(h)), _places(model, len(h))[1]
    place = np.broadcast_to(places[layer], (len(h), *places[layer].shape[-2:]))
    out = np.zeros((len(h), place.shape[2], size))
    for n, i, j in np.ndindex(*place.shape):
        out[n, j, place[n, i, j]] = h[n, i]
    return out


def _places(model: MetaGP, num_rows: int) -> tuple[list[np.ndarray], int]:
    local = {layer: model.local[group] for group, layers in enumerate(model.groups) for layer in layers}
    sizes = [w.num_weights * (num_rows if local[layer] else 1) for layer, w in enumerate(model.weight_layers)]
    ends = np.cumsum([0, *sizes])
    return [np.arange(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)], int(ends[-1])
