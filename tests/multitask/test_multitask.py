"""Estimators of several tasks: a new task moves nothing that is shared, and what is shared is worth something."""

import json
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import metaprior
from compared import same_bits
from edited_files import put_together, taken_apart
from metaprior import MetaGPClassifier, MetaGPRegressor, kernels
from metaprior.estimators.fit import InputScaling, prepare_fit
from metaprior.inference import steps
from metaprior.multitask import MultiTaskClassifier, MultiTaskRegressor
from metaprior.multitask.tasks import rescaled, started_alike
from metaprior.random import draw_shared_normals
from metaprior.weights.multitask import split
from several_tasks import NEW, PLANES, SMALL, TEST, WAVES, wave
from written import quickly

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")


@pytest.mark.slow
def test_adapting_leaves_all_that_is_shared_and_all_other_tasks_the_same_bit_for_bit():
    model = MultiTaskRegressor(**SMALL).fit(WAVES)
    before = pickle.loads(pickle.dumps(model))
    model.adapt("new", *NEW)
    assert same_bits(model.shared_, before.shared_)
    assert same_bits(split(model.estimator("new").model_.weights)[0], before.shared_)
    for name in WAVES:
        assert same_bits(model.estimator(name).model_, before.estimator(name).model_)
        assert np.array_equal(model.predict(TEST, task=name), before.predict(TEST, task=name))


def test_every_task_has_the_shared_parts_and_private_ones_of_its_own(waves):
    shared, private = zip(*[split(waves.estimator(name).model_.weights) for name in WAVES], strict=True)
    assert all(same_bits(one, waves.shared_) for one in shared)
    assert not same_bits(private[0], private[1])


def test_a_task_answers_through_an_ordinary_estimator(waves):
    own = waves.estimator("new")
    assert type(own) is MetaGPRegressor
    mean, std = waves.predict(TEST, task="new", return_std=True)
    assert mean.shape == std.shape == (9,)
    assert np.all(std > 0)
    assert np.array_equal(mean, own.predict(TEST))
    assert np.array_equal(waves.predict_distribution(TEST, task="new").std, std)
    assert waves.sample_y(TEST, 4, task=2).shape == (9, 4)
    assert waves.score(*NEW, task="new") == own.score(*NEW)


def test_a_new_task_without_steps_is_gp_regression_given_the_shared_draws(waves):
    """The dense formula, for every draw of the layers below, with the hyper-parameters at the mean of known tasks."""
    model = pickle.loads(pickle.dumps(waves)).set_params(adapt_iter=0, n_predict_draws=16).adapt("solved", *NEW)
    own, known = model.estimator("solved"), [model.estimator(name) for name in WAVES]
    assert own.n_iter_ == 0
    log_noise = np.mean([one.model_.likelihood.log_noise for one in known], axis=0)
    np.testing.assert_allclose(own.model_.likelihood.log_noise, log_noise)
    y = (NEW[1] - own.y_offset_) / own.y_scale_
    with jax.enable_x64(True):
        key = jax.random.wrap_key_data(jnp.asarray(own.draw_key_), impl="threefry2x32")
        noise = draw_shared_normals(key, own.model_.weights.sizes(), 2, jnp.float64)
        train_x, test_x = ((x - own.x_offset_) / own.x_scale_ for x in (NEW[0], TEST))
        covariances = np.asarray(of_draws(own.model_.weights, noise, np.vstack([train_x, test_x])))
    means, variances = zip(*[dense_posterior(each, y, np.exp(log_noise)) for each in covariances], strict=True)
    mean, std = model.predict(TEST, task="solved", return_std=True)
    np.testing.assert_allclose(mean, own.y_offset_ + own.y_scale_ * np.mean(means, axis=0), rtol=1e-8, atol=1e-8)
    variance = np.mean(variances, axis=0) + np.var(means, axis=0)
    np.testing.assert_allclose(std, own.y_scale_ * np.sqrt(variance), rtol=1e-8)


