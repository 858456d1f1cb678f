"""Figure 4: the covariance of the weights of a fitted 1-50-1 network, given the latents and after integrating them out.

cov(w) = E_z[cov(w | z)] + cov_z(E[w | z]): even if the first part is diagonal by construction, the second couples
weights that share a unit.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from metaprior.compilation import as_float64, compiled, in_float64
from metaprior.estimators import MetaGPRegressor
from metaprior.random import StandardNormals
from metaprior.weight_gp.independent import IndependentDraw
from metaprior.weights import MetaGP
from metaprior_reproduction.datasets import x_sin_x
from metaprior_reproduction.parts.figures import arrays_of, drawable, label_edges, panels
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict
from metaprior_reproduction.parts.methods import as_float32, fitted
from metaprior_reproduction.parts.verdicts import clearly, is_above, said, summarised

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRESETS = {
    "paper": {
        "seeds": 5,
        "conditionals": ["diag", "full"],
        "num_rows": 50,
        "num_draws": 4000,
        "settings": {"hidden_layer_sizes": [50]},
    },
    "smoke": {
        "seeds": 1,
        "conditionals": ["diag"],
        "num_rows": 20,
        "num_draws": 400,
        "settings": {"hidden_layer_sizes": [6], "n_inducing": 8, "max_iter": 50},
    },
}


def methods(config: Config) -> list[str]:
    """Return the conditionals that are compared."""
    return list(config["conditionals"])


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Fit the global model with a conditional, then draw weights with z drawn and with z at its mean."""
    data = [x_sin_x(config["num_rows"], seed)["train"] for seed in seeds]
    models = fitted(lambda: MetaGPRegressor(conditional=method, output_layer="drawn"), config["settings"], seeds, data)
    return [_outcome(config, model, seed) for model, seed in zip(models, seeds, strict=True)]


def _outcome(config: Config, model: Any, seed: int) -> Outcome:
    rng = np.random.default_rng([seed, 4])
    marginal = drawn_weights(model.model_.weights, config["num_draws"], rng, draw_latents=True)
    conditional = drawn_weights(model.model_.weights, config["num_draws"], rng, draw_latents=False)
    independent = rng.permuted(marginal, axis=0)
    together = sharing_a_hidden_unit(model.model_.network.sizes)
    apart = ~together & ~np.eye(len(together), dtype=bool)
    correlations = {"marginal": correlation(marginal), "conditional": correlation(conditional)}
    metrics = {
        **{f"{name}_correlation": _mean_size(value, together | apart) for name, value in correlations.items()},
        "independent_correlation": _mean_size(correlation(independent), together | apart),
        "same_unit_correlation": _mean_size(correlations["marginal"], together),
        "other_unit_correlation": _mean_size(correlations["marginal"], apart),
    }
    return Outcome(metrics, as_float32(correlations) if seed == 0 else {})


def drawn_weights(weights: MetaGP, num_draws: int, rng: np.random.Generator, *, draw_latents: bool) -> np.ndarray:
    """Return draws of all weights of a global model, [S, W]: layer after layer, each [inputs, outputs] by rows.

    Without `draw_latents`, z stays at its mean.
    """
    sizes, num_weights = weights.sizes(), sum(weight_layer.num_weights for weight_layer in weights.weight_layers)
    counts = (sizes.latents, sizes.weights, sizes.spectral, num_weights)
    normals = [rng.standard_normal((num_draws, count)) for count in counts]
    with in_float64():
        units, shared, spectral, own = map(jnp.asarray, normals)
        units = units if draw_latents else jnp.zeros_like(units)
        noise = StandardNormals(units, shared, spectral, jnp.zeros((num_draws, 1, 0)))
        return np.asarray(_weights(as_float64(weights), noise, own))


@compiled
def _weights(weights: MetaGP, normals: StandardNormals, own: Array) -> Array:
    prepared, nowhere = weights.prepared(), jnp.zeros((1, 1))

    def one(parts: tuple[StandardNormals, Array]) -> Array:
        normals, own = parts
        (draw,) = prepared.draw(normals).draws
        if not isinstance(draw, IndependentDraw):
            return _flat(draw.weights(nowhere, normals.rows))
        moments = [draw.weight_moments(layer, nowhere) for layer in range(len(draw.weight_layers))]
        return _flat([mean for mean, _ in moments]) + jnp.sqrt(_flat([variance for _, variance in moments])) * own

    return jax.lax.map(one, (normals, own), batch_size=50)


