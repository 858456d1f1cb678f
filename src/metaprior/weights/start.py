"""The starting values of a MetaGP, from its specification, its network and its inputs.

If the output layer is integrated out, the layers below it have anchored codes (`weight_gp.anchored`). If every weight
is drawn, as in the paper, the inducing codes are free and start at codes of real weights (and real inputs). The reason:
the variance of weights that no inducing code explains is noise to the likelihood. Training removes it most quickly by
shrinking the scale, which removes the signal too. The start is computed in NumPy, so that little is compiled for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metaprior.inputs import InputMap, Projection
from metaprior.kernels import RBF, Kernel
from metaprior.latents import UnitLatents
from metaprior.networks import Network, WeightLayer
from metaprior.weight_gp import Anchored, Conditional, Pathwise, SparseGP, WeightNoise
from metaprior.weights.base import switched
from metaprior.weights.mean_field import MeanField
from metaprior.weights.metagp import MetaGP, OutputWeights
from metaprior.weights.mixed import Mixed

#: sigma_w at the start if the output layer is integrated out, relative to the scale of a layer.
INTEGRATED_NOISE = 0.3
#: All weights of a layer are anchored if it has at most so many units per side; each side's covariance is factored.
MOST_UNITS = 1000
#: All weights of layers that share a GP are anchored if there are at most so many; their full covariance is factored.
MOST_WEIGHTS = 600


@dataclass(frozen=True)
class MetaGPSpec:
    """The definition of a MetaGP prior, independent of a network.

    `kernel_in` and `kernel_out` act on the latents of units. If `input_kernel` is None, the model is global; otherwise
    `local_layers` are the layers that use it (negative numbers count from the end, None means all). `weight_gp` is
    "shared" (one GP) or "per_layer". `integrated` means that the output layer is integrated out and the codes of the
    layers below are anchored. With `local_noise` the weight noise of a local output layer follows the input kernel.
    """

    latent_dim: int = 2
    n_inducing: int = 50
    kernel_in: Kernel = RBF()
    kernel_out: Kernel = RBF()
    input_kernel: Kernel | None = None
    projection: Projection | None = None
    local_layers: tuple[int, ...] | None = None
    weight_gp: str = "shared"
    conditional: Conditional = Pathwise()
    heteroscedastic: bool = False
    jitter: float = 1e-4
    integrated: bool = False
    local_noise: bool = False


def layer_groups(num_layers: int, spec: MetaGPSpec) -> tuple[tuple[tuple[int, ...], ...], tuple[bool, ...]]:
    """Return which layers share a GP, and which of these groups are local."""
    chosen = range(num_layers) if spec.local_layers is None else spec.local_layers
    if any(not -num_layers <= layer < num_layers for layer in chosen):
        raise ValueError(
            f"local_layers: expected numbers from 0 to {num_layers - 1}, or negative numbers from the end, because the "
            f"network has {num_layers} layers of weights; got {tuple(chosen)}."
        )
    local = {layer % num_layers for layer in chosen} if spec.input_kernel is not None else set()
    if spec.weight_gp == "per_layer":
        return tuple((layer,) for layer in range(num_layers)), tuple(layer in local for layer in range(num_layers))
    if spec.weight_gp != "shared":
        raise ValueError(f"weight_gp: expected 'shared' (one GP) or 'per_layer'; got {spec.weight_gp!r}.")
    groups = [tuple(layer for layer in range(num_layers) if (layer in local) is kind) for kind in (False, True)]
    return tuple(g for g in groups if g), tuple(kind for g, kind in zip(groups, (False, True), strict=True) if g)


def initial_metagp(
    spec: MetaGPSpec, weight_layers: Sequence[WeightLayer], inputs: np.ndarray, rng: np.random.Generator
) -> MetaGP:
    """Return a MetaGP for layers of a network, with starting values from the standardised inputs [N, D]."""
    weight_layers = renumbered(weight_layers)
    num_units = max(units.stop for weight_layer in weight_layers for units in weight_layer[:2])
    latents = UnitLatents.initial(num_units, spec.latent_dim, rng)
    input_map = InputMap.identity()
    if spec.input_kernel is not None and spec.projection is not None:
        input_map = InputMap.initial(inputs.shape[1], spec.projection, rng)
    aux_dim = input_map.means[-1].shape[0] if input_map.means else inputs.shape[1]
    groups, local = layer_groups(len(weight_layers), spec)
    aux = _projected(input_map, inputs)
    kernels = (spec.kernel_in.bound_to(spec.latent_dim), spec.kernel_out.bound_to(spec.latent_dim))
    output, weight_noise = None, WeightNoise.initial(spec.latent_dim, heteroscedastic=spec.heteroscedastic)
    sparse_gps: tuple[SparseGP | Anchored, ...]
    if spec.integrated:
        weight_noise = WeightNoise.initial(spec.latent_dim, heteroscedastic=spec.heteroscedastic, std=INTEGRATED_NOISE)
        groups, local, output = _without_output(
            len(weight_layers), groups, local, kernels, weight_noise, spec.local_noise
        )
        shared = None if output.group is None else groups[output.group]
        sparse_gps = tuple(
            _anchored(
                spec,
                kernels,
                [weight_layers[layer] for layer in group],
                aux if is_local else None,
                group is shared,
                rng,
            )
            for group, is_local in zip(groups, local, strict=True)
        )
    else:
        sparse_gps = tuple(
            SparseGP.initial(
                kernels,
                _inducing_codes(
                    spec, latents, [weight_layers[layer] for layer in group], aux if is_local else None, rng
                ),
                rng,
            )
            for group, is_local in zip(groups, local, strict=True)
        )
    return MetaGP(
        latents=latents,
        sparse_gps=sparse_gps,
        input_kernel=None if spec.input_kernel is None else spec.input_kernel.bound_to(aux_dim),
        input_map=input_map,
        log_scale=np.array([[-0.5 * np.log(len(w.inputs) - 1), 0.0] for w in weight_layers]),
        weight_noise=weight_noise,
        weight_layers=weight_layers,
        groups=groups,
        local=local,
        conditional=spec.conditional,
        start_jitter=spec.jitter,
        output=output,
    )


def _without_output(
    num_layers: int,
    groups: tuple[tuple[int, ...], ...],
    local: tuple[bool, ...],
    kernels: tuple[Kernel, Kernel],
    noise: WeightNoise,
    local_noise: bool,
) -> tuple[tuple[tuple[int, ...], ...], tuple[bool, ...], OutputWeights]:
    """Return the groups without the output layer, whether each is local, and the prior of the output layer."""
    last = num_layers - 1
    place = next(g for g, group in enumerate(groups) if last in group)
    is_local, alone = local[place], len(groups[place]) == 1
    left = [tuple(layer for layer in group if layer != last) for group in groups]
    kept = tuple((group, kind) for group, kind in zip(left, local, strict=True) if group)
    group = None if alone else [g for g, _ in kept].index(left[place])
    kernel_in, kernel_out = kernels if alone else (None, None)
    output = OutputWeights(kernel_in, kernel_out, noise, last, group, is_local, local_noise)
    return tuple(g for g, _ in kept), tuple(kind for _, kind in kept), output


def _anchored(
    spec: MetaGPSpec,
    kernels: tuple[Kernel, Kernel],
    weight_layers: list[WeightLayer],
    aux: np.ndarray | None,
    shared: bool,
    rng: np.random.Generator,
) -> Anchored:
    """Return anchored values of layers that share a GP: for all weights if there are few, otherwise for some."""
    num_weights = sum(w.num_weights for w in weight_layers)
    is_grid = len(weight_layers) == 1 and not shared and not spec.heteroscedastic
    few = max(map(len, weight_layers[0][:2])) <= MOST_UNITS if is_grid else num_weights <= MOST_WEIGHTS
    if aux is None and few:
        return Anchored.initial(kernels, _all_weights(weight_layers), None, spec.latent_dim, rng, whole=True)
    if aux is not None and spec.n_inducing >= num_weights * len(aux):
        rows_in, rows_out = (np.repeat(side, len(aux)) for side in _all_weights(weight_layers))
        every = np.tile(aux, (num_weights, 1))
        return Anchored.initial(kernels, (rows_in, rows_out), every, spec.latent_dim, rng, whole=False)
    turn, rows_in, rows_out = _chosen_weights(spec.n_inducing, weight_layers, rng, repeat=aux is not None)
    code_aux = None if aux is None else _spread_over_kinds(aux, turn, rng)
    return Anchored.initial(kernels, (rows_in, rows_out), code_aux, spec.latent_dim, rng, whole=False)


def initial_mixed(
    spec: MetaGPSpec,
    network: Network,
    mean_field: Sequence[int],
    inputs: np.ndarray,
    rng: np.random.Generator,
    both: Sequence[int] = (),
) -> Mixed:
    """Return mean-field weights for these layers and a MetaGP for the rest; layers in `both` are the sum of both."""
    others = tuple(layer for layer in range(len(network.weight_layers)) if layer not in mean_field)
    mean_field = sorted({*mean_field, *both})
    all_layers = MeanField.initial(network, rng)
    # An integrated output layer needs functions below it, not pre-activations that each row draws for itself.
    learned = tuple(
        np.array([-0.5 * np.log(len(network.weight_layers[layer].inputs) - 1), 0.0]) for layer in mean_field
    )
    below = switched(
        all_layers,
        means=tuple(all_layers.means[layer] for layer in mean_field),
        log_stds=tuple(all_layers.log_stds[layer] for layer in mean_field),
        by_row=not spec.integrated,
        log_scales=learned if spec.integrated else None,
    )
    metagp = initial_metagp(spec, [network.weight_layers[layer] for layer in others], inputs, rng)
    # The integrated layer is not drawn.
    drawn = others[:-1] if spec.integrated else others
    return Mixed((below, metagp), (tuple(mean_field), drawn))


def renumbered(weight_layers: Sequence[WeightLayer]) -> tuple[WeightLayer, ...]:
    """Return the layers with their units numbered from 0, in the same order."""
    place = {unit: n for n, unit in enumerate(sorted({u for w in weight_layers for side in w[:2] for u in side}))}

    def moved(units: range) -> range:
        return range(place[units[0]], place[units[-1]] + 1)

    return tuple(
        weight_layer._replace(inputs=moved(weight_layer.inputs), outputs=moved(weight_layer.outputs))
        for weight_layer in weight_layers
    )


def _projected(input_map: InputMap, inputs: np.ndarray) -> np.ndarray:
    """Return the inputs mapped by the mean projections, or as they are if there are none."""
    if not input_map.means:
        return inputs
    import jax.numpy as jnp

    return np.asarray(input_map([jnp.asarray(m) for m in input_map.means], jnp.asarray(inputs)))


def _inducing_codes(
    spec: MetaGPSpec,
    latents: UnitLatents,
    weight_layers: list[WeightLayer],
    aux: np.ndarray | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return codes of weights chosen at random, at inputs spread over the data.

    The weights and the biases of every layer get equal numbers of codes. A bias that depends on the input is the
    shortest way from the input kernel to the output, but among thousands of weights it would hardly be chosen.
    """
    turn, rows_in, rows_out = _chosen_weights(spec.n_inducing, weight_layers, rng)
    mean = np.asarray(latents.mean)
    spread = 0.05 * rng.standard_normal((2, spec.n_inducing, spec.latent_dim))
    code_aux = None if aux is None else _spread_over_kinds(aux, turn, rng)
    return mean[rows_in] + spread[0], mean[rows_out] + spread[1], code_aux


