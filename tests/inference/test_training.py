"""The compiled loop: reproducible, compiled once, and back on its feet after a bad turn."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from metaprior.estimators.stopping import FlatElbo, HeldOutScore
from metaprior.inference import (
    ADAM,
    ConvergenceTrouble,
    Progress,
    Recipe,
    Settling,
    StepConfig,
    make_data,
    runs,
    steps,
    train,
)
from metaprior.inference.data import padded_size
from metaprior.inputs import Projection
from metaprior.kernels import RBF, Kernel, Periodic
from metaprior.likelihoods import Gaussian, Likelihood, StudentT
from metaprior.likelihoods.gaussian import NOISE_HOLD
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.random import make_key
from metaprior.weights import MetaGPSpec, initial_metagp
from small import StopWhen

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.5, 1.5, (20, 1))
Y = np.sin(3 * X) + 0.1 * RNG.standard_normal(X.shape)


def tiny(
    input_kernel: Kernel | None = None,
    likelihood: Likelihood | None = None,
    hidden: int = 3,
    jitter: float = 1e-4,
    projection: Projection | None = None,
) -> Model:
    network = Dense((1, hidden, 1))
    kernel = None if input_kernel is None else input_kernel.bound_to(1)
    spec = MetaGPSpec(n_inducing=4, input_kernel=kernel, jitter=jitter, projection=projection)
    weights = initial_metagp(spec, network.weight_layers, X, np.random.default_rng(0))
    return Model(weights, network, likelihood or Gaussian(np.log([0.1])))


def fitted(model: Model | None = None, num_steps: int = 30, seed: int = 0, rate: float = 0.02, **kwargs):
    model = tiny() if model is None else model
    return train(model, make_data(X, Y), make_key(seed), recipe=Recipe(num_steps, rate), **kwargs)


def leaves(tree: object) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def same_bits(a: object, b: object) -> bool:
    return all(np.array_equal(u, v) for u, v in zip(leaves(a), leaves(b), strict=True))


def after_steps(model: Model, stop: int, seed: int = 0) -> Model:
    """Return the model after `stop` of 100 steps, at a high rate so that what is free has moved."""
    state = steps.start_state(model, ADAM, np.float32)
    recipe = Recipe(*[np.asarray(v, np.float32) for v in Recipe(100, 0.05)])
    data, one = make_data(X, Y), np.float32(1.0)
    return steps.step_block(state, make_key(seed), data, recipe, one, np.int32(stop), StepConfig(), ADAM)[0].model


def test_the_same_key_gives_the_same_bits():
    first, second = fitted(num_steps=130), fitted(num_steps=130)
    assert same_bits(first.model, second.model)
    assert all(np.array_equal(first.history[name], second.history[name]) for name in first.history)


def test_another_key_gives_another_run():
    assert not same_bits(fitted(seed=0).model, fitted(seed=1).model)


@pytest.fixture
def traces(monkeypatch):
    """Count how often the loop's body is traced."""
    counted = eqx.debug.assert_max_traces(steps.one_step, max_traces=None)
    monkeypatch.setattr(steps, "one_step", counted)
    return lambda: eqx.debug.get_num_traces(counted)


def test_a_run_compiles_once(traces):
    seen: list[int] = []
    fitted(tiny(hidden=5), num_steps=350, listener=lambda _: seen.append(traces()))
    assert len(seen) == 4
    assert seen[0] > 0
    assert seen == [seen[0]] * 4


def test_nothing_recompiles_when_only_values_change(traces):
    model = tiny(hidden=6)
    fitted(model)
    first = traces()
    assert first > 0
    more = np.concatenate([X, X[:3]])  # 23 rows: padded to 24 as 20 are
    train(model, make_data(2 * X, -Y), make_key(5), recipe=Recipe(45, 0.01))
    train(model, make_data(more, more), make_key(5), recipe=Recipe(30, 0.5, 0.1, 0.9, 0.5, 0.1, 0.2, 0.3, 0.4))
    assert traces() == first


def test_the_trace_counter_sees_a_new_shape(traces):
    fitted(tiny(hidden=6))
    before = traces()
    train(tiny(hidden=6), make_data(np.tile(X, (2, 1)), np.tile(Y, (2, 1))), make_key(0), recipe=Recipe(5))
    assert traces() > before


