"""Several tasks: their joint ELBO is what the tasks' own add up to; a new task moves nothing that is shared."""

import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import metaprior
from metaprior import MetaGPClassifier, MetaGPRegressor, kernels
from metaprior.inference import Batch, Recipe, elbo, elbo_terms, make_data, steps, train
from metaprior.likelihoods import Bernoulli, Categorical, Gaussian, Poisson
from metaprior.mapping import FITC, Full, Pathwise
from metaprior.model import Model, release_times
from metaprior.multitask import MultiTaskClassifier, MultiTaskRegressor
from metaprior.multitask.likelihood import TasksLikelihood
from metaprior.multitask.start import likelihood_start, private_start
from metaprior.networks import Dense
from metaprior.noise import Noise, make_key, sample_noise
from metaprior.weights.multitask import MultiTask, joined, split
from small import small_metagp

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")

ESTIMATORS = "metaprior.multitask.estimators"
SIZES = (2, 3, 1)
NUM_ROWS = (7, 4, 6)


def leaves(tree: object) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def same_bits(a: object, b: object) -> bool:
    return all(u.tobytes() == v.tobytes() for u, v in zip(leaves(a), leaves(b), strict=True))


def tasks_of(conditional, num_tasks=3, **kwargs):
    """Return MetaGPs with one shared part and private parts that all differ."""
    found = [small_metagp(conditional, SIZES, seed=seed, **kwargs) for seed in range(num_tasks)]
    shared, _ = split(found[0])
    return [joined(shared, split(one)[1]) for one in found]


def data_of(num_rows=NUM_ROWS):
    """Return every task's own rows, and the table in which they stand side by side."""
    rng = np.random.default_rng(1)
    own = [(rng.standard_normal((n, 2)), rng.standard_normal((n, 1))) for n in num_rows]
    most = max(num_rows)
    x = np.hstack([np.pad(x, ((0, most - len(x)), (0, 0))) for x, _ in own])
    y = np.hstack([np.pad(y, ((0, most - len(y)), (0, 0)), constant_values=np.nan) for _, y in own])
    return own, Batch(*map(jnp.asarray, (x, y, np.ones(most))))


def noise_of_task(noise: Noise, index: int, num_tasks: int) -> Noise:
    """Cut one task's normals out of the joint ones."""
    own = [jnp.split(part, num_tasks, axis=-1)[index] for part in (noise.weights, noise.spectral, noise.rows)]
    return Noise(noise.units, *own)


def lengthened(x, y, num_rows: int) -> Batch:
    """Return a task's rows with others that weigh nothing: one program serves all tasks."""
    extra = ((0, num_rows - len(x)), (0, 0))
    return Batch(*map(jnp.asarray, (np.pad(x, extra), np.pad(y, extra), (np.arange(num_rows) < len(x)) * 1.0)))


terms_of = eqx.filter_jit(elbo_terms)

CONDITIONALS = {
    "global": (Pathwise(num_features=5, num_noise_features=3), {}),
    "local": (Pathwise(num_features=5, num_noise_features=3), {"input_kernel": kernels.RBF().bound_to(2)}),
    "row noise": (FITC(), {"input_kernel": kernels.RBF().bound_to(2), "local_layers": (-1,)}),
    "per layer": (Full(), {"mapping": "layer", "heteroscedastic": True}),
}


@pytest.fixture(params=["local", *(pytest.param(c, marks=pytest.mark.slow) for c in CONDITIONALS if c != "local")])
def model(request):
    conditional, kwargs = CONDITIONALS[request.param]
    likelihoods = [Gaussian(np.log([level])) for level in (0.3, 0.5, 0.9)]
    return Model(MultiTask.of(tasks_of(conditional, **kwargs)), Dense(SIZES), TasksLikelihood.of(likelihoods))


# --- the model ---------------------------------------------------------------------------


