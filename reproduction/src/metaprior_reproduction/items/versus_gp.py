"""An item of our own: networks and an exact GP with the same kernel forecast the last part of real series."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior import kernels
from metaprior.baselines import ExactGPRegressor
from metaprior.datasets import Split
from metaprior.estimators import MetaGPRegressor
from metaprior.kernels import Kernel
from metaprior.plots.style import DATA, DRAWS, MEAN
from metaprior_reproduction.datasets import series
from metaprior_reproduction.parts.figures import arrays_of, label_edges, legend_below, panels
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict, Whose
from metaprior_reproduction.parts.methods import AS_PUBLISHED, as_float32, error_and_nll, fitted
from metaprior_reproduction.parts.verdicts import Word, is_above, is_below, paired, said, summarised

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The kernel of every series, for both methods, with time in years. Everything is learned; given values are starts.
KERNELS: Mapping[str, Callable[[], Kernel]] = {
    "co2": lambda: 1.0 * kernels.RBF() + 1.0 * kernels.Periodic(1.0),
    "airline": lambda: 1.0 * kernels.RBF() + 1.0 * kernels.Periodic(1.0),
    "sunspots": lambda: kernels.RBF(30.0) * kernels.Periodic(11.0),
    "min-temperatures": lambda: 1.0 * kernels.RBF() + 1.0 * kernels.Periodic(1.0),
}
#: What the values of every series are.
UNITS = {
    "co2": "CO2 (ppm)",
    "airline": "passengers (1000)",
    "sunspots": "sunspots",
    "min-temperatures": "temperature (°C)",
}
METAGP, AUTO, PUBLISHED, GP = "MetaGP-Local", "MetaGP (auto)", "MetaGP-Local (as published)", "Exact GP"
#: With "auto" the network finds its kernel itself. The others have the kernel of the series.
ESTIMATORS: Mapping[str, Callable[[Kernel], Any]] = {
    METAGP: lambda kernel: MetaGPRegressor(input_kernel=kernel),
    AUTO: lambda kernel: MetaGPRegressor(),
    PUBLISHED: lambda kernel: MetaGPRegressor(input_kernel=kernel, **AS_PUBLISHED),
    GP: lambda kernel: ExactGPRegressor(kernel),
}
WHOSE: Mapping[str, Whose] = {METAGP: "ours", AUTO: "ours", PUBLISHED: "as published"}
#: A forecast does not agree if the network fits the known values worse than this: an RMSE so many times that of the
#: GP, or an NLL so many nats above. A network that has lost the season can be right about the next years by chance.
TIMES, NATS = 1.5, 0.5

PRESETS: dict[str, Config] = {
    "paper": {
        "seeds": 5,
        "series": ["co2", "airline", "sunspots", "min-temperatures"],
        "num_rows": 400,
        "horizon": 0.2,
        "shift": 0.05,
        "hidden_layer_sizes": [50],
        "metagp_steps": 3000,
        "gp_steps": 200,
    },
    "smoke": {
        "seeds": 1,
        "series": ["airline"],
        "num_rows": 40,
        "horizon": 0.2,
        "shift": 0.05,
        "hidden_layer_sizes": [10],
        "metagp_steps": 100,
        "gp_steps": 5,
    },
}


def methods(config: Config) -> list[str]:
    """Return every method for every series."""
    return [f"{name} {method}" for name in config["series"] for method in ESTIMATORS]


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Fit the first part of a series and forecast the next; every seed starts its forecast at another time."""
    name, estimator = method.split(" ", 1)
    rows = thinned(Split(*series(name)), config["num_rows"])
    parts = [forecast_split(rows, config["horizon"], seed * config["shift"]) for seed in seeds]
    settings = {**config, "max_iter": config["gp_steps" if estimator == GP else "metagp_steps"]}
    models = fitted(lambda: ESTIMATORS[estimator](KERNELS[name]()), settings, seeds, [known for known, _ in parts])
    return [_outcome(*own) for own in zip(models, parts, seeds, strict=True)]


def thinned(rows: Split, most: int) -> Split:
    """Return at most `most` rows, chosen evenly over the series."""
    keep = np.unique(np.round(np.linspace(0, len(rows.y) - 1, min(most, len(rows.y)))).astype(int))
    return Split(rows.X[keep], rows.y[keep])


def forecast_split(rows: Split, horizon: float, shift: float) -> tuple[Split, Split]:
    """Return the known rows and the rows to forecast: `horizon` of all rows, which end `shift` before the last one.

    Both are fractions of the number of rows.
    """
    end = len(rows.y) - round(shift * len(rows.y))
    begin = end - round(horizon * len(rows.y))
    if begin < 2:
        raise ValueError(
            f"forecast_split: expected at least 2 rows before the forecast; {len(rows.y)} rows less a horizon of "
            f"{horizon:g} and a shift of {shift:g} leave {max(begin, 0)}: take fewer seeds or a shorter horizon."
        )
    return Split(rows.X[:begin], rows.y[:begin]), Split(rows.X[begin:end], rows.y[begin:end])


