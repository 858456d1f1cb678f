"""Calibration by simulation: rank statistics on cases with a known posterior, tiny models, NUTS's ranks, judges."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from metaprior.inference.nuts import Settings
from metaprior.random import StandardNormals
from metaprior_reproduction.items import faithfulness
from metaprior_reproduction.parts import tiny_models
from metaprior_reproduction.parts.item import Results, Run, Summary
from metaprior_reproduction.parts.rank_statistics import (
    binned,
    bins_for,
    coverage,
    covered,
    distances,
    p_value,
    ranks_of,
    thinned,
    uniform_band,
    usual_distance,
)
from metaprior_reproduction.parts.tiny_models import Fitting, Tiny, Truth

LEVELS = (50, 90, 95)
NUM_DRAWS = 79
NUM_BINS = 20


def conjugate_ranks(num_replicates, *, narrower=1.0, shift=0.0, seed=0):
    """Ranks of theta ~ N(0, 1) given three observations in noise of 0.7, whose posterior is Gaussian.

    A second column is the log likelihood of the data. The posterior may be made too narrow, or moved.
    """
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(num_replicates)
    y = theta[:, None] + 0.7 * rng.standard_normal((num_replicates, 3))
    precision = 1 + 3 / 0.7**2
    mean, std = y.sum(1) / 0.7**2 / precision, narrower / np.sqrt(precision)
    draws = mean[:, None] + std * (shift + rng.standard_normal((num_replicates, NUM_DRAWS)))
    return _with_fit(theta, draws, y)


def _with_fit(theta, draws, y):
    fit = -np.sum((y[:, None] - draws[..., None]) ** 2, axis=-1)
    own = -np.sum((y - theta[:, None]) ** 2, axis=-1)
    return ranks_of(np.column_stack([theta, own]), np.stack([draws, fit], axis=-1))


# --- ranks ------------------------------------------------------------------------


def test_a_rank_is_the_number_of_draws_below_the_truth():
    truth, draws = np.array([[0.5], [9.0]]), np.array([[0.0, 1.0, 0.4], [1.0, 2.0, 3.0]])[..., None]
    assert ranks_of(truth, draws).tolist() == [[2], [3]]


def test_ranks_of_the_exact_posterior_are_uniform_and_its_intervals_cover():
    ranks = conjugate_ranks(2000)
    assert p_value(ranks, NUM_DRAWS) > 0.001
    assert np.all(distances(ranks, NUM_DRAWS) < 2.2 / np.sqrt(2000))  # exceeded with probability 1e-4
    for percent in LEVELS:
        found = coverage(ranks, NUM_DRAWS, percent)
        assert abs(found.mean - percent / 100) < 4 * found.se


@pytest.mark.parametrize("wrong", [{"narrower": 0.7}, {"narrower": 1.5}, {"shift": 0.4}])
def test_a_posterior_too_narrow_too_wide_or_moved_is_detected(wrong):
    ranks = conjugate_ranks(500, **wrong)[:, :1]
    assert p_value(ranks, NUM_DRAWS) < 1e-4
    assert distances(ranks, NUM_DRAWS)[0] > 2 * usual_distance(500)


def test_the_coverage_of_a_narrow_posterior_is_its_own():
    """With the standard deviation times 0.7, the interval of level p holds what one of +-0.7 z_p would."""
    ranks = conjugate_ranks(4000, narrower=0.7)[:, 0]
    for percent in LEVELS:
        expected = 2 * stats.norm.cdf(0.7 * stats.norm.ppf(0.5 + percent / 200)) - 1
        found = coverage(ranks, NUM_DRAWS, percent)
        assert abs(found.mean - expected) < 4 * found.se + 0.01  # ends of 79 draws, not of a distribution
        assert found.mean < percent / 100 - 8 * found.se


def test_a_posterior_that_ignores_the_data_shows_in_the_likelihood_alone():
    rng = np.random.default_rng(3)
    theta = rng.standard_normal(500)
    y = theta[:, None] + 0.7 * rng.standard_normal((500, 3))
    ranks = _with_fit(theta, rng.standard_normal((500, NUM_DRAWS)), y)
    assert p_value(ranks[:, :1], NUM_DRAWS) > 0.001
    assert p_value(ranks[:, 1:], NUM_DRAWS) < 1e-6


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_uniform_ranks_have_small_p_values_no_more_often_than_those_say(level):
    """For one quantity as often; for five that are copies of each other, Bonferroni's product is on the safe side."""
    ranks = np.random.default_rng(0).integers(0, NUM_DRAWS + 1, (1000, 300, 1))
    one = np.mean([p_value(own, NUM_DRAWS) < level for own in ranks])
    five = np.mean([p_value(np.repeat(own, 5, axis=1), NUM_DRAWS) < level for own in ranks])
    error = np.sqrt(level * (1 - level) / 1000)
    assert abs(one - level) < 4 * error
    assert five < level + 4 * error


