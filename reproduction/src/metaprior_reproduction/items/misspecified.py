"""An item of our own: a wrong input kernel, which a network can switch off and a GP has to obey."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior import kernels
from metaprior.baselines import ExactGPRegressor
from metaprior.datasets import Split, sinusoid
from metaprior.estimators import MetaGPRegressor
from metaprior.kernels import Kernel
from metaprior_reproduction.parts.figures import arrays_of, drawable, legend_below, panels, regression_panel, view
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict, Whose
from metaprior_reproduction.parts.methods import AS_PUBLISHED, curve, error_and_nll, fitted, published
from metaprior_reproduction.parts.verdicts import clearly, is_above, is_below, paired, said

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GRID = np.linspace(-4, 4, 400)
#: If all correlations of the input kernel over the data are higher, weights hardly depend on the input.
OFF = 0.9

#: The cases and their input kernels, in the units of the data. Their periods are not learned.
KERNELS: Mapping[str, Callable[[Config], Kernel]] = {
    "right period": lambda config: kernels.Periodic(1 / config["frequency"], fixed=("period",)),
    "wrong period": lambda config: kernels.Periodic(config["wrong_period"], fixed=("period",)),
    "RBF on trend + season": lambda config: kernels.RBF(),
}
ESTIMATORS: Mapping[str, Callable[[Kernel], Any]] = {
    "MetaGP-Local": lambda kernel: MetaGPRegressor(input_kernel=kernel),
    "MetaGP": lambda kernel: MetaGPRegressor(input_kernel=None),
    "Exact GP": lambda kernel: ExactGPRegressor(kernel),
    published("MetaGP-Local"): lambda kernel: MetaGPRegressor(input_kernel=kernel, **AS_PUBLISHED),
    published("MetaGP"): lambda kernel: MetaGPRegressor(input_kernel=None, **AS_PUBLISHED),
}

RIGHT, WRONG, TREND = KERNELS
LOCAL, GLOBAL, GP, *_ = ESTIMATORS
#: The local and the global model: ours with its defaults, and with the paper's own inference.
PAIRS: Mapping[Whose, tuple[str, str]] = {
    "ours": (LOCAL, GLOBAL),
    "as published": (published(LOCAL), published(GLOBAL)),
}

PRESETS: dict[str, Config] = {
    "paper": {
        "seeds": 5,
        "methods": [f"{case}: {model}" for case in KERNELS for model in ESTIMATORS],
        "num_rows": 100,
        "frequency": 0.6,
        "wrong_period": 1.0,
        "trend": 1.0,
        "hidden_layer_sizes": [50],
        "metagp_steps": 3000,
        "gp_steps": 200,
    },
    "smoke": {
        "seeds": 1,
        "methods": [f"{case}: {model}" for case in (RIGHT, WRONG) for model in (LOCAL, GP)],
        "num_rows": 30,
        "frequency": 0.6,
        "wrong_period": 1.0,
        "trend": 1.0,
        "hidden_layer_sizes": [10],
        "metagp_steps": 100,
        "gp_steps": 5,
    },
}


def methods(config: Config) -> list[str]:
    """Return the cases and models of the configuration."""
    return list(config["methods"])


def rows_of(config: Config, case: str, seed: int) -> dict[str, Split]:
    """Return the sinusoid, as y + trend x in the case with a trend."""
    parts = sinusoid(seed, num_train=config["num_rows"], frequency=config["frequency"])
    slope = config["trend"] if "trend" in case else 0.0
    return {name: Split(part.X, part.y + slope * part.X[:, 0]) for name, part in parts.items()}


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Fit, score inside and outside the data, and measure how much the input kernel still acts."""
    case, model = method.split(": ")
    rows = [rows_of(config, case, seed) for seed in seeds]
    steps = config["gp_steps" if model == GP else "metagp_steps"]
    models = fitted(
        lambda: ESTIMATORS[model](KERNELS[case](config)),
        {**config, "max_iter": steps},
        seeds,
        [parts["train"] for parts in rows],
    )
    return [_outcome(own, parts, seed) for own, parts, seed in zip(models, rows, seeds, strict=True)]


def _outcome(model: Any, parts: Mapping[str, Split], seed: int) -> Outcome:
    metrics = {**error_and_nll(model, parts["inside"], "in_"), **error_and_nll(model, parts["outside"], "out_")}
    kernel = input_kernel(model)
    if kernel is not None:
        metrics["least_correlation"] = least_correlation(kernel, -2.0, 2.0)
    return Outcome(metrics, curve(model, GRID, parts["train"]) if seed == 0 else {})


def input_kernel(model: Any) -> Kernel | None:
    """Return the fitted input kernel, without a variance; None for the global model."""
    if isinstance(model, ExactGPRegressor):
        return model.kernel_.inner
    return model.input_kernel_


