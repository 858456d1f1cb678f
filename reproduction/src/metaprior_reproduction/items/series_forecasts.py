"""An item of our own: every series of the data sets, its last part forecast by a network, GPs and forecasters."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metaprior import kernels
from metaprior.baselines import ExactGPRegressor
from metaprior.datasets import Split
from metaprior.estimators import MetaGPRegressor
from metaprior.kernels import Kernel
from metaprior.metrics import scores
from metaprior_reproduction.datasets import series
from metaprior_reproduction.items.versus_gp import forecast_panel, forecast_split
from metaprior_reproduction.parts.figures import arrays_of, legend_below, panels
from metaprior_reproduction.parts.forecasters import SeasonalNaive, StatsForecast, package_is_there
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict, Whose
from metaprior_reproduction.parts.methods import as_float32, configured
from metaprior_reproduction.parts.ranking import best, is_level_with_best
from metaprior_reproduction.parts.verdicts import clearly, said

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Recipe(NamedTuple):
    """How a series is prepared: the mean of so many rows is one row, and a season has so many of these."""

    every: int
    season: int


RECIPES = {
    "airline": Recipe(1, 12),
    "nile": Recipe(1, 1),
    "electrical-equipment": Recipe(1, 12),
    "sunspots": Recipe(1, 11),
    "co2": Recipe(1, 12),
    "elnino": Recipe(1, 12),
    "sunspots-monthly": Recipe(3, 44),
    "co2-weekly": Recipe(4, 13),
    "min-temperatures": Recipe(7, 52),
    "max-temperatures": Recipe(7, 52),
    "electricity-victoria": Recipe(2, 24),
    "electricity-france": Recipe(1, 24),
    "yosemite": Recipe(12, 24),
}
AUTO, SEARCHED = "MetaGP (auto)", "MetaGP (kernel search)"
GP, GP_SEARCHED = "Exact GP", "Exact GP (kernel search)"
NAIVE, ETS, ARIMA = "Seasonal naive", "AutoETS", "AutoARIMA"
WHOSE: Mapping[str, Whose] = {
    AUTO: "ours",
    SEARCHED: "ours",
    **dict.fromkeys((GP, GP_SEARCHED, NAIVE, ETS, ARIMA), "baseline"),
}
#: The share of the series on which ours is to be level with the GP of its kernel, and with the best of all.
ENOUGH_GP, ENOUGH = 0.75, 0.5
METRICS = ("rmse", "nll", "crps", "coverage_95")
PRESETS: dict[str, Config] = {
    "paper": {
        "seeds": 5,
        "series": list(RECIPES),
        "methods": list(WHOSE),
        "most_rows": 500,
        "horizon": 0.2,
        "shift": 0.05,
        "search_depth": 3,
        "settings": {},
        "gp_steps": 200,
    },
    "smoke": {
        "seeds": 1,
        "series": ["nile"],
        "methods": [AUTO, GP, NAIVE],
        "most_rows": 40,
        "horizon": 0.2,
        "shift": 0.05,
        "search_depth": 1,
        "settings": {"hidden_layer_sizes": [10], "max_iter": 20, "input_kernel": "rbf"},
        "gp_steps": 5,
    },
}


def methods(config: Config) -> list[str]:
    """Return every method for every series; ETS and ARIMA are left out where their package is not installed."""
    shown = [method for method in config["methods"] if method not in (ETS, ARIMA) or package_is_there()]
    return [f"{name} {method}" for name in config["series"] for method in shown]


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Fit the first part of a series and forecast the next; every seed starts its forecast at another time."""
    name, own = method.split(" ", 1)
    return [_outcome(config, name, own, seed) for seed in seeds]


def prepared(name: str, most_rows: int) -> Split:
    """Return the last rows of a series, each of them the mean of some rows of the file."""
    times, values = series(name)
    every = RECIPES[name].every
    count = len(values) // every
    start = len(values) - every * count
    means = [part[start:].reshape(count, every).mean(axis=1) for part in (times[:, 0], values)]
    return Split(means[0][-most_rows:, None], means[1][-most_rows:])


def _outcome(config: Config, name: str, method: str, seed: int) -> Outcome:
    known, ahead = forecast_split(prepared(name, config["most_rows"]), config["horizon"], seed * config["shift"])
    started = time.process_time()
    model = _fitted(config, name, method, seed, known)
    predicted = model.predict_distribution(ahead.X)
    found = {metric: value for metric, value in scores(predicted, ahead.y).items() if metric in METRICS}
    found["cpu_seconds"] = time.process_time() - started
    if seed:
        return Outcome(found)
    shown = as_float32({"mean": predicted.mean, "std": predicted.std, "known_y": known.y, "ahead_y": ahead.y})
    return Outcome(found, {**shown, "x": ahead.X[:, 0], "known_x": known.X[:, 0], "ahead_x": ahead.X[:, 0]})


def _fitted(config: Config, name: str, method: str, seed: int, known: Split) -> Any:
    season = RECIPES[name].season
    simple: Mapping[str, Callable[[], Any]] = {
        NAIVE: lambda: SeasonalNaive(season),
        ETS: lambda: StatsForecast("AutoETS", season),
        ARIMA: lambda: StatsForecast("AutoARIMA", season),
    }
    if method in simple:
        return simple[method]().fit(known.X, known.y)
    key = json.dumps(dict(config), sort_keys=True)
    if method == AUTO:
        return _automatic(key, name, seed)
    if method == GP:
        return _gp(config, _automatic(key, name, seed).input_kernel_, seed).fit(known.X, known.y)
    kernel = _searched(key, name, seed)
    if method == GP_SEARCHED:
        return _gp(config, kernel, seed).fit(known.X, known.y)
    return configured(MetaGPRegressor(), {**config["settings"], "input_kernel": kernel}, seed).fit(known.X, known.y)


