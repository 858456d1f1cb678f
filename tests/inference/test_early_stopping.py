"""Early stopping: a run ends with the model that did best on rows it was not trained on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from metaprior import MetaGPRegressor, baselines
from metaprior.baselines import laplace
from metaprior.estimators import method
from metaprior.estimators.fit import method_of, prepare_fit
from metaprior.estimators.stopping import FlatElbo, HeldOutScore
from metaprior.inference import Identity, Recipe, Snapshot, make_data, train, train_many
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.random import make_key
from metaprior.weights import Point
from small import StopWhen

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (60, 3))
Y = np.sin(2 * X[:, :1]) + 1.0 * RNG.standard_normal((60, 1))
DATA, HELD = make_data(X[:40], Y[:40]), make_data(X[40:], Y[40:])
#: Everything is let in from the first step, at a rate that overfits within some hundred.
FROM_THE_START = Recipe(1000, 0.01, normals_start=-1.0, normals_full=0.0, kl_starts=-1.0, kl_full=0.0)
POINT = ("MAP", "Ensemble", "Laplace", "DKL")


class Recorded(HeldOutScore):
    """The rule's twin: notes every score and every model."""

    def __init__(self, patience: int = 100, tol: float = 0.0) -> None:
        super().__init__(tol, patience, HELD, make_key(1))
        self.scores: list[float] = []
        self.models: list[list[np.ndarray]] = []

    def should_stop(self, model, history) -> bool:
        self.scores.append(self.score(model))
        self.models.append(leaves(model))
        return super().should_stop(model, history)

    @property
    def best_look(self) -> int:
        return int(np.argmax(self.scores))


def leaves(model) -> list[np.ndarray]:
    return [np.array(leaf) for leaf in jax.tree.leaves(model)]