def test_the_p_value_is_that_of_chi_square():
    ranks = np.random.default_rng(1).integers(0, NUM_DRAWS + 1, 200)
    counts = np.array([np.sum((ranks >= 4 * b) & (ranks < 4 * b + 4)) for b in range(20)])
    expected = stats.chi2.sf(np.sum((counts - 10) ** 2 / 10), 19)
    assert p_value(ranks, NUM_DRAWS) == pytest.approx(expected, rel=1e-10)


def test_the_distance_is_that_of_kolmogorov_up_to_the_width_of_a_rank():
    ranks = np.random.default_rng(2).integers(0, 1000, (150, 2))
    exact = [stats.kstest((column + 0.5) / 1000, "uniform").statistic for column in ranks.T]
    np.testing.assert_allclose(distances(ranks, 999), exact, atol=2 / 1000)


def test_the_usual_distance_is_the_mean_over_uniform_ranks():
    ranks = np.random.default_rng(4).integers(0, 1000, (400, 300))
    found = distances(ranks, 999)  # of 300 sets
    assert abs(found.mean() - usual_distance(400)) < 4 * found.std() / np.sqrt(300) + 1 / 400


@pytest.mark.parametrize("percent", LEVELS)
@pytest.mark.parametrize("num_draws", [39, 79, 199])
def test_an_interval_of_draws_holds_just_its_share_of_the_ranks(percent, num_draws):
    inside = covered(np.arange(num_draws + 1), num_draws, percent)
    assert inside.mean() == percent / 100
    np.testing.assert_array_equal(inside, inside[::-1])


def test_the_band_holds_its_share_of_uniform_counts():
    ranks = np.random.default_rng(5).integers(0, NUM_DRAWS + 1, (2000, 300))
    low, high = uniform_band(300, NUM_BINS, 0.9)
    counts = np.array([binned(own, NUM_DRAWS, NUM_BINS)[0] for own in ranks])
    assert 0.9 - 4 * np.sqrt(0.09 / 2000) < np.mean((counts >= low) & (counts <= high)) < 0.97


@pytest.mark.parametrize(("num_replicates", "bins"), [(3, 2), (25, 5), (49, 8), (50, 10), (100, 20), (10_000, 20)])
def test_every_bin_expects_five_replicates(num_replicates, bins):
    assert bins_for(num_replicates, NUM_DRAWS) == bins