def _outcome(model: Any, parts: tuple[Split, Split], seed: int) -> Outcome:
    known, ahead = parts
    metrics = {**error_and_nll(model, ahead), **error_and_nll(model, known, "fit_")}
    return Outcome(metrics, _shown(model, known, ahead) if seed == 0 else {})


def _shown(model: Any, known: Split, ahead: Split) -> dict[str, np.ndarray]:
    x = np.linspace(known.X[0, 0], ahead.X[-1, 0], 600)
    mean, std = model.predict(x[:, None], return_std=True)
    return {
        "x": x,  # times stay in float64: near the year 2000, float32 is only exact to an hour
        **as_float32({"mean": mean, "std": std, "known_y": known.y, "ahead_y": ahead.y}),
        "known_x": known.X[:, 0],
        "ahead_x": ahead.X[:, 0],
    }


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw one row per series and one column per method: known values, the forecast with its 95 % interval, truth."""
    names = results.config["series"]
    figure, axes = panels(len(names), len(ESTIMATORS), width=3.3, height=2.0, sharex="row", sharey="row")
    for line, name in zip(axes, names, strict=True):
        for panel, method in zip(line, ESTIMATORS, strict=True):
            forecast_panel(panel, arrays_of(results, f"{name} {method}"))
    for panel, method in zip(axes[0], ESTIMATORS, strict=True):
        panel.set_title(method)
    label_edges(axes, "year", "value")
    for line, name in zip(axes, names, strict=True):
        line[0].set_ylabel(UNITS.get(name, name))
    legend_below(figure, axes[0, 0])
    return {"versus-gp": figure}


def forecast_panel(axes: "Axes", arrays: Mapping[str, np.ndarray]) -> None:
    """Draw known values, the mean of a forecast with its interval of 95 %, and the values to be forecast."""
    x, mean, std = arrays["x"], arrays["mean"], arrays["std"]
    axes.fill_between(x, mean - 1.96 * std, mean + 1.96 * std, color=MEAN, alpha=0.25, lw=0, label="95 % of y")
    axes.plot(x, mean, color=MEAN, lw=1.2, label="mean")
    axes.plot(arrays["known_x"], arrays["known_y"], ".", color=DATA, ms=2, label="known")
    axes.plot(arrays["ahead_x"], arrays["ahead_y"], ".", color=DRAWS, ms=2, label="to be forecast")
    axes.axvline(arrays["known_x"][-1], color="0.5", lw=0.8)
    axes.set_xlim(x[0], x[-1])


def judge(results: Results) -> list[Verdict]:
    """Compare the RMSE and the NLL of every network with those of the GP, series by series."""
    return [
        _verdict(results, name, method, metric)
        for method in WHOSE
        for name in results.config["series"]
        for metric in ("rmse", "nll")
        if results.of(f"{name} {method}")
    ]


def _verdict(results: Results, name: str, method: str, metric: str) -> Verdict:
    ours, gp = (f"{name} {one}" for one in (method, GP))
    difference = paired(results, ours, gp, metric)
    lost = is_lost(results, ours, gp)
    outcome: Word = "worse" if lost or is_above(difference) else "better" if is_below(difference) else "agrees"
    fits = [
        f"{score.upper()} " + " against ".join(said(results.summary(one, f"fit_{score}")) for one in (ours, gp))
        for score in ("rmse", "nll")
    ]
    return Verdict(
        f"{name}: the forecast of {method} is as good as that of an exact GP ({metric.upper()}), and the known values "
        "are fitted as well.",
        outcome,
        f"{method} {said(results.summary(ours, metric))}, exact GP {said(results.summary(gp, metric))}; difference, "
        f"forecast by forecast, {said(difference)}; known values {'lost' if lost else 'fitted'}: {', '.join(fits)}",
        WHOSE[method],
    )


def is_lost(results: Results, ours: str, gp: str) -> bool:
    """Return whether a network fits the known values clearly worse than the GP: it has lost a part of the series."""
    errors = np.log(results.values(ours, "fit_rmse") / results.values(gp, "fit_rmse"))
    return is_above(summarised(errors), np.log(TIMES)) or is_above(paired(results, ours, gp, "fit_nll"), NATS)


ITEM = Item(
    title="Of our own: real series, a local MetaGP against an exact GP with the identical kernel",
    claim=(
        "With the same kernel a network with local weights forecasts as well as the exact GP, and so does a network "
        "that finds its kernel itself; where they are better and where worse is told series by series."
    ),
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    together=5,
    notes=(
        "Kernels, time in years: a RBF + b Periodic(1) for co2 (monthly), airline and min-temperatures; Periodic(11) x "
        "RBF(30) for sunspots (yearly). All hyper-parameters are learned by both, the periods from where they are "
        "given; the GP has a variance beside. Series are thinned evenly to 400 rows. Seed 0 forecasts the last fifth, "
        "every further seed a fifth that ends 5 % of the rows earlier: forecasts overlap, and their standard errors "
        "are smaller than those of independent ones would be. Values are not transformed. `auto` has no kernel given; "
        "`as published` is the paper's inference: every weight drawn, independently given the latents and the inducing "
        "values. A verdict is worse, whatever the forecast, if the known values are fitted with 1.5 times the RMSE of "
        "the GP, or an NLL that is half a nat above: a network that has lost the season is not as good."
    ),
)
