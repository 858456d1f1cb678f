"""An item of our own: how faithful the posteriors are, by simulation-based calibration on networks NUTS can sample.

Truths are drawn from the prior, and data from the truths. Every posterior sees the same data and knows the same
hyper-parameters, so that only the posterior differs. A seed is a block of replicates; the variational posteriors,
which take longer, see only the first of them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metaprior.inference.nuts import Settings
from metaprior.metrics import INTERVALS
from metaprior.plots.style import DATA, colour
from metaprior_reproduction.parts.figures import label_edges, legend_below, panels
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Summary, Verdict, Whose
from metaprior_reproduction.parts.rank_statistics import (
    binned,
    bins_for,
    coverage,
    distances,
    p_value,
    ranks_of,
    thinned,
    uniform_band,
    usual_distance,
)
from metaprior_reproduction.parts.tiny_models import (
    INTEGRATED,
    Fitting,
    Posterior,
    Tiny,
    Truth,
    drawn_truth,
    fitted,
    sampled,
)
from metaprior_reproduction.parts.verdicts import clearly, is_above, is_below, said, summarised

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUTS = "NUTS"
#: One GP over codes; one over codes and inputs; the first with unknown noise and hyper-parameters (for NUTS only).
MODELS = ("global", "local", "whole")
#: The p-value below which ranks do not count as uniform.
UNLIKELY = 0.001
#: A coverage may differ from its level by this many standard errors.
ERRORS = 4
#: How far a mean may lie from that of NUTS, in its standard deviations; these may differ by the factor 1 + CLOSE.
CLOSE = 0.25
#: The most bins of a drawn histogram.
MOST_DRAWN = 10
TINY = {
    "sizes": [1, 2, 1],
    "latent_dim": 2,
    "x": [-2.0, -1.6, -1.2, -0.8, 0.8, 1.2, 1.6, 2.0],
    "x_test": [-1.4, 0.0, 2.5, 4.0],
    "noise": 0.3,
    "input_lengthscale": 1.5,
}
PRESETS = {
    "paper": {
        "seeds": 6,
        "num_replicates": 50,
        "num_fitted": 25,
        "models": ["global", "local", "whole"],
        "conditionals": [INTEGRATED, "full", "fitc", "diag", "pathwise"],
        "tiny": TINY,
        "sampling": {"n_warmup": 300, "n_samples": 474, "target_accept": 0.9, "max_tree_depth": 6},
        "longer": {"whole": {"n_warmup": 500, "n_samples": 790, "max_tree_depth": 8}},
        "fitting": {"num_steps": 3000, "n_inducing": 10, "num_draws": 400},
        "integrated": {"num_steps": 1500, "n_inducing": 32},
        "num_ranked": 79,
    },
    "smoke": {
        "seeds": 1,
        "num_replicates": 10,
        "num_fitted": 5,
        "models": ["global"],
        "conditionals": [INTEGRATED, "diag"],
        "tiny": TINY,
        "sampling": {"n_warmup": 50, "n_samples": 80, "target_accept": 0.8, "max_tree_depth": 5},
        "longer": {},
        "fitting": {"num_steps": 100, "n_inducing": 5, "num_draws": 80},
        "integrated": {},
        "num_ranked": 39,
    },
}


def name_of(posterior: str, model: str) -> str:
    """Return the name of a method."""
    return f"{posterior}, {model}"


def posteriors_of(config: Config, model: str) -> list[str]:
    """Return the posteriors of a model: NUTS alone if hyper-parameters are unknown."""
    return [NUTS, *([] if model == "whole" else config["conditionals"])]


def methods(config: Config) -> list[str]:
    """Return every posterior of every model."""
    return [name_of(own, model) for model in config["models"] for own in posteriors_of(config, model)]


def whose(method: str) -> Whose:
    """Return whose posterior a method is; with another conditional than the integrated one, every weight is drawn."""
    return "ours" if method.split(", ")[0] in (NUTS, INTEGRATED) else "as published"


def tiny_of(config: Config, model: str) -> Tiny:
    """Return the network of a model, its inputs, and which of its hyper-parameters are known."""
    if model not in MODELS:
        raise ValueError(f"model: expected one of {MODELS}; got {model!r}.")
    own: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in config["tiny"].items()}
    if model != "local":
        own["input_lengthscale"] = None
    return Tiny(**own, whole=model == "whole")


# --- numbers ------------------------------------------------------------------------------


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Draw the truths of every seed, find their posteriors side by side, and rank the truths among the draws."""
    posterior, model = method.split(", ")
    tiny, outcomes = tiny_of(config, model), []
    number, count = MODELS.index(model), config["num_replicates" if posterior == NUTS else "num_fitted"]
    for seed in seeds:
        truths = [drawn_truth(tiny, np.random.default_rng([seed, k, number])) for k in range(count)]
        if posterior == NUTS:
            found = sampled(tiny, truths, sampling_of(config, model), seed)
        else:
            found = fitted(tiny, truths, posterior, fitting_of(config, posterior), seed)
        outcomes.append(outcome_of(tiny, truths, found, config["num_ranked"], np.random.default_rng([seed, number])))
    return outcomes


