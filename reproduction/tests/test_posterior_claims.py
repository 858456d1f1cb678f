"""What the posterior is held to: against NUTS, exact GPs and mean-field VI, with defaults, over several seeds."""

import numpy as np
import pytest

from metaprior import MetaGPClassifier, MetaGPRegressor, baselines, kernels
from metaprior.datasets import sinusoid
from metaprior_reproduction.datasets import four_class, uci, uci_splits, x_sin_x
from metaprior_reproduction.items.data_regimes import observed
from metaprior_reproduction.items.faithfulness import (
    MODELS,
    PRESETS,
    fitting_of,
    outcome_of,
    sampling_of,
    tiny_of,
)
from metaprior_reproduction.parts.methods import error_and_nll
from metaprior_reproduction.parts.rank_statistics import distances
from metaprior_reproduction.parts.tiny_models import INTEGRATED, drawn_truth, fitted, sampled

SEEDS = range(5)


def sinusoid_scores(make):
    """Return RMSE and NLL inside, then outside, the mean over seeds."""
    found = []
    for seed in SEEDS:
        parts = sinusoid(seed)
        model = make(seed).fit(*parts["train"])
        found.append(
            [*error_and_nll(model, parts["inside"]).values(), *error_and_nll(model, parts["outside"]).values()]
        )
    return np.mean(found, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["global", "local"])
def test_the_integrated_posterior_is_that_of_nuts(model):
    config, number = PRESETS["paper"], MODELS.index(model)
    tiny = tiny_of(config, model)
    truths = [drawn_truth(tiny, np.random.default_rng([0, k, number])) for k in range(25)]
    nuts = sampled(tiny, truths, sampling_of(config, model), 0).f_test
    ours = fitted(tiny, truths, INTEGRATED, fitting_of(config, INTEGRATED), 0).f_test
    ratio = np.exp(np.mean(np.log(ours.std(1) / nuts.std(1)), axis=0))  # at x = -1.4 among the data, 0, 2.5, 4
    off = np.mean(np.abs(ours.mean(1) - nuts.mean(1)) / nuts.std(1), axis=0)
    assert 0.85 <= ratio[0] <= 1.2
    assert np.all((ratio[1:] >= 0.8) & (ratio[1:] <= 1.25))
    assert np.mean(off) <= 0.2


@pytest.fixture(scope="module")
def global_scores():
    return sinusoid_scores(lambda seed: MetaGPRegressor(random_state=seed, input_kernel=None))


@pytest.mark.slow
def test_the_global_model_doubts_itself_outside_the_sinusoids_data(global_scores):
    assert global_scores[3] <= 4.0


@pytest.mark.slow
@pytest.mark.xfail(
    reason="0.114 and -0.776: the data of seed 4 are hard for 50 units, 0.13 from eight starts; 100 have 0.112, -0.789",
    strict=True,
)
def test_the_global_model_fits_the_sinusoid(global_scores):
    assert global_scores[0] <= 0.110
    assert global_scores[1] <= -0.78


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "gap_in", "gap_out"), [(kernels.Periodic(), 0.02, 0.02), (kernels.RBF(), 0.03, 0.15)]
)
def test_a_local_model_is_as_good_as_the_exact_gp_with_its_kernel(kernel, gap_in, gap_out):
    ours = sinusoid_scores(lambda seed: MetaGPRegressor(input_kernel=kernel, random_state=seed))
    exact = sinusoid_scores(lambda seed: baselines.ExactGPRegressor(kernel, random_state=seed))
    assert ours[1] <= exact[1] + gap_in
    assert ours[3] <= exact[3] + gap_out


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_bound_of_the_global_model_prefers_the_signal_to_noise(seed):
    X, y = sinusoid(seed)["train"]
    model = MetaGPRegressor(random_state=seed, input_kernel=None).fit(X, y)
    # all noise: standardised targets under N(0, 1), and no KL
    noise_alone = -0.5 * len(y) * (1 + np.log(2 * np.pi))
    assert np.mean(model.elbo_history_[-50:]) >= noise_alone + 100


@pytest.mark.slow
def test_the_local_model_fits_a_table():
    table, (train, test) = uci("concrete"), uci_splits("concrete", [0])[0]
    models = [MetaGPRegressor(input_kernel="rbf", random_state=s).fit(table.X[train], table.y[train]) for s in SEEDS]
    errors = [np.sqrt(np.mean((model.predict(table.X[test]) - table.y[test]) ** 2)) for model in models]
    assert np.mean([np.mean(model.elbo_history_[-50:]) for model in models]) >= -300
    assert np.mean(errors) <= 4.8


@pytest.mark.slow
@pytest.mark.parametrize("num_rows", [10, 20])
def test_with_few_rows_the_local_model_is_not_too_sure_outside(num_rows):
    makes = [
        lambda seed: MetaGPRegressor(input_kernel="rbf", random_state=seed),
        lambda seed: baselines.ExactGPRegressor("rbf", random_state=seed),
        lambda seed: baselines.MFVIRegressor(random_state=seed),
    ]
    found = []
    for make in makes:
        models = [(make(seed).fit(*x_sin_x(num_rows, seed)["train"]), seed) for seed in SEEDS]
        scores = [error_and_nll(m, observed(x_sin_x(num_rows, seed)["grid"], seed)[1])["nll"] for m, seed in models]
        found.append(np.mean(scores))
    ours, exact, mean_field = found
    assert ours <= mean_field
    assert ours <= exact + 0.3


@pytest.mark.slow
def test_the_global_classifier_learns_from_a_few_dozen_labels():
    scores = []
    for seed in SEEDS:
        X, y = four_class(seed=seed)
        new_X, new_y = four_class(400, seed=seed + 100)
        rows = np.concatenate([np.flatnonzero(y == c)[:10] for c in np.unique(y)])
        scores.append(MetaGPClassifier(random_state=seed, input_kernel=None).fit(X[rows], y[rows]).score(new_X, new_y))
    assert np.mean(scores) >= 0.95


@pytest.mark.slow
def test_four_classes_are_even_on_a_far_ring():
    angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    ring = 20 * np.column_stack([np.cos(angle), np.sin(angle)])
    models = [MetaGPClassifier(input_kernel="rbf", activation="relu", random_state=s).fit(*four_class()) for s in SEEDS]
    entropies = [np.mean(model.predict_distribution(ring).entropy) for model in models]
    assert np.mean(entropies) >= 0.95 * np.log(4)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["global", "local"])
def test_ranks_of_the_likelihood_of_the_data_are_about_uniform(model):
    """Over 100 replicates; uniform ranks are about 0.07 away."""
    config, ranks = PRESETS["paper"], []
    tiny, number = tiny_of(config, model), MODELS.index(model)
    for seed in range(4):
        truths = [drawn_truth(tiny, np.random.default_rng([seed, k, number])) for k in range(25)]
        ours = fitted(tiny, truths, INTEGRATED, fitting_of(config, INTEGRATED), seed)
        outcome = outcome_of(tiny, truths, ours, config["num_ranked"], np.random.default_rng([seed, number]))
        ranks.append(outcome.arrays["ranks_rest"])
    assert distances(np.concatenate(ranks), config["num_ranked"])[0] <= 0.2
