"""Several tasks: their joint bound is what the tasks' own add up to; a new task moves nothing that is shared."""

import json
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import save as to_bytes
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import metaprior
from metaprior import MetaGPClassifier, MetaGPRegressor, kernels
from metaprior.estimators.fit import InputScaling, prepare_fit
from metaprior.inference import Batch, Recipe, elbo, elbo_terms, make_data, steps, train
from metaprior.inputs import Projection
from metaprior.io import saving
from metaprior.likelihoods import Categorical, Gaussian
from metaprior.model import Model
from metaprior.multitask import MultiTaskClassifier, MultiTaskRegressor
from metaprior.multitask.start import likelihood_start, private_start
from metaprior.multitask.tasks import rescaled, started_alike, together
from metaprior.networks import Dense
from metaprior.output_layer import Exact, InducingRows, PseudoObservations
from metaprior.random import draw_normals, draw_shared_normals, make_key
from metaprior.weight_gp import Full
from metaprior.weights import MetaGPSpec, initial_metagp
from metaprior.weights.multitask import joined, split
from written import quickly

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")

NUM_ROWS = (7, 4, 6)
NUM_POINTS = 3


def leaves(tree: object) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def same_bits(a: object, b: object) -> bool:
    return all(u.tobytes() == v.tobytes() for u, v in zip(leaves(a), leaves(b), strict=True))


def weights_of_tasks(num_tasks=3, sizes=(2, 3, 1), **options):
    """Return MetaGPs with one shared part, and private parts that all differ; no number is at a special value."""
    options = {"weight_gp": "per_layer", "local_layers": (-1,), "jitter": 1e-10, "integrated": True, **options}
    found = []
    for seed in range(num_tasks):
        rng = np.random.default_rng(seed)
        one = initial_metagp(
            MetaGPSpec(**options), Dense(sizes).weight_layers, rng.standard_normal((20, sizes[0])), rng
        )
        found.append(jax.tree.map(lambda leaf, rng=rng: leaf + 0.3 * rng.standard_normal(np.shape(leaf)), one))
    shared = split(found[0])[0]
    return [joined(shared, split(one)[1]) for one in found]


def regime_of(name, rng, num_outputs=1):
    points = rng.standard_normal((NUM_POINTS, 2))
    if name == "pseudo_observations":
        return PseudoObservations(points, *rng.standard_normal((2, NUM_POINTS, num_outputs)))
    return Exact() if name == "exact" else InducingRows(points, None, 1e-10)


def models_of_tasks(regime="exact", likelihoods=None, sizes=(2, 3, 1), num_tasks=3, **options):
    """Return ordinary models, one for each task."""
    rng = np.random.default_rng(5)
    likelihoods = likelihoods or [Gaussian(np.log([level])) for level in np.linspace(0.3, 0.9, num_tasks)]
    weights = weights_of_tasks(num_tasks, sizes, **options)
    return [
        Model(own, Dense(sizes), likelihood, regime_of(regime, rng, sizes[-1]))
        for own, likelihood in zip(weights, likelihoods, strict=True)
    ]


def data_of(num_rows=NUM_ROWS, num_labels=None):
    """Return every task's own rows, and the table in which they stand side by side."""
    rng = np.random.default_rng(1)

    def targets(n):
        return rng.standard_normal((n, 1)) if num_labels is None else rng.integers(0, num_labels, (n, 1)).astype(float)

    own = [(rng.standard_normal((n, 2)), targets(n)) for n in num_rows]
    most = max(num_rows)
    x = np.hstack([np.pad(x, ((0, most - len(x)), (0, 0))) for x, _ in own])
    y = np.hstack([np.pad(y, ((0, most - len(y)), (0, 0)), constant_values=np.nan) for _, y in own])
    return own, Batch(x, y, np.ones(most))


def lengthened(x, y, num_rows: int) -> Batch:
    """Return a task's rows with others that weigh nothing: one program serves all tasks."""
    extra = ((0, num_rows - len(x)), (0, 0))
    return Batch(np.pad(x, extra), np.pad(y, extra), (np.arange(num_rows) < len(x)) * 1.0)