@quickly
def of_draws(weights, noise, x):
    """Return, for every draw of the layers below, the covariance of f at all rows, written out."""

    def one(noise):
        draw, output, weight_layer = weights.prepared().draw(noise), weights.output, weights.weight_layers[-1]
        z_in, z_out = (draw.z[units.start : units.stop] for units in (weight_layer.inputs, weight_layer.outputs))
        (below,) = draw.weights(x, jnp.zeros((len(x), 0)))
        ones = jnp.ones((len(x), 1))
        hidden = jnp.tanh(jnp.concatenate([x, ones], axis=1) @ below)
        scale = jnp.exp(weights.log_scale[-1])
        phi = jnp.concatenate([scale[0] * hidden, scale[1] * ones], axis=1)
        level = output.kernel_out(z_out, z_out)[0, 0] * weights.input_kernel(x, x)
        white = jnp.exp(2 * output.weight_noise.log_std) * phi @ phi.T
        return level * (phi @ output.kernel_in(z_in, z_in) @ phi.T) + white

    return jax.lax.map(one, noise)


def dense_posterior(covariance, y, noise):
    """Return mean and variance of a new y at the rows after the first."""
    seen, new = slice(0, len(y)), slice(len(y), None)
    inverse, cross = np.linalg.inv(covariance[seen, seen] + noise**2 * np.eye(len(y))), covariance[new, seen]
    return cross @ inverse @ y, np.diag(covariance[new, new] - cross @ inverse @ cross.T) + noise**2


def test_the_period_of_every_task_is_its_own(waves):
    periods = [float(waves.estimator(name).input_kernel_.period[0]) for name in ("slow", 2, "fast", "new")]
    np.testing.assert_allclose(periods, 1 / np.array([0.4, 0.6, 0.9, 0.7]), rtol=0.2)


def test_inputs_have_the_units_of_all_tasks_together_and_targets_their_own():
    model = MultiTaskRegressor(**SMALL).fit(WAVES)
    everything = np.concatenate([x for x, _ in WAVES.values()])
    np.testing.assert_allclose(model.x_offset_, everything.mean(axis=0))
    np.testing.assert_allclose(model.x_scale_, everything.std(axis=0))
    x, y = WAVES[2]
    moved = MultiTaskRegressor(**SMALL).fit({**WAVES, 2: (x, 50 + 1024 * y)})
    np.testing.assert_allclose(moved.predict(TEST, task=2), 50 + 1024 * model.predict(TEST, task=2), rtol=1e-3, atol=1)
    np.testing.assert_allclose(moved.predict(TEST, task="slow"), model.predict(TEST, task="slow"), atol=1e-3)


def test_other_numbers_of_rows_compile_nothing_new(waves, monkeypatch):
    counted = eqx.debug.assert_max_traces(steps.one_step, max_traces=None)
    monkeypatch.setattr(steps, "one_step", counted)
    clone(waves).fit(WAVES).adapt("new", *NEW)  # again: a fit drops all programs where a process has many
    before = eqx.debug.get_num_traces(counted)
    other = clone(waves).fit([wave(0.4, 5), wave(0.6, 24), wave(0.5, 17)])
    other.adapt("c", *wave(0.7, 15)).adapt("d", *wave(0.7, 8))
    assert eqx.debug.get_num_traces(counted) == before


@pytest.mark.slow
def test_the_trace_counter_sees_another_number_of_tasks(waves, monkeypatch):
    counted = eqx.debug.assert_max_traces(steps.one_step, max_traces=None)
    monkeypatch.setattr(steps, "one_step", counted)
    clone(waves).fit([wave(0.4, 5), wave(0.6, 24)])
    assert eqx.debug.get_num_traces(counted) > 0


@pytest.mark.slow
def test_classes_are_those_of_all_tasks_and_a_task_may_lack_some(planes):
    assert planes.classes_.tolist() == ["low", "mid", "top"]
    assert type(planes.estimator("new")) is MetaGPClassifier
    for task in (0, 1, "new"):
        p = planes.predict_proba(PLANES[0][0], task=task)
        assert p.shape == (30, 3)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)
        assert set(planes.predict(PLANES[0][0], task=task)) <= {"low", "mid", "top"}
    assert planes.sample_y(PLANES[0][0], 2, task="new").shape == (30, 3, 2)