def sampling_of(config: Config, model: str) -> Settings:
    """Return the settings of NUTS, with longer chains for a model that needs them."""
    return Settings(**{**config["sampling"], **config["longer"].get(model, {})})


def fitting_of(config: Config, posterior: str) -> Fitting:
    """Return how a variational posterior is found; the integrated one has settings of its own."""
    return Fitting(**{**config["fitting"], **(config["integrated"] if posterior == INTEGRATED else {})})


def outcome_of(
    tiny: Tiny, truths: Sequence[Truth], found: Posterior, num_ranked: int, rng: np.random.Generator
) -> Outcome:
    """Rank functions, new observations, and the log likelihood of the data with the unknown hyper-parameters."""
    truth = Truth(*[np.stack(parts) for parts in zip(*truths, strict=True)])
    log_noise = found.hypers[..., -1] if tiny.whole else np.broadcast_to(truth.log_noise[:, None], found.f.shape[:2])
    noise = np.exp(log_noise)[..., None]
    new = found.f_test + noise * rng.standard_normal(found.f_test.shape)
    own_fit = _log_likelihood(truth.y, truth.f, truth.log_noise[:, None])
    fit = _log_likelihood(truth.y[:, None], found.f, log_noise[..., None])
    pairs = {
        "f": (truth.f_test, found.f_test),
        "y": (truth.y_test, new),
        "rest": (np.column_stack([own_fit, truth.hypers]), np.concatenate([fit[..., None], found.hypers], axis=-1)),
    }
    ranks = {name: ranks_of(of_truth, thinned(draws, num_ranked)) for name, (of_truth, draws) in pairs.items()}
    arrays = {f"ranks_{name}": own.astype(np.int32) for name, own in ranks.items()}
    shares = {f"{n}_{p}": coverage(ranks[n], num_ranked, p).mean for n in ("f", "y") for p in INTERVALS}
    return Outcome({**shares, **found.told}, {**arrays, **_moments(found.f_test)})


def _log_likelihood(y: np.ndarray, f: np.ndarray, log_noise: np.ndarray) -> np.ndarray:
    return np.sum(-0.5 * ((y - f) / np.exp(log_noise)) ** 2 - log_noise, axis=-1)


def _moments(draws: np.ndarray) -> dict[str, np.ndarray]:
    """Return mean, spread and the error of the mean at every input: half the gap between two halves of the draws."""
    half = draws.shape[1] // 2
    error = 0.5 * np.abs(draws[:, :half].mean(axis=1) - draws[:, half:].mean(axis=1))
    return {"mean": draws.mean(axis=1), "std": draws.std(axis=1), "error": error}


# --- what the numbers say -----------------------------------------------------------------


def pooled(results: Results, method: str, name: str) -> np.ndarray:
    """Return an array of a method with the replicates of all seeds along its first axis."""
    return np.concatenate([run.outcome.arrays[name] for run in results.of(method)])


def matched(results: Results, method: str, reference: str, name: str) -> np.ndarray:
    """Return an array of the reference for the replicates that the method has too: the first of every seed."""
    others = {run.seed: run.outcome.arrays[name] for run in results.of(reference)}
    return np.concatenate([others[run.seed][: len(run.outcome.arrays[name])] for run in results.of(method)])


class Gap(NamedTuple):
    """How far a posterior is from NUTS, at one input or over several.

    The mean absolute gap between the means in standard deviations of NUTS, the mean logarithm of the ratio of standard
    deviations, and the part of the former that the finite number of draws explains.
    """

    mean: Summary
    log_std: Summary
    error: float