terms_of = quickly(elbo_terms)
LOCAL = {"input_kernel": kernels.RBF()}
CASES = {
    "exact, projected": {**LOCAL, "projection": Projection((1,))},
    "exact, global, two layers below": {"sizes": (2, 3, 3, 1)},
    "exact, full, one GP per layer": {
        **LOCAL,
        "weight_gp": "per_layer",
        "conditional": Full(),
        "heteroscedastic": True,
    },
    "inducing_rows": {**LOCAL, "regime": "inducing_rows"},
    "pseudo_observations, classes": {
        **LOCAL,
        "regime": "pseudo_observations",
        "sizes": (2, 3, 3),
        "likelihoods": [Categorical()] * 3,
    },
}
FIRST = "exact, projected"


@pytest.fixture(params=[FIRST, *(pytest.param(c, marks=pytest.mark.slow) for c in CASES if c != FIRST)])
def case(request):
    """Return the tasks' models, their rows, and the table."""
    models = models_of_tasks(**CASES[request.param])
    return models, *data_of(num_labels=3 if "classes" in request.param else None)


# --- the model ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"input_kernel": kernels.Periodic(1.0), "projection": Projection((2,))}])
def test_a_task_is_split_and_joined_to_the_same_bits(options):
    weights = weights_of_tasks(1, **options)[0]
    shared, private = split(weights)
    assert same_bits(joined(shared, private), weights)
    assert jax.tree.structure(joined(shared, private)) == jax.tree.structure(weights)
    assert len(leaves(shared)) + len(leaves(private)) == len(leaves(weights))


def test_the_output_layer_shares_its_gp_with_no_layer_below():
    assert weights_of_tasks(1)[0].output.group is None


def test_the_joint_bound_is_the_sum_over_tasks_with_one_kl_of_what_is_shared(case):
    models, own, batch = case
    with jax.enable_x64(True):
        model = together(models)
        noise = draw_normals(make_key(0), model.sizes(), len(batch.x), 3, dtype=jnp.float64)
        terms, jitter = terms_of(model, noise, batch)
        alone = [terms_of(one, noise, lengthened(*rows, len(batch.x))) for one, rows in zip(models, own, strict=True)]
    assert terms.keys() == alone[0][0].keys()
    for name, value in terms.items():
        each = [float(one[name]) for one, _ in alone]
        if name in ("kl_z", "kl_u"):
            assert len(set(each)) == 1
        np.testing.assert_allclose(value, each[0] if name in ("kl_z", "kl_u", "kl_scale") else sum(each), rtol=1e-9)
    assert jitter == alone[0][1]