def test_a_task_is_split_and_joined_to_the_same_bits():
    weights = small_metagp(Pathwise(), SIZES, input_kernel=kernels.Periodic(1.0).bound_to(2), mapping="layer")
    shared, private = split(weights)
    assert same_bits(joined(shared, private), weights)
    assert len(leaves(shared)) + len(leaves(private)) == len(leaves(weights))


def test_the_joint_elbo_is_the_sum_over_tasks_with_one_kl_of_the_latents(model):
    with jax.enable_x64(True):
        own, batch = data_of()
        noise = sample_noise(make_key(0), model.weights.sizes(), len(batch.x), 3, dtype=jnp.float64)
        terms, _ = terms_of(model, noise, batch)
        expected = {"log_likelihood": 0.0, "kl_u": 0.0}
        for index, (x, y) in enumerate(own):
            one = Model(model.weights.task(index), model.network, model.likelihood.task(index))
            part = noise_of_task(noise, index, len(own))
            alone, _ = terms_of(one, part, lengthened(x, y, len(batch.x)))
            expected = {name: total + float(alone[name]) for name, total in expected.items()}
        expected["kl_z"] = float(alone["kl_z"])
    assert terms.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(terms[name], value, rtol=1e-9)


@eqx.filter_jit
def both_ways(model, noise, x):
    draw = model.weights.prepared().draw(noise)
    return pushed_by_layers(model, draw, noise, x), draw.outputs(model.network, x, noise.rows)


def pushed_by_layers(model, draw, noise, x):
    h, layers = x.reshape(len(x), 3, 2), draw.at(x, noise.rows)
    for number, layer in enumerate(layers):
        h = layer(jnp.concatenate([h, jnp.ones((*h.shape[:-1], 1))], axis=-1))
        h = jnp.tanh(h) if number < len(layers) - 1 else h
    return h[..., 0]


@pytest.mark.slow
def test_layers_pushed_one_by_one_give_the_outputs(model):
    with jax.enable_x64(True):
        _, batch = data_of()
        noise = sample_noise(make_key(0), model.weights.sizes(), len(batch.x), 1, dtype=jnp.float64)
        noise, x = jax.tree.map(lambda leaf: leaf[0], noise), jnp.asarray(batch.x)
        pushed, outputs = both_ways(model, noise, x)
        np.testing.assert_allclose(pushed, outputs, rtol=1e-9, atol=1e-12)


@eqx.filter_jit
def weights_of(weights, noise, x):
    return weights.prepared().draw(noise).weights(x, noise.rows)


@pytest.mark.slow
def test_explicit_weights_are_those_of_the_tasks():
    with jax.enable_x64(True):
        weights = MultiTask.of(tasks_of(Pathwise(num_features=5), input_kernel=kernels.RBF().bound_to(2)))
        x = jnp.asarray(np.random.default_rng(0).standard_normal((4, 6)))
        noise = sample_noise(make_key(0), weights.sizes(), 4, 1, dtype=jnp.float64)
        found = weights_of(weights, jax.tree.map(lambda leaf: leaf[0], noise), x)
        for index in range(3):
            own = jax.tree.map(lambda leaf: leaf[0], noise_of_task(noise, index, 3))
            alone = weights_of(weights.task(index), own, x[:, 2 * index : 2 * index + 2])
            for layer, expected in zip(found, alone, strict=True):
                np.testing.assert_allclose(layer[index], expected, rtol=1e-9)


def test_the_program_does_not_grow_with_the_number_of_tasks():
    def size(num_tasks):
        weights = MultiTask.of(tasks_of(Pathwise(), num_tasks, input_kernel=kernels.RBF().bound_to(2)))
        model = Model(weights, Dense(SIZES), TasksLikelihood.of([Gaussian(np.zeros(1))] * num_tasks))
        _, batch = data_of((5,) * num_tasks)
        sizes = weights.sizes()
        shapes = (sizes.units,), (sizes.weights,), (sizes.spectral,), (5, sizes.per_row)
        noise = Noise(*[jnp.zeros((2, *shape)) for shape in shapes])
        arrays, static = eqx.partition(model, eqx.is_array)
        program = jax.make_jaxpr(lambda a: elbo(elbo_terms(eqx.combine(a, static), noise, batch)[0]))
        return str(program(arrays)).count("\n")

    assert size(2) == size(7)


