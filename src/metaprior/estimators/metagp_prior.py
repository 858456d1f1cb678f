"""The prior of a MetaGP for given data: from parameters to a specification and its starting values."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from metaprior import kernels
from metaprior.estimators.data_kernel import START_LENGTHSCALE, Standardised, input_kernel_for
from metaprior.estimators.metagp_config import MetaGPConfig
from metaprior.estimators.method import Problem
from metaprior.inputs import Projection
from metaprior.kernels import Kernel
from metaprior.kernels.stationary import Stationary
from metaprior.networks import Dense, WeightLayer
from metaprior.user_warnings import warn_user
from metaprior.weight_gp import Anchored, conditional_named
from metaprior.weights import MetaGP, MetaGPSpec, WeightModel, initial_metagp, initial_mixed
from metaprior.weights.start import layer_groups

#: Relative jitter of the factorisations.
JITTER = {"float32": 1e-4, "float64": 1e-6}
#: The longest lengthscale of the usual kernel on the output unit's latent (whose prior has spread 1) of a classifier.
#: Classes that the prior ties together share their wins far from the data, and a class between two others hardly ever
#: wins there: with no bound the entropy on the far ring of the four-class data falls to 0.93 log 4 and less, with it
#: stays above 0.95.
LONGEST_OUTPUT_LENGTHSCALE = 1.5
#: The median distance of unit latents, in lengthscales, beyond which the prior couples hardly any weights.
FAR = 3.0
#: Inducing codes of a GP, where the user names no number.
NUM_INDUCING = 50


def initial_weights(
    config: MetaGPConfig, network: Dense, problem: Problem, dtype: str, rng: np.random.Generator, *, classes: bool
) -> WeightModel:
    """Return the weight model before training: the MetaGP, alone or beside layers that are mean-field."""
    num_layers = len(network.weight_layers)
    others = config.layers_of_gp(num_layers)
    spec = specification(config, problem, num_layers, dtype, classes=classes)
    _check_local_below(spec, len(others))
    layers = [network.weight_layers[layer] for layer in others]
    spec = dataclasses.replace(spec, n_inducing=_num_inducing(config.n_inducing, spec, layers, problem.num_rows))
    below, both = config.layers_without_gp(num_layers), config.residual(num_layers)
    if below or both:
        return initial_mixed(spec, network, below, problem.x_unit, rng, both)
    return initial_metagp(spec, layers, problem.x_unit, rng)


def specification(config: MetaGPConfig, problem: Problem, num_layers: int, dtype: str, *, classes: bool) -> MetaGPSpec:
    """Return the prior of the layers that have the GP, in standardised units."""
    kernel_in, kernel_out = _weight_kernels(config.weight_kernel, classes=classes)
    projection, integrated = config.projection(), config.is_integrated(num_layers)
    return MetaGPSpec(
        latent_dim=int(config.latent_dim),
        kernel_in=kernel_in,
        kernel_out=kernel_out,
        input_kernel=_input_kernel(config.input_kernel, problem, projection, integrated=integrated),
        projection=projection,
        local_layers=config.local(num_layers),
        weight_gp=config.sharing(num_layers),
        conditional=conditional_named(config.conditional),
        heteroscedastic=config.heteroscedastic_weights,
        jitter=JITTER[dtype],
        integrated=integrated,
        # for classes: weight noise that is the same everywhere carries what the data say to where nothing is known
        local_noise=classes,
    )


def _weight_kernels(asked: Kernel | str | tuple[Any, ...] | None, *, classes: bool) -> tuple[Kernel, Kernel]:
    """Return the kernels of a weight's two ends; where the user names none, RBF, bounded for classes."""
    pair = asked if isinstance(asked, tuple) else (asked,) * 2
    if len(pair) != 2:
        raise ValueError(f"weight_kernel: expected one kernel, or a pair (input unit, output unit); got {pair!r}.")
    bounds = {"lengthscale": (1e-2, LONGEST_OUTPUT_LENGTHSCALE)}
    usual = kernels.RBF(), kernels.RBF(bounds=bounds) if classes else kernels.RBF()
    first, second = (
        own if k is None else kernels.named(k, "weight_kernel") for k, own in zip(pair, usual, strict=True)
    )
    return first, second


