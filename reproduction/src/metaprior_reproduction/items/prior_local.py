"""Figure 3: functions before any data when a periodic input kernel modulates the weights; latents as in figure 2."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from metaprior import kernels, prior
from metaprior_reproduction.parts.figures import arrays_of, drawable, functions_panel, panels, view
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict
from metaprior_reproduction.parts.methods import as_float32
from metaprior_reproduction.parts.verdicts import clearly, is_above, said, summarised

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Functions repeat if their periodic parts correlate with themselves, one period later, by more than this.
REPEATS = 0.5
#: Functions are not merely periodic if the best function of the set period leaves more than this share of variance.
NOT_PERIODIC = 0.05
PRESETS = {
    "paper": {
        "seeds": 10,
        "sizes": [1, 20, 10, 1],
        "lengthscales": [0.8, 3.0],
        "periods": [0.1, 0.3],
        "step": 0.005,
        "limit": 1.0,
        "num_functions": 40,
    },
    "smoke": {
        "seeds": 1,
        "sizes": [1, 20, 10, 1],
        "lengthscales": [0.8, 3.0],
        "periods": [0.1, 0.3],
        "step": 0.0125,
        "limit": 0.5,
        "num_functions": 20,
    },
}


def _name(lengthscale: float, period: float) -> str:
    return f"lengthscale {lengthscale:g}, period {period:g}"


def methods(config: Config) -> list[str]:
    """Return one method per lengthscale and period."""
    return [_name(lengthscale, period) for lengthscale in config["lengthscales"] for period in config["periods"]]


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Draw functions, coherent over x, given the latents of figure 2."""
    pairs = {_name(own, period): (own, period) for own in config["lengthscales"] for period in config["periods"]}
    return [_outcome(config, *pairs[method], seed) for seed in seeds]


def _outcome(config: Config, lengthscale: float, period: float, seed: int) -> Outcome:
    sizes, count = config["sizes"], round(config["limit"] / config["step"])
    x = config["step"] * np.arange(-count, count + 1)
    functions = prior.draw_functions(
        sizes,
        x,
        prior.draw_latents(sizes, 2, seed),
        weight_kernel=kernels.RBF(lengthscale),
        input_kernel=kernels.Periodic(period),
        num_functions=config["num_functions"],
        random_state=seed,
    )[..., 0]
    metrics = {
        "function_std": float(np.sqrt(np.mean(functions.var(axis=0)))),
        **repetition(functions, round(period / config["step"])),
    }
    return Outcome(metrics, as_float32({"x": x, "functions": functions}) if seed == 0 else {})


