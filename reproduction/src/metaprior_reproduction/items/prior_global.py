"""Figure 2: functions of a network before any data, for the same latents and two lengthscales of the weight kernel."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from metaprior import kernels, prior
from metaprior_reproduction.parts.figures import arrays_of, drawable, functions_panel, panels
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict
from metaprior_reproduction.parts.methods import as_float32
from metaprior_reproduction.parts.verdicts import clearly, is_above, said, summarised

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRESETS = {
    "paper": {
        "seeds": 20,
        "sizes": [1, 20, 10, 1],
        "lengthscales": [0.8, 3.0],
        "num_points": 200,
        "num_functions": 400,
        "num_drawn": 40,
    },
    "smoke": {
        "seeds": 1,
        "sizes": [1, 20, 10, 1],
        "lengthscales": [0.8, 3.0],
        "num_points": 50,
        "num_functions": 40,
        "num_drawn": 40,
    },
}


def methods(config: Config) -> list[str]:
    """Return one method per lengthscale, the smallest first."""
    return [f"lengthscale {value:g}" for value in config["lengthscales"]]


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Draw functions given latents that depend on the seed and are the same for every lengthscale."""
    return [_outcome(config, float(method.removeprefix("lengthscale ")), seed) for seed in seeds]


def _outcome(config: Config, lengthscale: float, seed: int) -> Outcome:
    sizes, kernel = config["sizes"], kernels.RBF(lengthscale)
    x, latents = np.linspace(-1, 1, config["num_points"]), prior.draw_latents(sizes, 2, seed)
    functions = prior.draw_functions(
        sizes, x, latents, weight_kernel=kernel, num_functions=config["num_functions"], random_state=seed
    )[..., 0]
    covariance = prior.weight_covariance(sizes, latents, kernel)
    # the kernel has variance 1, so its covariances are correlations
    between = covariance[np.triu_indices(len(covariance), 1)]
    metrics = {
        "function_std": float(np.sqrt(np.mean(functions.var(axis=0)))),
        "weight_correlation": float(np.mean(np.abs(between))),
    }
    shown = {"x": x, "functions": functions[: config["num_drawn"]], "covariance": covariance}
    return Outcome(metrics, as_float32(shown) if seed == 0 else {})


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw functions for both lengthscales on one scale, and below them both weight kernels."""
    shown = drawable(results)
    figure, axes = panels(2, len(shown), width=4.2, height=3.2)
    functions = axes[0]
    largest = max((float(np.abs(arrays_of(results, method)["functions"]).max()) for method in shown), default=1.0)
    for panel, method in zip(functions, shown, strict=True):
        arrays = arrays_of(results, method)
        functions_panel(panel, arrays["x"], arrays["functions"])
        # linear up to 10, logarithmic beyond: the two spreads differ by a factor of about ten
        panel.set_yscale("symlog", linthresh=10)
        panel.set(title=f"functions, {method}", xlabel="x")
        panel.set_ylim(-1.5 * largest, 1.5 * largest)
    functions[0].set_ylabel("f(x), linear up to 10")
    for panel, method in zip(axes[1], shown, strict=True):
        image = panel.imshow(arrays_of(results, method)["covariance"], vmin=0, vmax=1, cmap="viridis")
        panel.set(title=f"weight kernel, {method}", xlabel="weight", ylabel="weight")
        panel.grid(visible=False)
    if shown:
        figure.colorbar(image, ax=axes[1], label="correlation", aspect=30, pad=0.02)
    return {"prior-global": figure}


def judge(results: Results) -> list[Verdict]:
    """Compare the spread of functions between the two lengthscales, separately for each z."""
    small, *_, large = methods(results.config)
    ratio = summarised(
        np.log(results.values(large, "function_std")) - np.log(results.values(small, "function_std")),
    )
    evidence = (
        f"standard deviation of the functions {said(results.summary(small, 'function_std'), 2)} with {small}, "
        f"{said(results.summary(large, 'function_std'), 2)} with {large}; logarithm of their ratio, z by z, "
        f"{said(ratio, 2)}"
    )
    return [
        clearly(
            "Given the same z, a larger lengthscale gives functions of larger variance.",
            is_above(ratio),
            evidence,
            whose="ours",
        )
    ]


ITEM = Item(
    title="Figure 2: prior functions, global weight kernel",
    claim="Given the same unit latents, a larger lengthscale of the weight kernel gives functions of larger variance.",
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    notes=(
        "The paper names neither the larger lengthscale nor the range of x: 3.0 and [-1, 1] here. Functions are drawn "
        "without observation noise. The figure shows 40 of them for the latents of seed 0; the number is the root of "
        "the variance over draws, averaged over x, for each of the latents drawn."
    ),
)