@pytest.mark.parametrize(
    ("likelihoods", "num_functions"),
    [
        ([Gaussian(np.log([0.3, 0.6])), Gaussian(np.log([0.5, 0.2]))], 2),
        pytest.param([Poisson(), Poisson()], 1, marks=pytest.mark.slow),
        pytest.param([Bernoulli(), Bernoulli()], 1, marks=pytest.mark.slow),
        ([Categorical(), Categorical()], 3),
    ],
)
def test_the_likelihood_of_tasks_is_the_sum_of_those_observed(likelihoods, num_functions):
    rng = np.random.default_rng(0)
    joint = TasksLikelihood.of(likelihoods)
    f = jnp.asarray(rng.standard_normal((4, 5, 2 * num_functions)), jnp.float32)
    num_targets = 1 if isinstance(likelihoods[0], Categorical) else num_functions
    y = rng.integers(0, 2, (5, 2 * num_targets)).astype(np.float32)
    y[3, :num_targets] = np.nan
    y = jnp.asarray(np.broadcast_to(y, (4, *y.shape)))
    first, second = jnp.split(f, 2, axis=-1)
    each = [p.log_prob(g, v) for p, g, v in zip(likelihoods, (first, second), jnp.split(y, 2, axis=-1), strict=True)]
    expected = np.where(np.isnan(y[..., 0]), 0, each[0]) + each[1]
    np.testing.assert_allclose(joint.log_prob(f, y), expected, rtol=1e-5)
    for name in ("mean", "variance"):
        own = [getattr(p, name)(g) for p, g in zip(likelihoods, (first, second), strict=True)]
        np.testing.assert_allclose(getattr(joint, name)(f), np.concatenate(own, axis=-1), rtol=1e-5)


def test_a_target_that_was_not_observed_has_no_gradient():
    joint = TasksLikelihood.of([Gaussian(np.log([0.3])), Gaussian(np.log([0.5]))])
    y = jnp.array([[0.2, jnp.nan]])
    by_f = jax.grad(lambda f: jnp.sum(joint.log_prob(f, y)))(jnp.array([[0.5, 0.7]]))
    by_noise = jax.grad(lambda p: jnp.sum(p.log_prob(jnp.array([[0.55, 0.7]]), y)))(joint).parts.log_noise
    assert by_f[0, 0] != 0
    assert by_f[0, 1] == 0
    assert by_noise[0, 0] != 0
    assert by_noise[1, 0] == 0


def test_nodes_over_all_tasks_are_refused():
    with pytest.raises(NotImplementedError, match="one task"):
        TasksLikelihood.of([Gaussian(np.zeros(1))] * 2).nodes(jnp.zeros((1, 2)))


@pytest.mark.slow
def test_training_with_the_shared_parts_held_moves_every_private_leaf_and_no_shared_one():
    weights = MultiTask.of(tasks_of(Pathwise(num_features=8), input_kernel=kernels.Periodic(1.0).bound_to(2)))
    likelihood = TasksLikelihood.of([Gaussian(np.log([0.3]))] * 3)
    model = Model(weights.with_shared_held(), Dense(SIZES), likelihood)
    _, batch = data_of()
    fit = train(model, make_data(np.asarray(batch.x), np.asarray(batch.y)), make_key(0), recipe=Recipe(40))
    before, after = (jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), m) for m in (model, fit.model))
    assert same_bits(before.weights.shared, after.weights.shared)
    moved = [
        not np.array_equal(a, b)
        for a, b in zip(leaves(before.weights.private), leaves(after.weights.private), strict=True)
    ]
    assert all(moved)
    assert not np.array_equal(before.likelihood.parts.log_noise, after.likelihood.parts.log_noise)