def test_numbers_that_do_not_go_together_are_refused():
    with pytest.raises(ValueError, match="expected a divisor of 80, .* got 7"):
        binned(np.zeros(3, int), 79, 7)
    with pytest.raises(ValueError, match="for which 95 % of the 51 ranks"):
        covered(np.zeros(3, int), 50, 95)
    with pytest.raises(ValueError, match=r"expected the truths' shape \(3, 2\) with draws second; got \(3, 2\)"):
        ranks_of(np.zeros((3, 2)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="expected at least 20, as many as are ranked; got 10"):
        thinned(np.zeros((1, 10)), 20)


def test_thinned_draws_are_evenly_spaced_and_as_far_apart_as_can_be():
    assert thinned(np.arange(20)[None], 4)[0].tolist() == [4, 9, 14, 19]
    assert thinned(np.arange(23)[None], 4)[0].tolist() == [4, 9, 14, 19]
    assert thinned(np.arange(4)[None], 4)[0].tolist() == [0, 1, 2, 3]


# --- the tiny models --------------------------------------------------------------

TINY = Tiny((1, 3, 1), 2, (-1.0, 0.3, 1.1), (0.0, 2.0), 0.2)
KINDS = [TINY, dataclasses.replace(TINY, input_lengthscale=0.8), dataclasses.replace(TINY, whole=True)]


@pytest.mark.parametrize("tiny", KINDS, ids=["global", "local", "whole"])
def test_the_plain_prior_and_the_sampled_model_are_one_function(tiny):
    x, rng = np.array(tiny.x), np.random.default_rng(0)
    unknowns = tiny_models.drawn_unknowns(tiny, len(x), rng)
    with jax.enable_x64(True):
        model = tiny_models.hierarchical_model(tiny, rng)
        weights = dataclasses.replace(
            model.weights,
            z=unknowns.z,
            values=unknowns.values,
            noise_normals=unknowns.noise,
            kernel_in=model.weights.kernel_in.with_leaves({"lengthscale": unknowns.log_lengthscale_in}),
            kernel_out=model.weights.kernel_out.with_leaves({"lengthscale": unknowns.log_lengthscale_out}),
            log_scale=unknowns.log_scale,
            log_weight_noise=np.asarray(unknowns.log_weight_noise),
        )
        model = dataclasses.replace(model, weights=weights)
        none = jnp.zeros((1, 0))
        noise = StandardNormals(none, none, none, jnp.zeros((1, len(x), 0)))
        f = model.functions(weights.prepared(), noise, jnp.asarray(x)[:, None])[0, :, 0]
        hypers = np.asarray(tiny_models._hypers(model))
    np.testing.assert_allclose(f, tiny_models.function_values(tiny, unknowns, x), atol=1e-4)
    np.testing.assert_allclose(hypers[:-1], unknowns.hypers()[:-1])
    assert (np.ptp(unknowns.hypers()[:4]) > 0) == tiny.whole


@pytest.mark.parametrize("input_lengthscale", [None, 0.8])
def test_truths_of_a_linear_network_have_the_variance_of_the_prior(input_lengthscale):
    """f = w x + b: E f^2 = (1 + 0.1^2)(1 + x^2) + 2 x E k(z_w, z_b), and E exp(-|z - z'|^2 / 2) = 3^(-Dz / 2)."""
    tiny = Tiny((1, 1), 2, (1.5,), (-1.5,), 0.2, input_lengthscale)
    rng = np.random.default_rng(0)
    truths = [tiny_models.drawn_truth(tiny, rng) for _ in range(4000)]
    for x, values in ((1.5, [t.f[0] for t in truths]), (-1.5, [t.f_test[0] for t in truths])):
        squares = np.square(values)
        expected = 1.01 * (1 + x**2) + 2 * x / 3
        assert abs(squares.mean() - expected) < 4 * squares.std() / np.sqrt(len(squares))


def test_known_hyper_parameters_are_the_same_for_nuts_and_for_the_bound():
    tiny, rng = KINDS[1], np.random.default_rng(0)
    exact = tiny_models.hierarchical_model(tiny, rng)
    bound = tiny_models.variational_model(tiny, "full", 5, rng)
    np.testing.assert_array_equal(exact.weights.log_scale, bound.weights.log_scale)
    np.testing.assert_array_equal(exact.weights.log_weight_noise, bound.weights.weight_noise.log_std)
    np.testing.assert_array_equal(exact.likelihood.log_noise, bound.likelihood.log_noise)
    for sparse_gp in bound.weights.sparse_gps:
        for name in ("kernel_in", "kernel_out"):
            ours, other = getattr(exact.weights, name), getattr(sparse_gp, name)
            np.testing.assert_array_equal(ours.log_lengthscale, other.log_lengthscale)
    np.testing.assert_array_equal(
        exact.weights.input_kernel.log_lengthscale, bound.weights.input_kernel.log_lengthscale
    )


def test_only_unknowns_are_sampled():
    names = {}
    for tiny in KINDS:
        moved, _ = tiny_models.sampled_part(tiny, tiny_models.hierarchical_model(tiny, np.random.default_rng(0)))
        paths = jax.tree_util.tree_flatten_with_path(moved)[0]
        names[tiny.input_lengthscale, tiny.whole] = {jax.tree_util.keystr(path) for path, _ in paths}
    known = {".weights.z", ".weights.values", ".weights.noise_normals"}
    assert names[None, False] == names[0.8, False] == known
    kernels = {".weights.kernel_in.log_lengthscale", ".weights.kernel_out.log_lengthscale"}
    hypers = {".weights.log_scale", ".weights.log_weight_noise", ".likelihood.log_noise"}
    assert names[None, True] == known | kernels | hypers


@pytest.mark.slow
def test_training_moves_the_posterior_and_no_hyper_parameter(monkeypatch):
    seen = []
    train_many = tiny_models.train_many

    def watched(models, *args, **kwargs):
        fits = train_many(models, *args, **kwargs)
        seen.extend(zip(models, [fit.model for fit in fits], strict=True))
        return fits

    monkeypatch.setattr(tiny_models, "train_many", watched)
    truths = [tiny_models.drawn_truth(TINY, np.random.default_rng(k)) for k in range(2)]
    found = tiny_models.fitted(TINY, truths, "diag", Fitting(num_steps=60, n_inducing=4, num_draws=8), seed=0)
    assert (found.f.shape, found.f_test.shape, found.hypers.shape) == ((2, 8, 3), (2, 8, 2), (2, 8, 0))
    for before, after in seen:
        held = [(m.weights.log_scale, m.weights.weight_noise.log_std, m.likelihood.log_noise) for m in (before, after)]
        for one, other in zip(*held, strict=True):
            np.testing.assert_array_equal(np.asarray(one, np.float32), other)
        kernels = [m.weights.sparse_gps[0].kernel_in.log_lengthscale for m in (before, after)]
        np.testing.assert_array_equal(*[np.asarray(own, np.float32) for own in kernels])
        for name in ("mean", "log_diagonal", "code_in"):
            one, other = (getattr(m.weights.sparse_gps[0], name) for m in (before, after))
            assert np.all(np.asarray(one, np.float32) != np.asarray(other))
        assert np.all(np.asarray(before.weights.latents.mean, np.float32) != np.asarray(after.weights.latents.mean))


def test_the_bound_has_no_posterior_of_hyper_parameters():
    with pytest.raises(ValueError, match="expected a model with known hyper-parameters"):
        tiny_models.fitted(KINDS[2], [], "full", Fitting(1, 1, 1), seed=0)


# --- the item ---------------------------------------------------------------------

CONFIG = {
    **faithfulness.PRESETS["paper"],
    "seeds": 2,
    "num_replicates": 150,
    "num_fitted": 100,
    "models": ["global", "whole"],
}


def made(narrower, moved=0.0):
    """Results of Gaussian posteriors that are exact for NUTS; the variational ones are narrower and moved."""
    runs = []
    for method in faithfulness.methods(CONFIG):
        tiny, is_nuts = faithfulness.tiny_of(CONFIG, method.split(", ")[1]), method.startswith("NUTS")
        for seed in range(CONFIG["seeds"]):
            outcome = _gaussian(tiny, seed, 1.0 if is_nuts else narrower, 0.0 if is_nuts else moved, is_nuts)
            runs.append(Run(method, seed, outcome, 1.0))
    return Results(CONFIG, runs)


def _gaussian(tiny, seed, narrower, moved, is_nuts):
    """All of f is one number around a centre that the data tell: a truth is a draw like those of an exact posterior."""
    rng, own = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1 + is_nuts])
    num, rows, tests, num_hypers = CONFIG["num_replicates"], len(tiny.x), len(tiny.x_test), 8 * tiny.whole
    seen = num if is_nuts else CONFIG["num_fitted"]
    centres, thetas = rng.standard_normal((2, num))
    truths = []
    for centre, theta in zip(centres, thetas, strict=True):
        hypers = 0.1 * rng.standard_normal(num_hypers)
        log_noise = hypers[-1] if tiny.whole else np.log(tiny.noise)
        f, f_test = np.full(rows, centre + 0.5 * theta), np.full(tests, centre + 0.5 * theta)
        new = f_test + np.exp(log_noise) * rng.standard_normal(tests)
        truths.append(Truth(f, f_test, centre + rng.standard_normal(rows), new, log_noise, hypers))
    draws = centres[:, None] + 0.5 * (moved + narrower * own.standard_normal((num, 790)))
    f, f_test = (np.repeat(draws[..., None], n, axis=-1) for n in (rows, tests))
    posterior = tiny_models.Posterior(f[:seen], f_test[:seen], 0.1 * own.standard_normal((seen, 790, num_hypers)), {})
    return faithfulness.outcome_of(tiny, truths[:seen], posterior, CONFIG["num_ranked"], own)