def test_rows_that_a_task_does_not_have_change_neither_the_bound_nor_its_slopes():
    models, (_, batch) = models_of_tasks(**CASES[FIRST]), data_of()
    missing = np.repeat(np.isnan(batch.y), 2, axis=1)
    others = Batch(np.where(missing, 7.0, batch.x), batch.y, batch.weight)
    with jax.enable_x64(True):
        model = jax.tree.map(jnp.asarray, together(models))
        noise = draw_normals(make_key(0), model.sizes(), len(batch.x), 1, dtype=jnp.float64)
        value_and_slopes = quickly(eqx.filter_value_and_grad(lambda m, b: elbo(elbo_terms(m, noise, b)[0])))
        first, second = (value_and_slopes(model, rows) for rows in (batch, others))
    assert all(np.all(np.isfinite(leaf)) for leaf in leaves(first))
    for a, b in zip(leaves(first), leaves(second), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@quickly
def parts_of_draw(draw_of, model, noise):
    """Return z, the explicit weights below and V of a draw."""
    draw = draw_of(model, noise)
    return draw.z, draw.weights(jnp.ones((2, 2)), jnp.zeros((2, 0))), draw.projections


def draw_of_task(index):
    def draw(weights, noise):
        return weights.prepared().draw(noise).task(jax.tree.map(lambda leaf: leaf[index], weights.private))

    return draw


def draw_alone(weights, noise):
    return weights.prepared().draw(noise)


def test_all_tasks_have_the_draw_of_the_shared_parts_that_each_would_have_alone():
    models = models_of_tasks(**CASES[FIRST])
    weights = together(models).weights
    noise = jax.tree.map(lambda leaf: leaf[0], draw_shared_normals(make_key(0), weights.sizes(), 1, jnp.float32))
    found = [parts_of_draw(draw_of_task(index), weights, noise) for index in (0, 2)]
    alone = [parts_of_draw(draw_alone, models[index].weights, noise) for index in (0, 2)]
    assert same_bits(found, alone)
    assert same_bits(found[0][:2], found[1][:2])
    assert not same_bits(found[0][2], found[1][2])


def test_the_program_does_not_grow_with_the_number_of_tasks():
    def size(num_tasks):
        model = together(models_of_tasks(num_tasks=num_tasks, **LOCAL))
        _, batch = data_of((5,) * num_tasks)
        noise = draw_normals(make_key(0), model.sizes(), 5, 2)
        arrays, static = eqx.partition(model, eqx.is_array)
        program = jax.make_jaxpr(lambda a: elbo(elbo_terms(eqx.combine(a, static), noise, batch)[0]))
        return str(program(arrays)).count("\n")

    assert size(2) == size(7)


def test_the_posterior_of_all_tasks_at_once_is_refused():
    with pytest.raises(NotImplementedError, match=r"one task; take `task\(index\)`"):
        together(models_of_tasks()).output.conditioned(None, None)


def test_a_task_taken_out_has_its_own_rows_and_no_others():
    own, batch = data_of()
    output = together(models_of_tasks()).output
    assert output.task(1).rows is None
    kept = output.with_rows(batch).task(1).rows.value
    assert np.array_equal(kept.x[kept.weight > 0], own[1][0].astype(kept.x.dtype))
    assert np.array_equal(kept.y[kept.weight > 0], own[1][1].astype(kept.y.dtype))


@pytest.mark.slow
def test_training_with_the_shared_parts_held_moves_every_private_leaf_and_no_shared_one():
    model = together(models_of_tasks("inducing_rows", input_kernel=kernels.Periodic(1.0), projection=Projection((2,))))
    model = eqx.tree_at(lambda m: m.weights, model, model.weights.with_shared_held())
    _, batch = data_of()
    fit = train(model, make_data(batch.x, batch.y), make_key(0), recipe=Recipe(40))
    before, after = (jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), m) for m in (model, fit.model))
    assert same_bits(before.weights.shared, after.weights.shared)
    private = [(m.weights.private, m.likelihood, m.output) for m in (before, after)]
    assert all(not np.array_equal(a, b) for a, b in zip(*map(leaves, private), strict=True))


def test_a_new_task_starts_at_the_mean_of_known_ones_but_with_its_own_period():
    fresh, *known = [split(one)[1] for one in weights_of_tasks(4, input_kernel=kernels.Periodic(1.0))]
    start = private_start(fresh, known)
    assert np.array_equal(start.input_kernel.log_period, fresh.input_kernel.log_period)
    for part in (lambda p: p.weight_noise.log_std, lambda p: p.input_kernel.log_lengthscale):
        np.testing.assert_allclose(part(start), np.mean([part(task) for task in known], axis=0))


def test_a_new_task_starts_with_the_noise_of_known_ones_unless_it_is_given():
    known = [Gaussian(np.log([0.2])), Gaussian(np.log([0.8]))]
    np.testing.assert_allclose(likelihood_start(Gaussian(np.log([0.1])), known).noise, 0.4, rtol=1e-6)
    given = Gaussian(np.log([0.1]), learned=False)
    assert likelihood_start(given, [Gaussian(np.log([0.2]), learned=False)]).log_noise == np.log([0.1])


# --- the estimators ----------------------------------------------------------------------

RNG = np.random.default_rng(0)
SMALL = {"hidden_layer_sizes": (4,), "n_inducing": 6, "n_predict_draws": 4, "max_iter": 30, "adapt_iter": 20}
SMALL |= {"random_state": 0, "input_kernel": kernels.Periodic()}
TEST = RNG.uniform(-2, 2, (9, 1))


def wave(frequency, num_rows, offset=0.0, scale=1.0):
    x = RNG.uniform(-2, 2, (num_rows, 1))
    y = np.sin(2 * np.pi * frequency * x[:, 0]) + 0.1 * RNG.standard_normal(num_rows)
    return x, offset + scale * y


def classes(num_rows, labels, angle):
    x = RNG.standard_normal((num_rows, 2))
    side = x @ [np.cos(angle), np.sin(angle)]
    return x, np.array(labels)[np.digitize(side, np.linspace(-0.5, 0.5, len(labels) - 1))]


WAVES = {"slow": wave(0.4, 20), 2: wave(0.6, 15), "fast": wave(0.9, 23)}
NEW = wave(0.7, 12)
PLANES = [classes(30, ["low", "mid", "top"], 0.0), classes(25, ["low", "top"], 0.5)]