def test_the_noise_of_every_task_is_released_as_that_of_one_task():
    likelihood = TasksLikelihood.of([Gaussian(np.log([0.3]))] * 3)
    model = Model(MultiTask.of(tasks_of(Pathwise())), Dense(SIZES), likelihood)
    assert np.all(release_times(model).likelihood.parts.log_noise == Gaussian(np.zeros(1)).hold)


def test_a_new_task_starts_at_the_mean_of_known_ones_but_at_its_own_inputs_and_period():
    kernel = kernels.Periodic(1.0).bound_to(2)
    fresh, *known = tasks_of(Pathwise(), 4, input_kernel=kernel)
    start = private_start(fresh, known)
    assert np.array_equal(start.mappings[0].code_aux, fresh.mappings[0].code_aux)
    assert np.array_equal(start.input_kernel.log_period, fresh.input_kernel.log_period)
    for part in ("mean", "log_diagonal", "code_in"):
        expected = np.mean([getattr(task.mappings[0], part) for task in known], axis=0)
        np.testing.assert_allclose(getattr(start.mappings[0], part), expected)


def test_a_new_task_starts_with_the_noise_of_known_ones_unless_it_is_given():
    known = [Gaussian(np.log([0.2])), Gaussian(np.log([0.8]))]
    np.testing.assert_allclose(likelihood_start(Gaussian(np.log([0.1])), known).noise, 0.4, rtol=1e-6)
    given = Gaussian(np.log([0.1]), learned=False)
    assert likelihood_start(given, [Gaussian(np.log([0.2]), learned=False)]).log_noise == np.log([0.1])


# --- the estimators ----------------------------------------------------------------------

RNG = np.random.default_rng(0)
SMALL = {"hidden_layer_sizes": (4,), "num_inducing": 6, "num_predict_draws": 4, "max_iter": 30, "adapt_iter": 20}
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
    total = terms["log_likelihood"] - terms["kl_z"] - terms["kl_u"]
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


@pytest.mark.parametrize(("changed", "solved"), [({}, 5), ({"adapt_iter": 3}, 2), ({"early_stopping": True}, 0)])
def test_what_is_solved_is_trained_from_late_in_the_recipe_and_what_is_not_from_its_start(
    waves, monkeypatch, changed, solved
):
    """Rows that are held out are not solved for."""
    counts, begins = [], []
    monkeypatch.setattr(f"{ESTIMATORS}.gauss_newton", lambda model, x, y, steps, seed: counts.append(steps) or model)
    trained = MetaGPRegressor._trained

    def told(self, *args, recipe):
        begins.append(recipe.begins)
        return trained(self, *args, recipe=recipe)

    monkeypatch.setattr(MetaGPRegressor, "_trained", told)
    model = pickle.loads(pickle.dumps(waves)).set_params(**changed).adapt("new", *NEW)
    assert counts == [solved] * (solved > 0)
    assert begins == [max(0.7, 1 - (model.adapt_iter - solved) / 1000) if solved else 0.0]


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
        ({"adapt_iter": 0}, "adapt_iter: expected a whole number of at least 1; got 0"),
        ({"warm_start": True}, "warm_start: expected False with several tasks"),
        ({"n_restarts": 2}, "n_restarts: expected 0 with several tasks"),
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
    model.adapt("new", *new)
    assert model.estimator("new").n_iter_ == scratch.n_iter_ // 10
    assert rmse(model.predict(x, task="new"), y) < 1.05 * rmse(scratch.predict(x), y)
    # nor is a tenth of the fewest steps too few: ten adapt as well, where a network from scratch needs over a hundred
    model.set_params(adapt_iter=10).adapt("new", *new)
    few = MetaGPRegressor(**params, max_iter=100).fit(*new)
    assert rmse(model.predict(x, task="new"), y) < 1.05 * rmse(scratch.predict(x), y)
    assert rmse(few.predict(x), y) > 1.05 * rmse(scratch.predict(x), y)