def least_correlation(kernel: Kernel, low: float, high: float) -> float:
    """Return the smallest k(x, x') / k(x, x) on an interval: 1 if the kernel is switched off, lower if it acts."""
    x = np.linspace(low, high, 401, dtype=np.float32)[:, None]
    return float(np.min(np.asarray(kernel(x, x)) / np.asarray(kernel.diagonal(x))[:, None]))


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw one row per case and one column per model."""
    shown = [method.split(": ") for method in drawable(results)]
    cases, models = (list(dict.fromkeys(names)) for names in zip(*shown, strict=True))
    figure, axes = panels(len(cases), len(models), width=3.6, height=2.2, sharex=True, sharey="row")
    for case, model in shown:
        panel, arrays = axes[cases.index(case), models.index(model)], arrays_of(results, f"{case}: {model}")
        regression_panel(panel, arrays, f"{case}: {model}")
        panel.axvspan(-2, 2, color="0.5", alpha=0.1, lw=0)
        view(panel, [arrays["train_y"]], margin=0.8)
    legend_below(figure, axes[0, 0])
    return {"misspecified": figure}


def judge(results: Results) -> list[Verdict]:
    """Test whether the wrong kernel is switched off, and whether the network is then better than the GP."""
    shown = [whose for whose, (local, _) in PAIRS.items() if f"{WRONG}: {local}" in results.methods]
    return [verdict for whose in shown for verdict in _of_pair(results, whose)]


def _of_pair(results: Results, whose: Whose) -> list[Verdict]:
    there, (local, plain) = results.methods, PAIRS[whose]
    verdicts = [_switched_off(results, whose)]
    if f"{WRONG}: {plain}" in there:
        verdicts.append(_unharmed(results, whose))
    places = ((WRONG, "inside", "in"), (TREND, "outside", "out"))
    return verdicts + [
        _against_gp(results, whose, case, where, f"{prefix}_{score}")
        for case, where, prefix in places
        if f"{case}: {local}" in there
        for score in ("rmse", "nll")
    ]


def _scheme(whose: Whose) -> str:
    """Return what is added to a claim about the paper's own inference."""
    return " (as published)" if whose == "as published" else ""


def _switched_off(results: Results, whose: Whose) -> Verdict:
    metric, local = "least_correlation", PAIRS[whose][0]
    right, wrong = (results.summary(f"{case}: {local}", metric) for case in (RIGHT, WRONG))
    is_off, gp = wrong.mean > OFF, results.summary(f"{WRONG}: {GP}", metric)
    weaker = is_above(paired(results, f"{WRONG}: {local}", f"{RIGHT}: {local}", metric))
    told = "switched off" if is_off else "weakened, not switched off" if weaker else "not switched off"
    return clearly(
        f"A wrong period that is held is switched off: weights at any two inputs are correlated above {OFF:g}"
        f"{_scheme(whose)}.",
        is_off,
        f"{told}: least correlation of the input kernel over the data {said(wrong)} with the wrong period, "
        f"{said(right)} with the right one; of the exact GP with the wrong one {said(gp)}",
        whose=whose,
    )


def _unharmed(results: Results, whose: Whose) -> Verdict:
    local, bare = (f"{WRONG}: {model}" for model in PAIRS[whose])
    difference = paired(results, local, bare, "in_rmse")
    return clearly(
        "With a wrong period the local model is no worse inside the data than one without an input kernel (RMSE)"
        f"{_scheme(whose)}.",
        not is_above(difference),
        f"local {said(results.summary(local, 'in_rmse'))}, global {said(results.summary(bare, 'in_rmse'))}; difference "
        f"{said(difference)}",
        whose=whose,
    )


def _against_gp(results: Results, whose: Whose, case: str, where: str, metric: str) -> Verdict:
    ours, gp = f"{case}: {PAIRS[whose][0]}", f"{case}: {GP}"
    difference = paired(results, ours, gp, metric)
    score = metric.split("_")[1].upper()
    return clearly(
        f"{case}: {where} the data the local MetaGP{_scheme(whose)} is better than the exact GP with the same kernel "
        f"({score}).",
        is_below(difference),
        f"local {said(results.summary(ours, metric))}, exact GP {said(results.summary(gp, metric))}; difference "
        f"{said(difference)}",
        whose=whose,
    )


ITEM = Item(
    title="Of our own: an input kernel that is wrong",
    claim=(
        "A network whose input kernel has a wrong period, or is an RBF where there are a trend and a season, learns to "
        "switch the kernel off and still fits; a GP with that kernel cannot."
    ),
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    together=5,
    notes=(
        "The sinusoid of Table 1 (period 1.67) with a period held at 1.67 or at 1.0, and the same plus a trend of "
        "slope 1 with an RBF. `least_correlation` is the smallest k(x, x') of the fitted input kernel, without its "
        "variance, over [-2, 2]: near 1 where a long lengthscale has switched it off. The global MetaGP has no "
        "input kernel."
    ),
)