def gap(results: Results, method: str, reference: str, inputs: Sequence[int] | None = None) -> Gap:
    """Compare a posterior with NUTS, replicate by replicate; standard errors are over replicates."""
    chosen = slice(None) if inputs is None else list(inputs)
    ours = {name: pooled(results, method, name)[:, chosen] for name in ("mean", "std", "error")}
    nuts = {name: matched(results, method, reference, name)[:, chosen] for name in ours}
    return Gap(
        summarised(np.mean(np.abs(ours["mean"] - nuts["mean"]) / nuts["std"], axis=1)),
        summarised(np.mean(np.log(ours["std"] / nuts["std"]), axis=1)),
        float(np.mean(np.hypot(ours["error"], nuts["error"]) / nuts["std"])),
    )


def judge(results: Results) -> list[Verdict]:
    """Test the ranks and intervals of every posterior, and how far each approximation is from NUTS."""
    verdicts = []
    for model in results.config["models"]:
        for posterior in posteriors_of(results.config, model):
            method = name_of(posterior, model)
            verdicts += [_uniform(results, method), _covers(results, method)]
            if posterior != NUTS:
                verdicts.append(_close(results, method, name_of(NUTS, model)))
    return verdicts


def _uniform(results: Results, method: str) -> Verdict:
    num_ranked = results.config["num_ranked"]
    of_f, of_rest = pooled(results, method, "ranks_f"), pooled(results, method, "ranks_rest")
    p = p_value(np.column_stack([of_f, of_rest]), num_ranked)
    places = [f"{d:.3f}" for d in distances(of_f, num_ranked)]
    rest = [f"{d:.3f}" for d in distances(of_rest, num_ranked)]
    return clearly(
        f"{method}: the ranks of the truth are uniform (p at least {UNLIKELY:g}).",
        p >= UNLIKELY,
        f"p = {p:.2g} over {len(of_f)} replicates; distance from uniform of f at x = {_inputs(results)}: "
        f"{', '.join(places)}; of the likelihood{' and hyper-parameters' if len(rest) > 1 else ''}: "
        f"{', '.join(rest)} (uniform ranks: about {usual_distance(len(of_f)):.3f})",
        whose=whose(method),
    )


def _covers(results: Results, method: str) -> Verdict:
    words, holds = [], True
    for name in ("f", "y"):
        ranks = pooled(results, method, f"ranks_{name}")
        for percent in INTERVALS:
            found = coverage(ranks, results.config["num_ranked"], percent)
            holds &= is_covered(found, percent, ranks.size)
            words.append(f"{name} {percent} %: {_percent(found)}")
    claim = f"{method}: intervals of 50, 90 and 95 % cover as they say, to within {ERRORS} standard errors."
    return clearly(claim, holds, "; ".join(words), whose=whose(method))


def is_covered(found: Summary, percent: int, num_values: int) -> bool:
    """Return whether a coverage matches its level; its error is at least that of independent values."""
    level = percent / 100
    least = np.sqrt(level * (1 - level) / num_values)
    return bool(abs(found.mean - level) <= ERRORS * np.fmax(found.se, least))


def _close(results: Results, method: str, reference: str) -> Verdict:
    found = gap(results, method, reference)
    wide, narrow = is_above(found.log_std, np.log1p(CLOSE)), is_below(found.log_std, -np.log1p(CLOSE))
    places = []
    for number, x in enumerate(results.config["tiny"]["x_test"]):
        own = gap(results, method, reference, [number])
        places.append(f"x = {x:g}: {own.mean.mean:.2f} and {np.exp(own.log_std.mean):.2f}")
    ratio = np.exp(found.log_std.mean)
    return clearly(
        f"{method}: the mean is that of NUTS to within {CLOSE:g} of its standard deviation, the standard deviation "
        f"to within a factor of {1 + CLOSE:g}.",
        not (is_above(found.mean, CLOSE) or wide or narrow),
        f"mean off by {said(found.mean, 3)} standard deviations (from the number of draws alone: {found.error:.3f}); "
        f"ratio of standard deviations {ratio:.3f} ± {ratio * found.log_std.se:.3f}; " + "; ".join(places),
        whose=whose(method),
    )


def _percent(summary: Summary) -> str:
    return f"{100 * summary.mean:.1f} ± {100 * summary.se:.1f}"


def _inputs(results: Results) -> str:
    return ", ".join(f"{x:g}" for x in results.config["tiny"]["x_test"])