@pytest.mark.slow
def test_two_classes_in_all_tasks_take_one_function():
    model = MultiTaskClassifier(**{**SMALL, "input_kernel": "rbf", "max_iter": 5}).fit({"only": PLANES[1]})
    assert model.estimator("only").model_.network.sizes[-1] == 1
    assert model.predict_proba(PLANES[1][0], task="only").shape == (25, 2)


@pytest.mark.parametrize("regime", ["inducing_rows", "pseudo_observations"])
def test_a_short_task_has_as_many_inducing_rows_as_the_longest(regime):
    """Its own rows are all among them, the others are copies, a little off."""
    single = {name: value for name, value in SMALL.items() if name != "adapt_iter"}
    starter = MetaGPRegressor(**{**single, "input_kernel": "rbf", "output_layer": regime})
    as_they_are = InputScaling(np.zeros(1), np.ones(1))
    tasks = [rescaled(prepare_fit(starter, *wave(0.5, num_rows)), as_they_are).problem for num_rows in (20, 5)]
    long, short = (model.output.points for model in started_alike(starter, tasks, 0)[1])
    assert long.shape == short.shape == (20, 1)
    assert set(tasks[1].x_unit[:, 0]) <= set(short[:, 0])
    distance = np.abs(short - tasks[1].x_unit[:, 0]).min(axis=1)
    assert 0 < distance.max() < 0.1


@pytest.mark.slow
def test_a_new_task_may_be_shorter_than_the_inducing_rows_that_were_asked_for():
    model = MultiTaskRegressor(**{**SMALL, "output_layer": "inducing_rows", "n_inducing_rows": 14}).fit(WAVES)
    model.adapt("new", *NEW)
    assert [len(model.estimator(name).model_.output.points) for name in ("slow", "new")] == [14, 12]
    assert np.all(np.isfinite(model.predict(TEST, task="new", return_std=True)))


@pytest.mark.slow
def test_batches_early_stopping_and_several_targets_go_through():
    x, y = WAVES["slow"]
    both = (x, np.column_stack([y, -2 * y]))
    params = {**SMALL, "batch_size": 8, "early_stopping": True, "validation_fraction": 0.2}
    model = MultiTaskRegressor(**params).fit({"a": both, "b": (x[:9], both[1][:9])})
    assert model.predict(TEST, task="b").shape == (9, 2)
    assert np.all(np.isfinite(model.elbo_history_))


def test_the_elbo_is_the_sum_of_its_terms_and_the_latents_count_once(waves):
    terms = waves.elbo_terms_
    total = terms["log_likelihood"] - terms["kl_z"] - terms["kl_u"] - terms["kl_scale"] - terms["kl_lengthscales"]
    np.testing.assert_allclose(waves.elbo_history_, total, rtol=1e-5)
    assert waves.n_iter_ == 30
    assert waves.estimator("new").n_iter_ == 20


@pytest.mark.parametrize("which", ["waves", pytest.param("planes", marks=pytest.mark.slow)])
def test_what_is_loaded_answers_bit_for_bit_as_what_was_saved(which, request, tmp_path):
    model = request.getfixturevalue(which)
    model.save(tmp_path / "model.metaprior")
    twin = metaprior.load(tmp_path / "model.metaprior")
    x = TEST if which == "waves" else PLANES[0][0]
    assert type(twin) is type(model)
    assert vars(twin).keys() == vars(model).keys()
    assert list(twin.estimators_) == list(model.estimators_)
    assert same_bits(twin.shared_, model.shared_)
    for task in model.estimators_:
        assert np.array_equal(twin.predict(x, task=task), model.predict(x, task=task))
        assert np.array_equal(twin.sample_y(x, 4, 1, task=task), model.sample_y(x, 4, 1, task=task))


def test_a_loaded_model_adapts_as_the_saved_one_would(tmp_path):
    model = MultiTaskRegressor(**SMALL).fit(WAVES)
    model.save(tmp_path / "model.metaprior")
    twin = metaprior.load(tmp_path / "model.metaprior")
    assert np.array_equal(
        twin.adapt("new", *NEW).predict(TEST, task="new"), model.adapt("new", *NEW).predict(TEST, task="new")
    )


