"""Appendix figure: a model is trained on the sinusoid, then only the period of its input kernel is changed."""

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from metaprior.datasets import Split
from metaprior.datasets import sinusoid as data_set
from metaprior.periods import starting_periods
from metaprior_reproduction.parts.figures import arrays_of, legend_below, panels, regression_panel
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict
from metaprior_reproduction.parts.methods import REGRESSORS, curve, fitted
from metaprior_reproduction.parts.verdicts import clearly, is_above, said, summarised

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHOD = "MetaGP-Local[Periodic]"
#: The period of the prediction follows that of the kernel if their relative difference is at most this.
FOLLOWS = 0.1
#: Predictions are made on [-LIMIT, LIMIT].
LIMIT = 4.5
PRESETS = {
    "paper": {
        "seeds": 5,
        "factors": [1.0, 0.5, 0.75, 1.25, 1.5, 2.0],
        "num_train": 100,
        "num_points": 400,
        "settings": {"output_layer": "drawn"},
    },
    "smoke": {
        "seeds": 1,
        "factors": [1.0, 1.5],
        "num_train": 40,
        "num_points": 100,
        "settings": {
            "hidden_layer_sizes": [10],
            "n_inducing": 10,
            "max_iter": 200,
            "n_predict_draws": 16,
            "output_layer": "drawn",
        },
    },
}


def methods(config: Config) -> list[str]:
    """Return the one model."""
    return [METHOD]


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Fit the data of every seed, then predict with the period multiplied by every factor."""
    data = [data_set(seed, num_train=config["num_train"])["train"] for seed in seeds]
    models = fitted(REGRESSORS[method], config["settings"], seeds, data)
    return [_outcome(config, *of_seed) for of_seed in zip(models, data, seeds, strict=True)]


def _outcome(config: Config, model: Any, train: Split, seed: int) -> Outcome:
    x = np.linspace(-LIMIT, LIMIT, config["num_points"])
    found, shown = {"trained_period": float(model.input_kernel_.period[0])}, dict[str, np.ndarray]()
    for factor in config["factors"]:
        arrays = curve(with_period_times(model, factor), x, train)
        mean = np.asarray(arrays["mean"], np.float64)
        found[f"followed_{factor:g}"] = dominant_period(x, mean) / (factor * found["trained_period"])
        shown |= {f"{name}_{factor:g}": array for name, array in arrays.items()}
    return Outcome(found, shown if seed == 0 else {})


def with_period_times(model: Any, factor: float) -> Any:
    """Return the fitted estimator with another period in its input kernel, and nothing else changed."""
    changed = copy.copy(model)
    log_period = np.asarray(model.model_.weights.input_kernel.log_period) + np.log(factor)
    changed.model_ = eqx.tree_at(lambda m: m.weights.input_kernel.log_period, model.model_, log_period)
    return changed


def dominant_period(x: np.ndarray, y: np.ndarray) -> float:
    """Return the period of the sine wave that explains most of y."""
    return float(starting_periods(x[:, None], y[:, None])[0])


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw the trained model first, then the same model with other periods."""
    factors, arrays = results.config["factors"], arrays_of(results, METHOD)
    columns = min(2, len(factors))
    figure, axes = panels(-(-len(factors) // columns), columns, width=4.6, height=2.2, sharex=True, sharey=True)
    period = results.values(METHOD, "trained_period")
    for panel, factor in zip(axes.flat, factors if arrays else [], strict=False):
        ending = f"_{factor:g}"
        own = {name.removesuffix(ending): array for name, array in arrays.items() if name.endswith(ending)}
        set_to = f"period {factor * period[0]:.2f}" + (" (trained)" if factor == 1 else f" ({factor:g} times)")
        regression_panel(panel, own, set_to)
    axes[0, 0].set_ylim(-3, 3)
    for panel in axes[-1]:
        panel.set_xlabel("x")
    for panel in axes[:, 0]:
        panel.set_ylabel("y")
    legend_below(figure, axes[0, 0])
    return {"period-sweep": figure}


def judge(results: Results) -> list[Verdict]:
    """Test, for every factor, that the dominant period of the prediction is the one that was set."""
    verdicts = []
    for factor in results.config["factors"]:
        values = results.values(METHOD, f"followed_{factor:g}")
        miss, ratio = summarised(np.abs(np.log(values))), summarised(values)
        count = int(np.sum(np.abs(values - 1) <= FOLLOWS))
        verdicts.append(
            clearly(
                f"With the period times {factor:g} the prediction's period is the set one, to within {FOLLOWS:.0%}.",
                not is_above(miss, FOLLOWS) and count > 0,
                f"period of the prediction over the set one {said(ratio)}; within {FOLLOWS:.0%} in {count} of "
                f"{len(values)} runs",
                whose="as published",
            )
        )
    return verdicts


ITEM = Item(
    title="Appendix figure: the period of a trained model, changed",
    claim="The variation of the prediction is governed by the input kernel: when only the period is changed, the "
    "prediction's period follows.",
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    together=5,
    notes=(
        "Everything else of the fitted model stays, the inducing codes and q(u) in its whitened form among it. The "
        "period of a prediction is that of the sine wave that explains most of its mean on [-4.5, 4.5]. The factors "
        "are ours."
    ),
)
