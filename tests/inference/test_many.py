"""Runs side by side: each as it would go alone."""

import jax
import numpy as np
import pytest
from sklearn.base import clone

from metaprior import MetaGPRegressor, baselines, kernels
from metaprior.estimators import fit_together
from metaprior.inference import ConvergenceTrouble, Recipe, StepConfig, make_data, steps, train, train_many
from metaprior.inference.data import padded
from metaprior.inference.programs import LARGEST_GROUP, groups_of
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.periods import starting_periods
from metaprior.random import make_key
from metaprior.weights import MeanField, MetaGPSpec, initial_metagp
from small import StopWhen

RNG = np.random.default_rng(0)
DATA = [
    (x, np.sin(3 * x) + 0.1 * RNG.standard_normal(x.shape)) for x in (RNG.uniform(-1, 1, (n, 1)) for n in (12, 40, 20))
]
#: Sums in another order, through 60 steps of Adam, whose first steps are signs: far above the rounding of one step.
ROUNDING = 2e-3


def local(seed: int) -> Model:
    network = Dense((1, 3, 1))
    spec = MetaGPSpec(n_inducing=4, input_kernel=kernels.RBF().bound_to(1))
    return Model(
        initial_metagp(spec, network.weight_layers, DATA[0][0], np.random.default_rng(seed)),
        network,
        Gaussian(np.log([0.1])),
    )


def mean_field(seed: int) -> Model:
    network = Dense((1, 3, 1))
    return Model(MeanField.initial(network, np.random.default_rng(seed)), network, Gaussian(np.log([0.1])))