@pytest.mark.parametrize(("rows", "padded"), [(1, 16), (16, 16), (17, 24), (24, 24), (25, 32), (33, 48), (512, 512)])
def test_sizes_climb_a_ladder_of_two_an_octave(rows, padded):
    assert padded_size(rows) == padded


@pytest.mark.parametrize(("rows", "padded"), [(513, 576), (576, 576), (927, 960), (1024, 1024), (1025, 1152)])
def test_from_512_rows_on_the_ladder_has_eight_sizes_an_octave(rows, padded):
    assert padded_size(rows) == padded


def test_a_bound_is_flat_where_two_windows_rise_by_less_than_is_asked_and_not_before():
    settling = Settling(window=10, per_row=0.0, least=1.0, patience=2)
    rising = np.repeat(5.0 * np.arange(6), 10)  # by 5 nats a window
    level = np.concatenate([rising, np.full(40, rising[-1])])
    assert settling.flat_at(rising, 100) is None
    assert settling.flat_at(level, 100) == 80  # two windows after the last that rose
    assert settling._replace(per_row=0.1).flat_at(rising, 100) == 40  # 10 nats a window are asked of 100 rows


def test_padded_rows_weigh_nothing():
    data = make_data(X, Y)
    assert data.x.shape == (24, 1)
    assert data.weight.sum() == data.num_rows == 20


def poison(monkeypatch, bad_calls: int) -> list[dict]:
    """Let the first `bad_calls` blocks of steps end in NaN; return what every block of steps was called with."""
    calls: list[dict] = []
    step_block = steps.step_block

    def bad_block(state, key, data, recipe, backoff, *rest):
        calls.append({"model": state.model, "step": int(state.step), "backoff": float(backoff), "key": key})
        new, records = step_block(state, key, data, recipe, backoff, *rest)
        if len(calls) <= bad_calls:
            new = eqx.tree_at(lambda s: s.model.weights.log_scale, new, replace_fn=lambda leaf: leaf * jnp.nan)
        return new, records

    monkeypatch.setattr(steps, "step_block", bad_block)
    return calls


def test_a_non_finite_block_is_undone_and_retried_with_half_the_step(monkeypatch):
    calls = poison(monkeypatch, bad_calls=2)
    with pytest.warns(ConvergenceTrouble, match="non-finite after step 0.*0.25 of the step size"):
        fit = fitted(num_steps=130)
    assert [(call["step"], call["backoff"]) for call in calls] == [(0, 1.0), (0, 0.5), (0, 0.25), (100, 0.25)]
    assert same_bits(calls[0]["model"], calls[2]["model"])
    assert not np.array_equal(jax.random.key_data(calls[0]["key"]), jax.random.key_data(calls[1]["key"]))
    assert fit.roll_backs == 2
    assert fit.num_steps == len(fit.history["elbo"]) == 130
    assert all(np.isfinite(leaf).all() for leaf in leaves(fit.model))


def test_a_run_that_stays_non_finite_is_given_up(monkeypatch):
    poison(monkeypatch, bad_calls=100)
    times = runs.MAX_ROLL_BACKS + 1
    with (
        pytest.warns(ConvergenceTrouble),
        pytest.raises(FloatingPointError, match=f"non-finite {times} times.*lower the learning rate"),
    ):
        fitted()


def test_an_enormous_learning_rate_is_cut_until_the_run_is_finite():
    with pytest.warns(ConvergenceTrouble, match="non-finite"):
        fit = fitted(rate=200.0)
    assert 0 < fit.roll_backs <= runs.MAX_ROLL_BACKS
    assert np.isfinite(fit.history["elbo"]).all()


def test_a_healthy_run_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceTrouble)
        fit = fitted()
    assert fit.roll_backs == 0
    assert fit.jitter == pytest.approx(1e-4)


def test_coincident_inducing_codes_take_more_jitter_and_it_is_reported():
    model = tiny(jitter=1e-12)
    sparse_gp = model.weights.sparse_gps[0]
    same = eqx.tree_at(
        lambda m: (m.code_in, m.code_out),
        sparse_gp,
        (np.tile(sparse_gp.code_in[:1], (4, 1)), np.tile(sparse_gp.code_out[:1], (4, 1))),
    )
    model = eqx.tree_at(lambda m: m.weights.sparse_gps, model, (same,))
    with pytest.warns(ConvergenceTrouble, match=r"relative jitter of .* \(usual: 1e-12\)"):
        fit = fitted(model, num_steps=3)
    assert fit.jitter > np.finfo(np.float32).eps / 10
    assert np.isfinite(fit.history["elbo"]).all()