def _all_weights(weight_layers: list[WeightLayer]) -> tuple[np.ndarray, np.ndarray]:
    """Return the input unit and the output unit of every weight, in the order of the layers."""
    grids = [np.meshgrid(w.inputs, w.outputs, indexing="ij") for w in weight_layers]
    rows_in, rows_out = (np.concatenate([grid[side].ravel() for grid in grids]) for side in (0, 1))
    return rows_in, rows_out


def _chosen_weights(
    count: int, weight_layers: list[WeightLayer], rng: np.random.Generator, *, repeat: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights chosen at random: the kind of each (weights or biases of a layer), and its two units.

    Without `repeat` no weight is chosen twice, so fewer than `count` are returned if a kind has too few.
    """
    kinds = [kind for w in weight_layers for kind in ((w.inputs[:-1], w.outputs), (w.inputs[-1:], w.outputs))]
    turn = np.arange(count) % len(kinds)
    if not repeat:
        sizes = [len(ins) * len(outs) for ins, outs in kinds]
        picked = [rng.permutation(size)[: int(np.sum(turn == k))] for k, size in enumerate(sizes)]
        turn = np.concatenate([np.full(len(own), k) for k, own in enumerate(picked)])
        place = np.concatenate(picked)
        rows_in = np.array([kinds[k][0][p // len(kinds[k][1])] for k, p in zip(turn, place, strict=True)])
        rows_out = np.array([kinds[k][1][p % len(kinds[k][1])] for k, p in zip(turn, place, strict=True)])
        return turn, rows_in, rows_out
    rows_in = np.array([rng.choice(kinds[k][0]) for k in turn])
    rows_out = np.array([rng.choice(kinds[k][1]) for k in turn])
    return turn, rows_in, rows_out


def _spread_over_kinds(aux: np.ndarray, turn: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an input for every chosen weight; the inputs of each kind are spread over the data."""
    code_aux = np.empty((len(turn), aux.shape[1]))
    for kind in np.unique(turn):
        code_aux[turn == kind] = _spread_rows(aux, int(np.sum(turn == kind)), rng)
    return code_aux


def _spread_rows(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return `count` rows, evenly spaced in rank along a random direction of the data, plus a little noise."""
    order = np.argsort(rows @ rng.standard_normal(rows.shape[1]))
    places = np.linspace(0, len(order) - 1, count + 2)[1:-1] if count < len(order) else np.arange(count) % len(order)
    chosen = rows[order[np.round(places).astype(int)]]
    return chosen + 0.02 * rng.standard_normal(chosen.shape)