def _input_kernel(
    asked: Kernel | Standardised | str | None, problem: Problem, projection: Projection | None, *, integrated: bool
) -> Kernel | None:
    if asked is None:
        return None
    if isinstance(asked, Standardised):
        return asked.kernel
    kernel = kernels.named(asked, "input_kernel")
    if projection is not None:
        _check_projected(kernel)
        return kernel
    kernel = kernel.with_columns(problem.names)
    # rows of D standardised columns lie about sqrt(2 D) apart
    start = float(np.sqrt(problem.x.shape[1])) if integrated else START_LENGTHSCALE
    return input_kernel_for(kernel, problem.x, problem.targets, problem.x_scale, problem.start, start, problem.weight)


def _check_projected(kernel: Kernel) -> None:
    """Raise where a kernel on projected inputs says what only the inputs themselves have."""
    if kernel.unknown_periods():
        raise ValueError("input_kernel: with an input_projection, give the period (in projected units).")
    named = kernel.column_names()
    if named:
        raise ValueError(
            f"input_kernel: with an input_projection it sees projected inputs, which have no names; got the columns "
            f"{named}. Give numbers, such as on(0), or leave the projection out."
        )


def _check_local_below(spec: MetaGPSpec, num_layers: int) -> None:
    chosen = spec.local_layers
    local_below = chosen is None or any(layer not in (-1, num_layers - 1) for layer in chosen)
    if spec.integrated and spec.input_kernel is not None and local_below and spec.conditional.couples_rows:
        raise ValueError(
            "conditional: expected 'pathwise' with local layers below an integrated output layer; 'full' draws the "
            "rows of a call jointly. Take local_layers=(-1,), or output_layer='drawn'."
        )


def _num_inducing(asked: int | str, spec: MetaGPSpec, layers: Sequence[WeightLayer], num_rows: int) -> int:
    """Return the number of inducing codes; no GP needs more than it has codes of weights (at every row)."""
    groups, local = layer_groups(len(layers), spec)
    drawn = range(len(layers) - 1 if spec.integrated else len(layers))
    codes = [
        sum(layers[layer].num_weights for layer in group if layer in drawn) * (num_rows if is_local else 1)
        for group, is_local in zip(groups, local, strict=True)
        if is_local or not spec.integrated  # below an integrated output layer a global layer has them all
    ]
    most = min((count for count in codes if count), default=NUM_INDUCING)
    if asked == "auto":
        return min(NUM_INDUCING, most)
    if any(codes) and int(asked) > most:
        raise ValueError(
            f"n_inducing: {asked} inducing codes are more than there are codes of weights ({most}); give at most "
            f"{most}."
        )
    return int(asked)


def warn_of_far_codes(weights: MetaGP) -> None:
    """Warn where unit latents lie so far apart, in lengthscales, that the prior hardly couples their weights.

    A GP through few inducing codes says nothing of such weights; anchored ones are known each for itself.
    """
    z = np.asarray(weights.latents.mean, np.float64)[:200]
    free = [own for own in weights.sparse_gps if not isinstance(own, Anchored)]
    kernels_of_ends = [kernel for own in free for kernel in (own.kernel_in, own.kernel_out)]
    medians = [_median_distance(z, kernel) for kernel in kernels_of_ends if isinstance(kernel, Stationary)]
    if max(medians, default=0.0) > FAR:
        warn_user(
            f"the median distance of unit latents is {max(medians):.1f} lengthscales: the weights are almost "
            "independent, and the prior shares little between them. A weight_kernel with a longer lengthscale, such as "
            "weight_kernel=kernels.RBF(2.0, bounds={'lengthscale': (1.0, 10.0)}), would share more.",
            once="far codes",
        )


def _median_distance(z: np.ndarray, kernel: Stationary) -> float:
    """Return the median distance of unit latents in lengthscales."""
    scaled = z / np.asarray(kernel.lengthscale)
    distance = np.sqrt(np.sum((scaled[:, None] - scaled[None]) ** 2, axis=-1))
    return float(np.median(distance[np.triu_indices(len(distance), 1)]))