OPTIMIZERS = {
    "sgd": optax.sgd(1e-3, momentum=0.9),
    "clipped adamw on a schedule": optax.chain(
        optax.clip_by_global_norm(10.0), optax.adamw(optax.cosine_decay_schedule(0.02, 300))
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optax_optimizer_raises_the_likelihood(name):
    """With noise and KL left out the objective is a fixed function, and an optimizer that climbs must raise it."""
    recipe = Recipe(300, 1.0, normals_start=1.0, normals_full=2.0, kl_starts=1.0, kl_full=2.0)
    fit = train(tiny(), make_data(X, Y), make_key(0), recipe=recipe, optimizer=OPTIMIZERS[name])
    log_likelihood = fit.history["log_likelihood"]
    assert log_likelihood[-1] > log_likelihood[0] + len(X)  # a nat a datum
    assert fit.roll_backs == 0


@pytest.mark.parametrize("projection", [None, Projection((1,))])
def test_listener_is_told_of_every_block_and_all_terms(projection):
    told: list[Progress] = []
    model = tiny(None if projection is None else RBF(), projection=projection)
    fit = fitted(model, num_steps=250, listener=told.append)
    assert [(p.step, p.num_steps) for p in told] == [(100, 250), (200, 250), (250, 250)]
    names = {"log_likelihood", "kl_z", "kl_u"} | (set() if projection is None else {"kl_V"})
    assert all(p.terms.keys() == names | {"jitter"} for p in told)
    assert fit.history.keys() == names | {"elbo"}
    np.testing.assert_allclose(told[-1].terms["kl_z"], fit.history["kl_z"][200:].mean(), rtol=1e-5)
    assert 0 < told[0].seconds < told[-1].seconds


def test_reported_elbo_is_likelihood_minus_all_of_the_kl():
    history = fitted(num_steps=10).history
    expected = history["log_likelihood"] - history["kl_z"] - history["kl_u"]
    np.testing.assert_allclose(history["elbo"], expected, rtol=4 * np.finfo(np.float32).eps)


def test_stop_is_asked_only_when_the_recipe_has_let_everything_in():
    asked: list[int] = []

    def never(history: dict) -> bool:
        asked.append(len(history["elbo"]))
        return False

    assert not fitted(num_steps=1000, stop_when=StopWhen(never)).converged
    assert asked == [700, 800, 900, 1000]


def test_a_flat_elbo_ends_the_run():
    fit = fitted(num_steps=1000, stop_when=FlatElbo(tol=1e6, patience=1, num_rows=20))
    assert fit.converged
    assert fit.num_steps == len(fit.history["elbo"]) == 800


def test_a_rising_elbo_does_not_end_the_run():
    rule = FlatElbo(tol=0.1, patience=1, num_rows=1)
    found = [rule.should_stop(None, {"elbo": np.array([value])}) for value in (0.0, 1.0, 2.0, 2.05)]
    assert found == [False, False, False, True]


def test_patience_counts_looks_without_a_rise_in_a_row():
    rule = FlatElbo(tol=0.0, patience=2, num_rows=1)
    assert [rule.should_stop(None, {"elbo": np.array([v])}) for v in (0.0, -1.0, 1.0, 1.0, 1.0)] == [
        False,
        False,
        False,
        False,
        True,
    ]


def test_a_held_out_score_that_does_not_rise_ends_the_run():
    rule = HeldOutScore(1e6, 1, make_data(X[:4], Y[:4]), make_key(1))
    fit = fitted(num_steps=1000, stop_when=rule)
    assert fit.converged
    assert fit.num_steps == 800


def test_held_out_score_is_larger_for_the_fitted_model_than_for_the_start():
    rule = HeldOutScore(0.0, 1, make_data(X[:4], Y[:4]), make_key(1))
    start = steps.start_state(tiny(), ADAM, np.float32).model
    assert rule.score(fitted(num_steps=300).model) > rule.score(start)


def test_noise_and_kl_are_let_in_on_a_line():
    recipe = Recipe()
    at = jnp.array([0.0, 0.2, 0.35, 0.5, 0.7, 1.0])
    np.testing.assert_allclose([recipe.temperature(p) for p in at], [0, 0, 0.5, 1, 1, 1], atol=1e-6)
    np.testing.assert_allclose([recipe.kl_weight(p) for p in at], [0, 0, 0.3, 0.6, 1, 1], atol=1e-6)


def test_rate_rises_stays_and_falls_by_a_cosine():
    recipe = Recipe(learning_rate=0.5)
    at = jnp.array([0.02, 0.3, 0.7, 0.85, 1.0])
    np.testing.assert_allclose([recipe.rate(p) for p in at], [0.5, 0.5, 0.5, 0.5 * 0.505, 0.005], rtol=1e-5)
    assert 0 < recipe.rate(jnp.asarray(0.0)) < 0.05


def test_a_late_begin_passes_through_the_rest_of_the_recipe():
    recipe = Recipe(num_steps=100, begins=0.7)
    progress = [float(recipe.progress(jnp.asarray(step))) for step in (0, 50, 100)]
    np.testing.assert_allclose(progress, [0.7, 0.85, 1.0], rtol=1e-6)
    assert recipe.temperature(jnp.asarray(0.7)) == recipe.kl_weight(jnp.asarray(0.7)) == 1
    assert 0 < recipe.rate(jnp.asarray(0.7)) < 0.1 * recipe.learning_rate  # the short rise starts anew


def test_only_the_mean_is_learned_in_the_first_fifth():
    """The temperature is 0 there, so another key changes no bit; after it, it does."""
    assert same_bits(*[after_steps(tiny(), stop=20, seed=seed) for seed in (0, 1)])
    assert not same_bits(*[after_steps(tiny(), stop=40, seed=seed) for seed in (0, 1)])


LOWEST, HIGHEST, START = 0.69, 0.71, np.float32(np.log(0.7))


@pytest.fixture(scope="module")
def states():
    """One model with everything that can be held, after some of its 100 steps."""
    fixed, bounded = RBF(0.7, fixed=("lengthscale",)), RBF(0.7, bounds={"lengthscale": (LOWEST, HIGHEST)})
    kernel = (fixed + bounded) + (RBF(0.7) + Periodic(0.7))
    model = tiny(kernel, StudentT(np.log([0.7]), np.asarray(np.log(0.7))))
    return {stop: after_steps(model, stop) for stop in (20, 30, 80, 85, 100)}


def moved(leaf: object) -> bool:
    return bool(np.ravel(leaf)[0] != START)


def test_a_fixed_hyper_parameter_does_not_move(states):
    sums = states[100].weights.input_kernel
    assert not moved(sums.left.left.log_lengthscale)
    assert moved(sums.right.left.log_lengthscale)


def test_a_bounded_hyper_parameter_stays_inside(states):
    rounding = 4 * np.finfo(np.float32).eps
    ends = []
    for stop in (20, 30, 80, 85, 100):
        sums = states[stop].weights.input_kernel
        assert LOWEST * (1 - rounding) <= float(sums.left.right.lengthscale[0]) <= HIGHEST * (1 + rounding)
        ends.append(float(sums.right.left.lengthscale[0]))
    assert not all(LOWEST <= end <= HIGHEST for end in ends)  # unbounded, it would have gone outside


def test_a_period_is_free_from_the_first_step(states):
    assert moved(states[20].weights.input_kernel.right.right.log_period)


def test_scale_and_tail_of_student_t_are_held_until_their_release(states):
    assert NOISE_HOLD == 0.8
    assert not any(moved(leaf) for leaf in leaves(states[80].likelihood))
    assert all(moved(leaf) for leaf in leaves(states[85].likelihood))


def test_gaussian_noise_is_held_until_its_release():
    held, freed = (after_steps(tiny(likelihood=Gaussian(np.log([0.7]))), stop) for stop in (80, 85))
    assert not moved(held.likelihood.log_noise)
    assert moved(freed.likelihood.log_noise)


def test_a_fixed_noise_stays():
    assert not moved(after_steps(tiny(likelihood=Gaussian(np.log([0.7]), False)), 100).likelihood.log_noise)