# --- figures ------------------------------------------------------------------------------


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw rank histograms, one row per model and one column per posterior, and how far each is from NUTS."""
    return {"faithfulness-ranks": _ranks_figure(results), "faithfulness-gaps": _gaps_figure(results)}


def _ranks_figure(results: Results) -> "Figure":
    models = results.config["models"]
    rows = [posteriors_of(results.config, model) for model in models]
    figure, axes = panels(len(rows), max(map(len, rows)), width=2.6, height=2.0, sharex=True, sharey=True)
    for line, model, row in zip(axes, models, rows, strict=True):
        for panel, posterior in zip(line, row, strict=False):
            _histogram(panel, results, name_of(posterior, model))
    label_edges(axes, "rank of the truth", "count / expected")
    axes[0, 0].set(ylim=(0, 4), xlim=(0, 1), xticks=(0, 0.5, 1))
    legend_below(figure, axes[0, 0])
    return figure


def _histogram(panel: "Axes", results: Results, method: str) -> None:
    """Draw the histograms of the ranks over the band that contains 99 % of uniform counts."""
    num_ranked, ranks = results.config["num_ranked"], pooled(results, method, "ranks_f")
    num_bins = bins_for(len(ranks), num_ranked, MOST_DRAWN)
    expected, edges = len(ranks) / num_bins, np.linspace(0, 1, num_bins + 1)
    low, high = (end / expected for end in uniform_band(len(ranks), num_bins))
    panel.axhspan(low, high, color="0.85", lw=0, label="99 % of uniform counts")
    for number, x in enumerate(results.config["tiny"]["x_test"]):
        counts = binned(ranks[:, number], num_ranked, num_bins) / expected
        panel.stairs(counts, edges, color=colour(number), lw=1.1, label=f"f({x:g})".replace("-", "−"))
    fit = binned(pooled(results, method, "ranks_rest")[:, 0], num_ranked, num_bins) / expected
    panel.stairs(fit, edges, color=DATA, ls="--", lw=1.1, label="log likelihood (cut at 4)")
    panel.set_title(method)


def _gaps_figure(results: Results) -> "Figure":
    models = [model for model in results.config["models"] if model != "whole"]
    figure, axes = panels(max(1, len(models)), 2, width=4.2, height=2.6, sharex=True)
    for line, model in zip(axes, models, strict=False):
        for number, posterior in enumerate(results.config["conditionals"]):
            _gap_lines(line, results, name_of(posterior, model), name_of(NUTS, model), number)
        line[0].set(title=f"mean, {model}", ylabel="gap / std of NUTS")
        line[1].set(title=f"standard deviation, {model}", ylabel="ratio to NUTS")
        line[1].axhline(1, color="k", lw=0.6)
        _mark_data(line, results.config)
    for panel in axes[-1]:
        panel.set_xlabel("x (grey: the data)")
    legend_below(figure, axes[0, 0])
    return figure


def _gap_lines(line: Sequence[Any], results: Results, method: str, reference: str, number: int) -> None:
    inputs = results.config["tiny"]["x_test"]
    found = [gap(results, method, reference, [place]) for place in range(len(inputs))]
    ratio = np.exp([own.log_std.mean for own in found])
    style = {"fmt": "o-", "color": colour(number), "ms": 3, "lw": 1, "label": method.split(", ")[0]}
    line[0].errorbar(inputs, [own.mean.mean for own in found], [2 * own.mean.se for own in found], **style)
    line[1].errorbar(inputs, ratio, 2 * ratio * [own.log_std.se for own in found], **style)


def _mark_data(line: Sequence[Any], config: Config) -> None:
    for panel in line:
        for x in config["tiny"]["x"]:
            panel.axvline(x, color="0.85", lw=0.8, zorder=0)


ITEM = Item(
    title="Ours: faithfulness of the posteriors",
    claim="NUTS on the hierarchical model is calibrated: ranks of true values are uniform, intervals cover as they "
    "say; how far the variational posteriors are from that, and from NUTS, is measured.",
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    notes=(
        "1-2-1 network, tanh, latents of two dimensions, eight rows in two groups, noise 0.3; truths from the prior. "
        "Global and local: hyper-parameters and noise known to all; whole: the global model with all of them unknown, "
        "sampled by NUTS, in longer chains. One chain a replicate, from its own draw of the prior. Ranks are of f at "
        "four inputs (between data, in the gap, outside, far outside) and of the log likelihood of the data: a "
        "posterior that ignores the data has uniform ranks of f, but not of that. The p-value is chi-square's, the "
        "smallest of all quantities times their number. Lines in the histograms are the four inputs; bars in the other "
        "figure are two standard errors."
    ),
)