def repetition(functions: np.ndarray, period: int) -> dict[str, float]:
    """Return how functions [S, N] on an even grid repeat; the period must be an even number of points.

    The moving average over one period is subtracted. The rest is correlated with itself one period later
    (`repeats_period`) and half a period later (`repeats_half`). `not_periodic` is the share of the variance that no
    function of this period explains, not even the best one, the mean over cycles. All are means over functions.
    """
    slow = moving_average(functions, period)
    quick = functions[:, period // 2 : functions.shape[1] - period // 2] - slow
    cycles = functions[:, : functions.shape[1] // period * period].reshape(len(functions), -1, period)
    unexplained = np.mean((cycles - cycles.mean(axis=1, keepdims=True)) ** 2, axis=(1, 2))
    return {
        "repeats_period": float(np.mean(_correlation(quick, period))),
        "repeats_half": float(np.mean(_correlation(quick, period // 2))),
        "not_periodic": float(np.mean(unexplained / cycles.var(axis=(1, 2)))),
    }


def moving_average(functions: np.ndarray, width: int) -> np.ndarray:
    """Return averages over `width` steps of the grid by the trapezium rule, [S, N - width] for an even width."""
    weights = np.full(width + 1, 1 / width)
    weights[[0, -1]] /= 2
    return np.stack([np.convolve(row, weights, mode="valid") for row in functions])


def _correlation(functions: np.ndarray, shift: int) -> np.ndarray:
    """Return the correlation of every function with itself `shift` points later."""
    before, after = functions[:, :-shift], functions[:, shift:]
    before, after = (part - part.mean(axis=1, keepdims=True) for part in (before, after))
    return np.sum(before * after, axis=1) / np.sqrt(np.sum(before**2, axis=1) * np.sum(after**2, axis=1))


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw one column per lengthscale and one row per period."""
    lengthscales, periods = results.config["lengthscales"], results.config["periods"]
    figure, axes = panels(len(periods), len(lengthscales), width=6.0, height=2.8)
    for row, period in enumerate(periods):
        for column, lengthscale in enumerate(lengthscales):
            name = _name(lengthscale, period)
            if name in drawable(results):
                arrays = arrays_of(results, name)
                _functions_panel(axes[row, column], arrays["x"], arrays["functions"], period)
                axes[row, column].set_title(f"{name} (vertical lines: one period)")
    for panel in axes[-1]:
        panel.set_xlabel("x")
    for panel in axes[:, 0]:
        panel.set_ylabel("f(x)")
    return {"prior-local": figure}


def _functions_panel(panel: "Axes", x: np.ndarray, functions: np.ndarray, period: float) -> None:
    """Draw the functions, with a line at every period."""
    for mark in period * np.arange(np.ceil(x[0] / period), np.floor(x[-1] / period) + 1):
        panel.axvline(mark, color="0.85", lw=0.8, zorder=0)
    panel.grid(visible=False)
    view(panel, [functions_panel(panel, x, functions)], 0.2)


def judge(results: Results) -> list[Verdict]:
    """Test that functions repeat, that they are not merely periodic, and that the lengthscale sets their variance."""
    config, verdicts = results.config, []
    for name in methods(config):
        one, half = (results.summary(name, f"repeats_{shift}") for shift in ("period", "half"))
        gain = summarised(results.values(name, "repeats_period") - results.values(name, "repeats_half"))
        evidence = f"correlation of the periodic part one period on {said(one)}, half a period on {said(half)}"
        verdicts.append(
            clearly(
                f"Draws repeat with the set period ({name}).",
                is_above(one, REPEATS) and is_above(gain),
                evidence,
                whose="ours",
            )
        )
    shares = {name: results.summary(name, "not_periodic") for name in methods(config)}
    verdicts.append(
        clearly(
            f"Draws are not merely periodic: at least {NOT_PERIODIC:.0%} of their variance is not.",
            all(is_above(share, NOT_PERIODIC) for share in shares.values()),
            "; ".join(f"{name}: {said(share, 2)}" for name, share in shares.items()),
            whose="ours",
        )
    )
    return [*verdicts, *[_of_lengthscale(results, period) for period in config["periods"]]]


def _of_lengthscale(results: Results, period: float) -> Verdict:
    small, *_, large = [_name(value, period) for value in results.config["lengthscales"]]
    ratio = summarised(np.log(results.values(large, "function_std")) - np.log(results.values(small, "function_std")))
    return clearly(
        f"With the larger lengthscale the functions have more variance (period {period:g}).",
        is_above(ratio),
        f"standard deviation {said(results.summary(small, 'function_std'), 2)} with {small}, "
        f"{said(results.summary(large, 'function_std'), 2)} with {large}",
        whose="ours",
    )


ITEM = Item(
    title="Figure 3: prior functions, periodic input kernel",
    claim="Draws repeat with the set period, on top of a part that is not periodic; the weight kernel's lengthscale "
    "still sets their variance.",
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    notes=(
        "The larger lengthscale (3.0), the range of x ([-1, 1]) and the input kernel's own lengthscale (1, on the "
        "circle) are not in the paper. Draws are exact and coherent over x: the covariance over all x and weights is "
        "a Kronecker product."
    ),
)