def _flat(parts: Sequence[Array]) -> Array:
    return jnp.concatenate([part.ravel() for part in parts])


def correlation(draws: np.ndarray) -> np.ndarray:
    """Return the correlations of the columns of draws [S, W]."""
    centred = draws - draws.mean(axis=0)
    scaled = centred / np.maximum(np.linalg.norm(centred, axis=0), np.finfo(np.float64).tiny)
    return scaled.T @ scaled


def sharing_a_hidden_unit(sizes: Sequence[int]) -> np.ndarray:
    """Return which pairs of different weights of a network with one hidden layer meet in a hidden unit, [W, W]."""
    inputs, hidden, outputs = sizes
    # the hidden unit of every weight; the bias of the last layer has none
    into = np.tile(np.arange(hidden), inputs + 1)
    out = np.repeat([*range(hidden), -1], outputs)
    unit = np.concatenate([into, out])
    return (unit[:, None] == unit) & (unit[:, None] >= 0) & ~np.eye(len(unit), dtype=bool)


def _mean_size(correlations: np.ndarray, where: np.ndarray) -> float:
    return float(np.mean(np.abs(correlations[where])))


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw the marginal correlations, without diagonal, above the conditional ones; one column per conditional."""
    shown = drawable(results)
    figure, axes = panels(2, len(shown), width=3.6, height=3.4)
    for column, method in enumerate(shown):
        for row, kind in enumerate(("marginal", "conditional")):
            values = arrays_of(results, method)[kind].copy()
            if kind == "marginal":
                np.fill_diagonal(values, 0)
            panel = axes[row, column]
            image = panel.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
            panel.grid(visible=False)
            panel.set_title(f"{method}: {'z integrated out' if kind == 'marginal' else 'given z'}")
    label_edges(axes, "weight", "weight")
    if shown:
        figure.colorbar(image, ax=axes, label="correlation", shrink=0.7, aspect=35, pad=0.02)
    return {"weight-covariance": figure}


def judge(results: Results) -> list[Verdict]:
    """Test that correlations are larger than those of independent draws, and larger within a hidden unit."""
    verdicts = []
    for method in results.methods:
        gain, band = (_gain(results, method, *pair) for pair in _PAIRS)
        marginal, chance = (results.summary(method, f"{name}_correlation") for name in ("marginal", "independent"))
        verdicts.append(
            clearly(
                f"{method}: weights are correlated after integrating z.",
                is_above(gain),
                f"mean size of the correlations {said(marginal)}, of draws made independent {said(chance)}; "
                f"given z {said(results.summary(method, 'conditional_correlation'))}",
                whose="as published",
            )
        )
        same, other = (results.summary(method, f"{name}_unit_correlation") for name in ("same", "other"))
        verdicts.append(
            clearly(
                f"{method}: bands stand out, weights that meet in a hidden unit are more correlated than others.",
                is_above(band),
                f"mean size of the correlations {said(same)} within a unit, {said(other)} elsewhere",
                whose="as published",
            )
        )
    return verdicts


_PAIRS = (
    ("marginal_correlation", "independent_correlation"),
    ("same_unit_correlation", "other_unit_correlation"),
)


def _gain(results: Results, method: str, first: str, second: str) -> Any:
    return summarised(results.values(method, first) - results.values(method, second))


ITEM = Item(
    title="Figure 4: marginal and conditional covariance of the weights",
    claim="With a diagonal conditional weights are independent given z, and still show off-diagonal bands after "
    "integrating z.",
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    together=5,
    notes=(
        "The paper does not name the data: 50 rows of x sin x here, tanh units. Correlations are shown, not "
        "covariances: the scales of the layers differ. Given z means z at its posterior mean. The correlations are of "
        "finitely many draws; shuffling every weight's draws gives their size for independent weights."
    ),
)
