"""A fit of the exact regime with many rows: coarse through inducing rows first, then the exact bound."""

import numpy as np
import pytest
from sklearn.base import clone

from metaprior import MetaGPRegressor
from metaprior.estimators import fit_together, many, metagp_method, method, phases
from metaprior.io.checkpoints import Checkpoint
from metaprior.output_layer import Exact, InducingRows

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (40, 1))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.standard_normal(40)
MODEL = MetaGPRegressor((3,), input_kernel="rbf", max_iter=600, random_state=0)


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    for module in (metagp_method, phases):
        monkeypatch.setattr(module, "COARSE_FROM", 30, raising=False)
        monkeypatch.setattr(module, "COARSE_ROWS", 10, raising=False)


@pytest.fixture
def regimes(monkeypatch):
    """The regimes of all runs of training, in their order."""
    seen, train = [], method.train

    def watched(model, *arguments, **options):
        seen.append(type(model.output))
        return train(model, *arguments, **options)

    monkeypatch.setattr(method, "train", watched)
    return seen


def test_many_rows_go_through_inducing_rows_before_the_exact_bound(regimes):
    model = clone(MODEL).fit(X, Y)
    assert regimes == [InducingRows, Exact]
    assert isinstance(model.model_.output, Exact)
    assert model.n_iter_ == len(model.elbo_history_) == len(model.elbo_terms_["kl_u"])
    assert 200 < model.n_iter_ <= 600
    assert np.sqrt(np.mean((model.predict(X) - np.sin(3 * X[:, 0])) ** 2)) < 0.1


def test_inducing_rows_that_are_meant_go_through_few_first(regimes):
    model = clone(MODEL).set_params(output_layer="inducing_rows", n_inducing_rows=20).fit(X, Y)
    assert regimes == [InducingRows, InducingRows]
    assert model.model_.output.points.shape == (20, 1)


MANY = RNG.uniform(-1, 1, (200, 1))
OF_MANY = np.sin(3 * MANY[:, 0]) + 0.1 * RNG.standard_normal(200)


def test_the_exact_bound_of_rows_that_repeat_others_goes_through_those_that_say_as_much(regimes, monkeypatch):
    through_few = clone(MODEL).fit(MANY, OF_MANY)
    assert regimes == [InducingRows, InducingRows]
    assert isinstance(through_few.model_.output, Exact)
    monkeypatch.setattr(phases, "chosen_rows", lambda *_: None)
    through_all = clone(MODEL).fit(MANY, OF_MANY)
    assert regimes[2:] == [InducingRows, Exact]
    means = [np.mean(model.elbo_history_[-20:]) for model in (through_few, through_all)]
    assert means[0] == pytest.approx(means[1], abs=0.5)
    new = np.linspace(-1, 1, 50)[:, None]
    predictions = [model.predict(new, return_std=True) for model in (through_few, through_all)]
    np.testing.assert_allclose(predictions[0][0], predictions[1][0], atol=0.02)
    np.testing.assert_allclose(predictions[0][1], predictions[1][1], rtol=0.02)


def test_fits_side_by_side_choose_rows_of_their_own_data(monkeypatch):
    seen, train_many = [], many.train_many

    def watched(models, *arguments, **options):
        seen.append([np.asarray(model.output.points) for model in models])
        return train_many(models, *arguments, **options)

    monkeypatch.setattr(many, "train_many", watched)
    fit_together([clone(MODEL), clone(MODEL)], [(MANY, OF_MANY), (MANY[::-1] ** 3, OF_MANY)])
    first, second = seen[1]
    assert first.shape == second.shape
    scaled = [(x - x.mean()) / x.std() for x in (MANY, MANY**3)]
    for points, x in zip((first, second), scaled, strict=True):
        assert np.abs(points - x[:, 0]).min(axis=1).max() < 1e-6


@pytest.mark.parametrize(
    ("parameters", "rows"),
    [({}, 20), ({"early_stopping": True}, 40), ({"input_kernel": None}, 40)],
    ids=["few rows", "its own end", "a global layer"],
)
def test_other_fits_have_one_phase(regimes, parameters, rows):
    clone(MODEL).set_params(**parameters).fit(X[:rows], Y[:rows])
    assert len(regimes) == 1


def test_a_fit_that_goes_on_from_another_has_one_phase(regimes):
    model = clone(MODEL).set_params(warm_start=True).fit(X, Y)
    regimes.clear()
    model.fit(X, Y)
    assert regimes == [Exact]


@pytest.mark.parametrize("kill", [1, 2, 3])
def test_a_fit_killed_in_either_phase_ends_with_the_same_bits(tmp_path, monkeypatch, kill):
    alone, save, calls = clone(MODEL).fit(X, Y), Checkpoint.save, []

    def killed(self, run, snapshot):
        save(self, run, snapshot)
        calls.append(self.folder)
        if len(calls) == kill:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        clone(MODEL).fit(X, Y, checkpoint=tmp_path, every=100)
    again = clone(MODEL).fit(X, Y, checkpoint=tmp_path, every=100)
    assert len(set(calls)) == 2
    np.testing.assert_array_equal(again.elbo_history_, alone.elbo_history_)
    np.testing.assert_array_equal(again.predict(X), alone.predict(X))


def test_fits_side_by_side_have_the_same_phases():
    alone = clone(MODEL).fit(X, Y)
    together = [clone(MODEL), clone(MODEL).set_params(random_state=1)]
    fit_together(together, [(X, Y), (X + 0.1, Y)])
    steps = slice(0, 20)  # the order of sums differs, and many steps of Adam tell
    np.testing.assert_allclose(together[0].elbo_history_[steps], alone.elbo_history_[steps], rtol=1e-4)
    np.testing.assert_allclose(np.mean(together[0].elbo_history_[-50:]), np.mean(alone.elbo_history_[-50:]), atol=2)


def test_fits_side_by_side_of_which_some_have_few_rows_have_one_phase():
    together = [clone(MODEL), clone(MODEL).set_params(random_state=1)]
    fit_together(together, [(X, Y), (X[:20], Y[:20])])
    assert all(isinstance(model.model_.output, Exact) for model in together)