def verdicts_of(results):
    return {verdict.claim: verdict for verdict in faithfulness.judge(results)}


def test_every_method_is_judged_and_whole_by_nuts_alone():
    assert faithfulness.methods(CONFIG) == [
        *(f"{own}, global" for own in ("NUTS", "integrated", "full", "fitc", "diag", "pathwise")),
        "NUTS, whole",
    ]


def test_narrow_posteriors_are_told_with_their_size():
    found = verdicts_of(made(narrower=0.5))
    assert len(found) == 2 * 2 + 5 * 3
    for claim, verdict in found.items():
        assert verdict.outcome == ("agrees" if claim.startswith("NUTS") else "worse"), claim
    ratio = next(v.evidence for claim, v in found.items() if claim.startswith("full, global: the mean"))
    value, error = ratio.split("ratio of standard deviations ")[1].split(";")[0].split(" ± ")
    assert abs(float(value) - 0.5) < 4 * float(error) + 0.001


def test_the_gap_of_a_moved_posterior_is_what_it_was_moved_by():
    results = made(narrower=1.0, moved=0.4)
    found = faithfulness.gap(results, "full, global", "NUTS, global")
    assert abs(found.mean.mean - 0.4) < 4 * found.mean.se + 0.01
    assert abs(found.log_std.mean) < 4 * found.log_std.se
    # two means of 790 draws: the mean of |N(0, 2 / 790)|, in parts of which 2 / sqrt(pi) is the mean of the estimate
    assert 0.5 < found.error / np.sqrt(2 / 790) < 1.5