@pytest.fixture(scope="module")
def waves():
    return MultiTaskRegressor(**SMALL).fit(WAVES).adapt("new", *NEW)


@pytest.fixture(scope="module")
def planes():
    model = MultiTaskClassifier(**{**SMALL, "input_kernel": "rbf"}).fit(PLANES)
    return model.adapt("new", *classes(10, ["mid", "top"], 1.0))


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
    total = terms["log_likelihood"] - terms["kl_z"] - terms["kl_u"] - terms["kl_scale"]
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
    header, arrays = saving._read(path)
    content = json.loads(header["content"])
    shared = content["estimator"]["state"]["shared_"]
    shared["class"] = "metaprior.weights.multitask:Shared"
    text = json.dumps(content)
    header |= {"content": text, "sha256": saving._digest(text, arrays)}
    path.write_bytes(to_bytes(arrays, metadata=header))
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


@pytest.mark.parametrize("tasks", [{}, [], WAVES["slow"], {"a": WAVES["slow"][0]}, WAVES["slow"][0], None])
def test_what_is_no_set_of_tasks_is_told(tasks):
    with pytest.raises(ValueError, match=r"expected at least one task, as a dict of name to \(X, y\)"):
        MultiTaskRegressor(**SMALL).fit(tasks)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ({"a": WAVES["slow"], "b": (np.ones((5, 2)), np.arange(5.0))}, "task 'b': expected 1 features.* got 2"),
        ({"a": WAVES["slow"], "b": (NEW[0], np.ones((12, 2)))}, "task 'b': expected 1 targets.* got 2"),
        ({1.5: WAVES["slow"]}, "expected text or a whole number as the name"),
    ],
)
def test_tasks_that_do_not_go_together_are_told(tasks, message):
    with pytest.raises(ValueError, match=message):
        MultiTaskRegressor(**SMALL).fit(tasks)


def test_a_task_of_the_fit_cannot_be_adapted_and_an_adapted_one_is_learned_anew(waves):
    with pytest.raises(ValueError, match="'slow' is a task of the fit"):
        waves.adapt("slow", *NEW)
    again = pickle.loads(pickle.dumps(waves)).adapt("new", *wave(0.8, 12))
    assert list(again.estimators_) == list(waves.estimators_)
    assert not np.array_equal(again.predict(TEST, task="new"), waves.predict(TEST, task="new"))


def test_an_unknown_task_is_told(waves):
    with pytest.raises(ValueError, match=r"expected one of \['slow', 2, 'fast', 'new'\]; got 'slwo'"):
        waves.predict(TEST, task="slwo")


@pytest.mark.slow
def test_unknown_labels_are_told(planes):
    with pytest.raises(ValueError, match=r"task 'x': expected labels of \['low', 'mid', 'top'\]; got \['mid', 'up'\]"):
        planes.adapt("x", *classes(10, ["mid", "up"], 1.0))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"adapt_iter": -1}, "adapt_iter: expected a whole number of at least 0; got -1"),
        ({"warm_start": True}, "warm_start: expected False with several tasks"),
        ({"n_restarts": 2}, "n_restarts: expected 0 with several tasks"),
        ({"output_layer": "drawn"}, "output_layer: expected 'auto' .*fit a MetaGPRegressor for every.*got 'drawn'"),
        ({"weight_gp": "shared"}, "weight_gp: expected 'auto' or 'per_layer' with several tasks.*got 'shared'"),
        ({"conditional": "fitc"}, "conditional: expected 'pathwise' or 'full' with several tasks.*got 'fitc'"),
        ({"uncertain_hypers": True}, "uncertain_hypers: expected 'auto' or False with several tasks"),
        ({"local_layers": (0, 1)}, r"local_layers: expected None or \(-1,\) with several tasks.*got \(0, 1\)"),
    ],
)
def test_parameters_that_make_no_sense_for_several_tasks_are_told(changed, message):
    with pytest.raises(ValueError, match=message):
        MultiTaskRegressor(**{**SMALL, **changed}).fit(WAVES)


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
    scratch = MetaGPRegressor(**params).fit(*new)
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
    scratch = MetaGPRegressor(random_state=0).fit(*new)
    assert rmse(model.predict(x, task="new"), y) < 0.5 * rmse(scratch.predict(x), y)
