"""The joint bound of several tasks is what the tasks' own add up to; a new task starts from the known ones."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compared import leaves, same_bits
from metaprior import kernels
from metaprior.inference import Batch, Recipe, elbo, elbo_terms, make_data, train
from metaprior.inputs import Projection
from metaprior.likelihoods import Categorical, Gaussian
from metaprior.model import Model
from metaprior.multitask.start import likelihood_start, private_start
from metaprior.multitask.tasks import together
from metaprior.networks import Dense
from metaprior.output_layer import Exact, InducingRows, PseudoObservations
from metaprior.random import draw_normals, draw_shared_normals, make_key
from metaprior.weight_gp import Full
from metaprior.weights import MetaGPSpec, initial_metagp
from metaprior.weights.multitask import joined, split
from written import quickly

NUM_ROWS = (7, 4, 6)
NUM_POINTS = 3


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
    with pytest.raises(NotImplementedError, match=r"one task; use `task\(index\)`"):
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