# cached, because the GP has the kernel of the network, and the numbers depend on nothing but the arguments
@lru_cache(maxsize=2)
def _automatic(key: str, name: str, seed: int) -> Any:
    config = json.loads(key)
    known, _ = forecast_split(prepared(name, config["most_rows"]), config["horizon"], seed * config["shift"])
    return configured(MetaGPRegressor(), config["settings"], seed).fit(known.X, known.y)


@lru_cache(maxsize=2)
def _searched(key: str, name: str, seed: int) -> Kernel:
    config = json.loads(key)
    known, _ = forecast_split(prepared(name, config["most_rows"]), config["horizon"], seed * config["shift"])
    return kernels.search(known.X, known.y, depth=config["search_depth"], random_state=seed).kernel


def _gp(config: Config, kernel: Kernel | None, seed: int) -> ExactGPRegressor:
    """Return a GP whose hyper-parameters start where those of the kernel are."""
    return ExactGPRegressor(kernel or kernels.RBF(), max_iter=config["gp_steps"], n_restarts=0, random_state=seed)


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw one row per series and one column per method: known values, the forecast with its interval, the truth."""
    names, shown = results.config["series"], _shown(results)
    figure, axes = panels(len(names), len(shown), width=3.4, height=1.7, sharex="row", sharey="row")
    for line, name in zip(axes, names, strict=True):
        for panel, method in zip(line, shown, strict=True):
            arrays = arrays_of(results, f"{name} {method}")
            if arrays:
                forecast_panel(panel, arrays)
                panel.set_xlim(arrays["known_x"][-3 * len(arrays["x"]) :][0], arrays["x"][-1])
            panel.set_title(f"{name}, {method}", fontsize="small")
    legend_below(figure, axes[0, 0])
    return {"series-forecasts": figure}


def _shown(results: Results) -> list[str]:
    there = results.methods
    return [method for method in results.config["methods"] if any(own.endswith(f" {method}") for own in there)]


# --- verdicts -----------------------------------------------------------------------------


def judge(results: Results) -> list[Verdict]:
    """Compare the network with the GP of its kernel, and with the best of all methods, series by series."""
    pairs = [pair for pair in ((AUTO, GP), (SEARCHED, GP_SEARCHED)) if set(pair) <= set(_shown(results))]
    return [
        *[_level(results, ours, [gp], ENOUGH_GP, metric) for ours, gp in pairs for metric in ("rmse", "nll")],
        *[_level(results, AUTO, _baselines(results), ENOUGH, metric) for metric in ("rmse", "nll")],
    ]


def _baselines(results: Results) -> list[str]:
    return [method for method in _shown(results) if WHOSE[method] == "baseline"]


def _level(results: Results, ours: str, others: Sequence[str], share: float, metric: str) -> Verdict:
    """Judge on how many series ours is level with the best of itself and some others."""
    names = results.config["series"]
    models = [ours, *others]
    level = [name for name in names if is_level_with_best(results, name, ours, models, metric)]
    behind = [
        _told(results, name, ours, best(results, name, models, metric), metric) for name in names if name not in level
    ]
    least = int(np.ceil(share * len(names)))
    absent = "" if package_is_there() else f"; not installed, and left out: {ETS}, {ARIMA}"
    rivals = others[0] if len(others) == 1 else "the best of all methods that are not ours"
    kernel = " with its kernel" if len(others) == 1 else ""
    return clearly(
        f"{ours} forecasts as well as {rivals}{kernel}, or within one standard error, on at least {least} of "
        f"{len(names)} series ({metric.upper()}).",
        len(level) >= least,
        f"level on {len(level)} ({', '.join(level) or 'none'}); behind: {'; '.join(behind) or 'none'}{absent}",
        whose=WHOSE[ours],
    )


def _told(results: Results, name: str, ours: str, lowest: str, metric: str) -> str:
    own, other = (said(results.summary(f"{name} {method}", metric)) for method in (ours, lowest))
    return f"{name} {own}, {lowest} {other}"


ITEM = Item(
    title="Of our own: all series, forecast",
    claim=(
        "On thirteen series a network that finds its input kernel itself forecasts as well as the exact GP with that "
        "kernel on three quarters, and as well as the best of GPs, the last season again, ETS and ARIMA on half."
    ),
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    notes=(
        "A row is the mean of 1 to 12 rows of the file (three months of the monthly sunspots, four weeks of the weekly "
        "CO2, a week of the temperatures, an hour of the demand in Victoria and of Yosemite), and the last 500 are "
        "used. Seed 0 forecasts the last fifth, every further seed a fifth that ends 5 % of the rows earlier: "
        "forecasts overlap, and their standard errors are smaller than those of independent ones would be. `auto` is "
        'MetaGPRegressor() with its default `input_kernel="auto"`; the exact GP has the kernel that it took and '
        "starts from its hyper-parameters. `kernel search` is `kernels.search` with up to three base kernels, for "
        "both. The last season again, ETS and ARIMA (statsforecast, with Gaussian intervals of 95 % as standard "
        "deviations) are told the length of a season: 12 months, 11 years of the sunspots, 24 hours, and none of the "
        "Nile. ETS and ARIMA are left out where statsforecast is not installed. cpu_seconds of the exact GPs include "
        "finding the kernel, where no other run of the process had found it before."
    ),
)