def test_a_coverage_of_all_in_few_replicates_is_no_failure():
    assert faithfulness.is_covered(Summary(1.0, 0.0, 10), 95, 40)
    assert not faithfulness.is_covered(Summary(1.0, 0.0, 400), 95, 1600)


def test_figures_have_a_panel_a_method():
    figures = faithfulness.draw(made(narrower=0.5))
    titles = [axes.get_title() for axes in figures["faithfulness-ranks"].axes if axes.get_visible()]
    assert titles == faithfulness.methods(CONFIG)
    assert len(figures["faithfulness-gaps"].axes) == 2


def test_a_model_may_have_longer_chains_than_the_others():
    config = faithfulness.PRESETS["paper"] | {"longer": {"whole": {"n_samples": 7}}}
    usual, longer = (faithfulness.sampling_of(config, model) for model in ("global", "whole"))
    assert usual == Settings(**config["sampling"])
    assert longer == usual._replace(n_samples=7)


def test_an_unknown_model_is_refused():
    with pytest.raises(ValueError, match="expected one of .*'whole'.*; got 'deep'"):
        faithfulness.tiny_of(CONFIG, "deep")


# --- NUTS -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("model", ["global", "local", "whole"])
def test_nuts_has_uniform_ranks_and_its_intervals_cover(model):
    """Both bounds were chosen before the first run: p above 0.001, coverage within 4 standard errors."""
    config = faithfulness.PRESETS["paper"]
    (outcome,) = faithfulness.compute(config, f"NUTS, {model}", [1000])
    ranks = np.column_stack([outcome.arrays["ranks_f"], outcome.arrays["ranks_rest"]])
    assert p_value(ranks, config["num_ranked"]) > 0.001
    for name in ("f", "y"):
        own = outcome.arrays[f"ranks_{name}"]
        for percent in LEVELS:
            found = coverage(own, config["num_ranked"], percent)
            assert faithfulness.is_covered(found, percent, own.size), (name, percent, found)