@pytest.mark.parametrize("start", [local, mean_field])
@pytest.mark.parametrize("batch_size", [None, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_runs_side_by_side_are_the_runs_one_by_one(start, batch_size):
    models, data = [start(seed) for seed in range(3)], [make_data(x, y) for x, y in DATA]
    keys, step_config = [make_key(seed) for seed in range(3)], StepConfig(batch_size, 2)
    recipe = Recipe(num_steps=60, begins=0.6)
    together = train_many(models, data, keys, recipe=recipe, step_config=step_config)
    for model, own, key, fit in zip(models, data, keys, together, strict=True):
        # the normals of rows are those of the padded rows
        alone = train(model, padded(own, 48), key, recipe=recipe, step_config=step_config)
        np.testing.assert_allclose(fit.history["elbo"], alone.history["elbo"], rtol=ROUNDING, atol=ROUNDING * 40)
        for a, b in zip(jax.tree.leaves(fit.model), jax.tree.leaves(alone.model), strict=True):
            np.testing.assert_allclose(a, b, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize(("num_runs", "threads"), [(1, 2), (3, 2), (5, 1), (7, 2), (12, 4), (40, 2)])
def test_groups_are_of_one_size_and_hold_every_run(num_runs, threads):
    groups = groups_of(num_runs, threads)
    assert len({len(group) for group in groups}) == 1
    assert len(groups[0]) <= LARGEST_GROUP
    assert {index for group in groups for index in group} == set(range(num_runs))
    if num_runs >= threads:
        assert len(groups) % threads == 0 or num_runs < 2 * threads


@pytest.mark.slow
def test_runs_of_different_keys_differ():
    """A batch of keys that drew all its numbers from the first would give each run the same."""
    data = make_data(*DATA[0])
    fits = train_many([local(0)] * 2, [data] * 2, [make_key(0), make_key(1)], recipe=Recipe(20, begins=0.6))
    assert not np.array_equal(fits[0].history["elbo"], fits[1].history["elbo"])


def test_a_run_that_turns_non_finite_goes_back_and_the_others_do_not_notice(monkeypatch):
    monkeypatch.setenv("NPROC", "1")  # both in one group
    data, keys = [make_data(*DATA[0])] * 2, [make_key(0), make_key(1)]
    undisturbed = train_many([local(0), local(1)], data, keys, recipe=Recipe(20))
    step_block, calls = steps.step_block_of_many, []

    def bad_once(states, keys, data, recipe, backoffs, stop, *rest):
        new, records = step_block(states, keys, data, recipe, backoffs, stop, *rest)
        if stop == 0:  # only to compile
            return new, records
        calls.append(np.array(backoffs))
        if len(calls) == 1:
            records = records | {"kl_z": records["kl_z"].at[1].set(np.nan)}
        return new, records

    monkeypatch.setattr(steps, "step_block_of_many", bad_once)
    with pytest.warns(ConvergenceTrouble, match="0.5 of the step size"):
        fits = train_many([local(0), local(1)], data, keys, recipe=Recipe(20))
    assert [c.tolist() for c in calls] == [[1, 1], [1, 0.5]]
    assert [fit.roll_backs for fit in fits] == [0, 1]
    np.testing.assert_array_equal(fits[0].history["elbo"], undisturbed[0].history["elbo"])
    assert not np.array_equal(fits[1].history["elbo"], undisturbed[1].history["elbo"])


def test_a_run_that_its_rule_ends_keeps_the_model_it_had_then():
    data, keys, recipe = [make_data(*DATA[0])] * 2, [make_key(0), make_key(1)], Recipe(400)
    rules = [StopWhen(lambda history: len(history["elbo"]) == 300), None]
    ended, other = train_many([local(0), local(1)], data, keys, recipe=recipe, stop_when=rules)
    assert (ended.num_steps, ended.converged) == (300, True)
    assert (other.num_steps, other.converged) == (400, False)
    longer = train_many([local(0), local(1)], data, keys, recipe=recipe)[0]
    np.testing.assert_array_equal(ended.history["elbo"], longer.history["elbo"][:300])
    assert not np.array_equal(ended.model.weights.log_scale, longer.model.weights.log_scale)


def small(**parameters) -> MetaGPRegressor:
    return MetaGPRegressor((4,), n_inducing=6, max_iter=60, n_predict_draws=16, **{"input_kernel": None, **parameters})


@pytest.mark.slow
def test_estimators_fitted_together_are_those_fitted_one_by_one():
    data = [(x, y[:, 0]) for x, y in DATA]
    together = [small(input_kernel="rbf", random_state=seed) for seed in range(3)]
    alone = [clone(estimator).fit(*pair) for estimator, pair in zip(together, data, strict=True)]
    fit_together(together, data)
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_allclose(a.elbo_history_, b.elbo_history_, rtol=ROUNDING, atol=ROUNDING * 40)
        for mine, other in zip(
            a.predict(DATA[0][0], return_std=True), b.predict(DATA[0][0], return_std=True), strict=True
        ):
            np.testing.assert_allclose(mine, other, rtol=5 * ROUNDING, atol=5 * ROUNDING)


@pytest.mark.parametrize(
    ("estimators", "match"),
    [
        ([small(), baselines.MAPRegressor((4,))], "of one class"),
        ([small(), small(latent_dim=3)], r"\['latent_dim'\] differ"),
        ([baselines.EnsembleRegressor()] * 2, "one run of training"),
        ([small()], "as many"),
    ],
)
def test_estimators_that_cannot_go_together_are_refused(estimators, match):
    with pytest.raises(ValueError, match=match):
        fit_together(estimators, [(x, y[:, 0]) for x, y in DATA[:2]])


def test_models_of_several_shapes_are_refused():
    wide = (np.hstack([DATA[0][0]] * 2), DATA[0][1][:, 0])
    with pytest.raises(ValueError, match="models of one shape"):
        fit_together([small(), small()], [(DATA[0][0], DATA[0][1][:, 0]), wide])


def test_further_peaks_of_the_spectrum_are_lower_and_elsewhere():
    x = np.linspace(0, 10, 200)[:, None]
    y = np.sin(2 * np.pi * x / 2.0) + 0.5 * np.sin(2 * np.pi * x / 0.7)
    first, second = (starting_periods(x, y, peak)[0] for peak in (0, 1))
    assert first == pytest.approx(2.0, rel=0.02)
    assert second == pytest.approx(0.7, rel=0.02)
    assert np.isfinite(starting_periods(x, y, 10_000)).all()


@pytest.mark.slow
def test_of_several_starts_the_one_with_the_highest_elbo_is_kept():
    """The strongest line of this spectrum is not the period: a restart from the next one wins."""
    x = np.linspace(0, 8, 120)[:, None]
    y = np.sin(2 * np.pi * x[:, 0] / 2.0) + 0.9 * np.sin(2 * np.pi * x[:, 0] / 0.4)
    fits = [
        small(input_kernel=kernels.Periodic(), random_state=0, n_restarts=n).set_params(max_iter=300).fit(x, y)
        for n in (0, 3)
    ]
    ends = [np.mean(fit.elbo_history_[-30:]) for fit in fits]
    assert ends[1] >= ends[0] - ROUNDING * 120
    assert fits[1].n_iter_ == 300


def test_a_negative_number_of_restarts_is_refused():
    with pytest.raises(ValueError, match="n_restarts: expected a whole number of at least 0"):
        small(n_restarts=-1).fit(DATA[0][0], DATA[0][1][:, 0])