def test_a_file_of_tasks_whose_weights_are_all_drawn_says_what_to_do(waves, tmp_path):
    """Older versions kept what is shared in a class of its own."""
    path = tmp_path / "old.metaprior"
    waves.save(path)
    texts, arrays = taken_apart(path)
    content = json.loads(texts["content"])
    shared = content["estimator"]["state"]["shared_"]
    shared["class"] = "metaprior.weights.multitask:Shared"
    put_together(path, texts, content, arrays)
    with pytest.raises(ValueError, match="tasks no longer draw the weights of their output layers: fit them again"):
        metaprior.load(path)


def test_parameters_clone_and_the_fitted_model_pickles(waves):
    twin = clone(waves)
    assert str(twin.get_params()) == str(waves.get_params())
    assert twin.get_params()["adapt_iter"] == 20
    with pytest.raises(NotFittedError):
        twin.predict(TEST, task="new")
    copied = pickle.loads(pickle.dumps(waves))
    assert np.array_equal(copied.predict(TEST, task="new"), waves.predict(TEST, task="new"))


def test_the_same_seed_gives_the_same_bits(waves):
    again = MultiTaskRegressor(**SMALL).fit(WAVES).adapt("new", *NEW)
    assert np.array_equal(again.predict(TEST, task="new"), waves.predict(TEST, task="new"))


# --- what it is worth --------------------------------------------------------------------


def rmse(mean, y):
    return np.sqrt(np.mean((mean - y) ** 2))


def sinusoid(frequency, num_rows, rng):
    x = rng.uniform(-2, 2, (num_rows, 1))
    return x, np.sin(2 * np.pi * frequency * x[:, 0]) + 0.1 * rng.standard_normal(num_rows)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_new_sinusoid_is_learned_in_a_tenth_of_the_steps(seed):
    rng = np.random.default_rng(seed)
    params = {"input_kernel": kernels.Periodic(), "random_state": seed}
    model = MultiTaskRegressor(**params).fit([sinusoid(f, 100, rng) for f in (0.4, 0.5, 0.7, 0.8)])
    new, (x, y) = sinusoid(0.6, 100, rng), sinusoid(0.6, 1000, rng)
    scratch = MetaGPRegressor(**{"input_kernel": None, **params}).fit(*new)
    assert 10 * 30 < scratch.n_iter_ < 3000
    for num_steps in (0, 30):
        model.set_params(adapt_iter=num_steps).adapt("new", *new)
        assert model.estimator("new").n_iter_ == num_steps
        assert rmse(model.predict(x, task="new"), y) < 1.02 * rmse(scratch.predict(x), y)


def test_few_steps_of_adapting_are_small_ones(waves):
    """The first steps of Adam are of full size wherever it stands; a period that is 1 % off is a bad one."""
    model = pickle.loads(pickle.dumps(waves))
    periods = [
        float(model.set_params(adapt_iter=steps).adapt("new", *NEW).estimator("new").input_kernel_.period[0])
        for steps in (0, 5)
    ]
    assert periods[0] != periods[1]
    np.testing.assert_allclose(periods[1], periods[0], rtol=0.01)


@pytest.mark.slow
def test_a_new_combination_of_known_features_is_learned_from_few_rows():
    """Without an input kernel what tasks share is the features: eight tasks teach them, twelve rows combine them."""
    rng = np.random.default_rng(0)
    directions, shifts, weights = 2 * rng.standard_normal((3, 3)), rng.standard_normal(3), rng.standard_normal((9, 3))

    def combined(number, num_rows):
        x = rng.uniform(-1.5, 1.5, (num_rows, 3))
        return x, np.tanh(x @ directions + shifts) @ weights[number] + 0.05 * rng.standard_normal(num_rows)

    model = MultiTaskRegressor(random_state=0, adapt_iter=0).fit([combined(number, 60) for number in range(8)])
    new, (x, y) = combined(8, 12), combined(8, 500)
    model.adapt("new", *new)
    scratch = MetaGPRegressor(random_state=0, input_kernel=None).fit(*new)
    assert rmse(model.predict(x, task="new"), y) < 0.5 * rmse(scratch.predict(x), y)