def same_bits(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(np.array_equal(u, v) for u, v in zip(a, b, strict=True))


def network(seed: int = 0) -> Model:
    dense = Dense((3, 20, 1))
    return Model(Point.initial(dense, np.random.default_rng(seed)), dense, Gaussian(np.zeros(1), hold=0.0))


def run(rule, **kwargs):
    return train(network(), DATA, make_key(0), recipe=FROM_THE_START, stop_when=rule, **kwargs)


# --- the best model ---------------------------------------------------------------


def test_a_run_that_goes_to_its_last_step_ends_with_the_best_model():
    rule = Recorded()
    fit = run(rule)
    assert len(rule.scores) == 10
    assert rule.best_look < 9  # the last model is another
    assert same_bits(leaves(fit.model), rule.models[rule.best_look])
    assert (fit.num_steps, fit.converged) == (1000, False)


def test_a_run_that_is_stopped_ends_with_the_best_model():
    rule = Recorded(patience=3)
    fit = run(rule)
    assert fit.converged
    assert fit.num_steps == len(fit.history["elbo"]) == 100 * (rule.best_look + 1 + 3)
    assert same_bits(leaves(fit.model), rule.models[rule.best_look])


def test_runs_side_by_side_end_with_their_own_best_models():
    rules = [Recorded(patience=3), Recorded()]
    fits = train_many(
        [network(0), network(1)], [DATA, DATA], [make_key(0), make_key(1)], recipe=FROM_THE_START, stop_when=rules
    )
    assert [fit.converged for fit in fits] == [True, False]
    for fit, rule in zip(fits, rules, strict=True):
        assert rule.best_look < len(rule.scores) - 1
        assert same_bits(leaves(fit.model), rule.models[rule.best_look])


def test_a_flat_elbo_keeps_the_last_model():
    rule = FlatElbo(1e6, 2, 40)
    fit = run(rule)
    assert rule.best_model is None
    assert fit.num_steps == 300
    assert same_bits(
        leaves(fit.model),
        leaves(run(StopWhen(lambda history: len(history["elbo"]) == 300)).model),
    )


def test_a_rise_within_tol_is_kept_but_not_waited_for(monkeypatch):
    scores = iter([0.0, 0.05, 0.02])
    rule = HeldOutScore(0.1, 2, HELD, make_key(1))
    monkeypatch.setattr(rule, "score", lambda model: next(scores))
    models = [jnp.full(2, value) for value in (0.0, 1.0, 2.0)]
    assert [rule.should_stop(model, {}) for model in models] == [False, False, True]
    assert np.array_equal(rule.best_model, models[1])


# --- checkpoints ------------------------------------------------------------------


class Memory:
    """A keeper that is killed after some of its snapshots."""

    every = 100

    def __init__(self, last: int | None = None) -> None:
        self.snapshot: Snapshot | None = None
        self.left = last

    def save(self, run: Identity, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    def load(self, run: Identity) -> Snapshot | None:
        return self.snapshot


def test_a_run_that_is_killed_after_its_best_model_goes_on_to_the_same_bits():
    rule = Recorded(patience=6)
    alone = run(rule)
    killed = Memory(last=rule.best_look + 3)  # two looks after the best
    with pytest.raises(KeyboardInterrupt):
        run(Recorded(patience=6), checkpoint_store=killed)
    killed.left, resumed = None, Recorded(patience=6)
    fit = run(resumed, checkpoint_store=killed)
    assert len(resumed.scores) == len(rule.scores) - rule.best_look - 3  # the best was not met again
    assert same_bits(leaves(fit.model), leaves(alone.model))
    assert fit.num_steps == alone.num_steps
    read = run(Recorded(patience=6), checkpoint_store=killed)  # the run has ended: nothing is computed
    assert same_bits(leaves(read.model), leaves(alone.model))


# --- "auto" -----------------------------------------------------------------------


class Told(Exception):
    """What training was called with."""


def told(monkeypatch, model, rows: int) -> tuple[int, int]:
    """Return how many rows are trained on and how many held out."""

    def look(model, data, key, *, stop_when, **_):
        raise Told(int(data.num_rows), 0 if stop_when is None else stop_when.num_rows)

    monkeypatch.setattr(method, "train", look)
    target = Y[:, 0] if hasattr(model, "noise") else Y[:, 0] > 0
    with pytest.raises(Told) as seen:
        model.fit(np.resize(X, (rows, 3)), np.resize(target, rows))
    return seen.value.args


@pytest.mark.parametrize("kind", ["Regressor", "Classifier"])
@pytest.mark.parametrize("name", POINT)
def test_point_weights_hold_rows_out_from_50_rows_on(monkeypatch, name, kind):
    cls = getattr(baselines, name + kind)
    assert cls().early_stopping == "auto"
    assert told(monkeypatch, cls(random_state=0), 49) == (49, 0)
    assert told(monkeypatch, cls(random_state=0), 50) == (45, 5)
    assert told(monkeypatch, cls(random_state=0, early_stopping=False), 50) == (50, 0)
    assert told(monkeypatch, cls(random_state=0, early_stopping=True), 49) == (44, 5)


@pytest.mark.parametrize("cls", [MetaGPRegressor, baselines.MFVIRegressor, baselines.MetaNNRegressor])
def test_weights_with_a_posterior_hold_rows_out_only_where_asked(monkeypatch, cls):
    named = {"input_kernel": None} if cls is MetaGPRegressor else {}  # a search for a kernel holds out no rows
    assert told(monkeypatch, cls(random_state=0, **named), 50) == (50, 0)
    assert told(monkeypatch, cls(random_state=0, early_stopping="auto", **named), 50) == (45, 5)


def test_members_of_an_ensemble_hold_out_rows_of_their_own(monkeypatch):
    seen = []

    def look(model, data, key, *, stop_when, **kwargs):
        seen.append({float(v) for v in stop_when.batch.x[: stop_when.num_rows, 0]})
        return train(model, data, key, stop_when=stop_when, **kwargs)

    monkeypatch.setattr(method, "train", look)
    baselines.EnsembleRegressor((3,), n_members=3, max_iter=5, random_state=0).fit(X, Y[:, 0])
    assert [len(rows) for rows in seen] == [6, 6, 6]
    assert all(a != b for i, a in enumerate(seen) for b in seen[:i])


# --- point weights ----------------------------------------------------------------


def test_point_weights_are_looked_at_from_the_first_block_on():
    model = baselines.MAPRegressor((3,), max_iter=500, tol=1e6, n_iter_no_change=1, random_state=0).fit(X, Y[:, 0])
    assert model.n_iter_ == 200


def trained_part(own):
    """The method that trains a network: that of an ensemble's member, or of Laplace's point."""
    for part in ("member", "point"):
        own = vars(own).get(part, own)
    return own


@pytest.mark.parametrize("name", POINT)
def test_the_prior_of_point_weights_counts_from_the_first_step_and_their_noise_is_free(name):
    model, start = getattr(baselines, f"{name}Regressor")(), jnp.zeros(())
    prepared = prepare_fit(model, X, Y[:, 0])
    recipe = trained_part(prepared.method).recipe(prepared.problem)
    assert recipe.kl_weight(start) == recipe.temperature(start) == 1
    free = prepared.problem.likelihood
    assert np.array_equal(free.log_noise, np.zeros(1))  # where nothing is explained yet
    assert free.release_times().log_noise == 0
    held = prepare_fit(model.set_params(noise_hold=0.5), X, Y[:, 0]).problem.likelihood
    assert held.release_times().log_noise == 0.5
    assert held.log_noise < np.log(0.2)  # a noise that is held is held small


@pytest.mark.parametrize(("features", "scale"), [(1, 3.0), (4, 1.5), (9, 1.0), (100, 1.0)])
@pytest.mark.parametrize("name", ["MAP", "Ensemble", "Laplace"])
def test_the_prior_of_a_few_inputs_is_wider(name, features, scale):
    cls = getattr(baselines, f"{name}Regressor")
    assert trained_part(method_of(cls())).scale_of_prior(features) == scale
    assert trained_part(method_of(cls(prior_scale=0.5))).scale_of_prior(features) == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", POINT)
def test_point_weights_do_not_take_a_function_that_bends_often_for_noise(name):
    """A sine of three periods in noise of 0.12, five seeds: the error is less than half of the sine's spread, 0.71."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-2, 2, (300, 1))
        y = np.sin(2 * np.pi * 0.75 * x[:, 0]) + 0.12 * rng.standard_normal(300)
        model = getattr(baselines, f"{name}Regressor")(random_state=seed).fit(x[:100], y[:100])
        assert np.sqrt(np.mean((model.predict(x[100:]) - y[100:]) ** 2)) < 0.35


def test_laplace_takes_its_curvature_on_all_rows(monkeypatch):
    rows, curvature_of = [], laplace.curvature_of
    monkeypatch.setattr(
        laplace, "curvature_of", lambda model, x, *rest: (rows.append(len(x)), curvature_of(model, x, *rest))[1]
    )
    baselines.LaplaceRegressor((3,), max_iter=5, random_state=0).fit(X, Y[:, 0])
    assert rows == [60]


@pytest.mark.slow
@pytest.mark.parametrize("name", POINT)
def test_point_weights_say_more_of_a_noisy_table_than_a_constant(name):
    """Friedman's function in noise of 2: the log density of new rows, against that of the targets' Gaussian."""
    gains = []
    for seed in range(10, 13):
        x, y = make_friedman1(300, noise=2.0, random_state=seed)
        model = getattr(baselines, f"{name}Regressor")(random_state=seed).fit(x[:225], y[:225])
        mean, std = y[:225].mean(), y[:225].std()
        constant = -0.5 * ((y[225:] - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)
        gains.append(model.predict_distribution(x[225:]).log_prob(y[225:]) - constant)
    gain = np.concatenate(gains)
    assert gain.mean() > 4 * gain.std() / np.sqrt(gain.size)
