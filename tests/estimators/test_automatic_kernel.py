"""`input_kernel="auto"`: candidates that share one program, and the bound that chooses among them."""

import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

from metaprior import MetaGPClassifier, MetaGPRegressor, kernels, load, relevance
from metaprior.estimators import fit_together, kernel_search, metagp_method
from metaprior.estimators.candidates import candidates_for
from metaprior.estimators.fit import prepare_fit
from metaprior.estimators.kernel_search import going_on, taken_place
from metaprior.estimators.lengthscales import num_projections
from metaprior.estimators.phases import COARSE_FROM
from metaprior.hypers import HyperPosterior
from metaprior.kernels.chosen_sum import ChosenSum

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (60, 3))
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.standard_normal(60)
SMALL = {"hidden_layer_sizes": (3,), "max_iter": 100, "n_predict_draws": 8, "random_state": 0}
#: Days with a week in them, and half a year of them to come.
DAYS = np.arange(120.0)[:, None]
WEEKLY = np.sin(2 * np.pi * DAYS[:, 0] / 7) + 0.01 * DAYS[:, 0] + 0.1 * RNG.standard_normal(120)


def is_weekly(name):
    """Whether the name of a candidate is that of a kernel with a period of 7."""
    return name.startswith("periodic(") and abs(float(name[len("periodic(") :].partition(")")[0]) - 7) < 0.1


def problem_of(x, y):
    return prepare_fit(MetaGPRegressor(**SMALL), x, y).problem


@pytest.fixture(scope="module")
def of_days():
    return candidates_for(problem_of(DAYS, WEEKLY), None)


@pytest.fixture(scope="module")
def fitted():
    return MetaGPRegressor(**SMALL).fit(X, Y)


def test_every_candidate_equals_its_own_kernel_in_value_and_gradient(of_days):
    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def total(kernel, a, b):
        return jnp.sum(jnp.sin(kernel(a, b))) + jnp.sum(jnp.sin(kernel.diagonal(a)))

    with jax.enable_x64(True):
        a, b = jnp.asarray(X[:5, :1]), jnp.asarray(X[5:12, :1])
        for candidate in of_days[:7]:
            joint, alone = (jax.tree.map(jnp.asarray, kernel) for kernel in (candidate.joint, candidate.start))
            (value, gradient), (own_value, own) = total(joint, a, b), total(alone, a, b)
            np.testing.assert_allclose(value, own_value, rtol=1e-12)
            chosen = candidate.joint.chosen
            for ours, theirs in zip(jax.tree.leaves(gradient.alone(chosen)), jax.tree.leaves(own), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
            others = [term for number, term in enumerate(gradient.terms) if number not in chosen]
            assert all(np.all(np.asarray(leaf) == 0) for leaf in jax.tree.leaves(others))


def test_features_of_a_chosen_sum_have_its_covariance():
    terms = [kernels.Constant(1.0), kernels.RBF().bound_to(1), kernels.Linear().bound_to(1)]
    kernel, a = ChosenSum.of(terms, [1, 2]), X[:4, :1]
    normals = np.random.default_rng(1).standard_normal((kernel.num_normals(1), 40_000))
    with jax.enable_x64(True):
        features = np.asarray(kernel.features(jnp.asarray(a), jnp.asarray(normals)))
    np.testing.assert_allclose(features @ features.T / 40_000, kernel(a, a), atol=0.1)


def test_all_candidates_are_one_shape_and_their_choice_is_not_learned(of_days):
    shapes = {(jax.tree.structure(c.joint), tuple(leaf.shape for leaf in jax.tree.leaves(c.joint))) for c in of_days}
    assert len(shapes) == 1
    assert np.all(np.isinf(jax.tree.leaves(of_days[0].joint.release_times().counts)))


def test_the_period_of_days_is_among_the_candidates_and_wide_data_have_none(of_days):
    assert [c.name for c in of_days[:4]] == ["rbf", "none", "matern32", "linear + rbf"]
    assert any(is_weekly(candidate.name) for candidate in of_days)
    assert len(candidates_for(problem_of(X, Y), None)) == 4


def test_another_kernel_has_to_be_above_the_rbf_by_the_margin():
    steps = np.ones(25)
    assert taken_place([-10.0 * steps, -8.5 * steps]) == 0
    assert taken_place([-10.0 * steps, -7.0 * steps, -6.0 * steps]) == 1
    assert taken_place([-10.0 * steps, -9.0 * steps, -6.0 * steps]) == 2


def test_a_difference_that_the_draws_of_the_steps_may_have_made_does_not_count():
    noise = np.random.default_rng(0).standard_normal(25)
    assert taken_place([np.full(25, -10.0), -5.0 + 100 * (noise - noise.mean())]) == 0
    assert taken_place([-10.0 + 100 * noise, -5.0 + 100 * noise]) == 1


def test_candidates_far_behind_do_not_go_on():
    assert going_on(np.outer([-10.0, -50.0, -9.0, -8.0, -7.0], np.ones(25)), 10.0) == [2, 3, 4]
    assert going_on(np.outer([-10.0, -50.0, -90.0], np.ones(25)), 10.0) == [0]


@pytest.fixture(scope="module")
def projected():
    """A fit of 30 columns in which the highest bound counts for nothing: the last candidate is taken."""
    x = np.random.default_rng(1).standard_normal((50, 30))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_search, "going_on", lambda bounds, nats: [len(bounds) - 1])
        return MetaGPRegressor(**SMALL).fit(x, x[:, 0]), x


def test_wide_inputs_have_a_kernel_on_a_projection_among_the_candidates(projected):
    model, x = projected
    assert len(candidates_for(problem_of(x, x[:, 0]), None)) == 5
    frame = model.kernel_search_
    assert set(frame["kernel"]) == {"rbf", "none", "matern32", "linear + rbf", "rbf of a projection"}
    assert frame[frame["taken"]]["kernel"].item() == "rbf of a projection"


def test_a_kernel_on_a_projection_that_was_taken_is_told_and_survives_files_and_warm_starts(projected, tmp_path):
    model, x = projected
    assert num_projections(model) == 8
    assert model.elbo_terms_["kl_V"][-1] > 0
    with pytest.raises(ValueError, match="sees a projection of them"):
        relevance(model)
    model.save(tmp_path / "model.metaprior")
    copy = load(tmp_path / "model.metaprior")
    np.testing.assert_array_equal(copy.predict(x), model.predict(x))
    warm = copy.set_params(warm_start=True)
    assert num_projections(warm.fit(x, x[:, 0])) == 8


def test_a_fit_tells_what_it_took_and_by_how_many_nats(fitted):
    frame = fitted.kernel_search_
    assert set(frame["kernel"]) == {"rbf", "none", "matern32", "linear + rbf"}
    taken = frame[frame["taken"]].iloc[0]
    np.testing.assert_allclose(frame["behind"], taken["bound"] - frame["bound"])
    assert list(frame["bound"]) == sorted(frame["bound"], reverse=True)
    assert fitted.n_iter_ == len(fitted.elbo_history_) <= SMALL["max_iter"]


def test_the_same_seed_gives_the_same_search_and_the_same_fit(fitted):
    again = clone(fitted).fit(X, Y)
    assert again.kernel_search_.equals(fitted.kernel_search_)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_the_search_survives_files_and_pickles(fitted, tmp_path):
    fitted.save(tmp_path / "model.metaprior")
    for copy in (load(tmp_path / "model.metaprior"), pickle.loads(pickle.dumps(fitted))):
        assert copy.kernel_search_.equals(fitted.kernel_search_)
        assert copy.input_kernel == "auto"
        np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))


def test_a_file_with_another_table_is_refused(fitted, tmp_path):
    broken = clone(fitted)
    broken.__dict__.update({**vars(fitted), "_kernel_search": {"kernel": np.array(["rbf"], object)}})
    broken.save(tmp_path / "model.metaprior")
    with pytest.raises(ValueError, match="expected the columns"):
        load(tmp_path / "model.metaprior")


def test_a_kernel_that_is_named_leaves_no_search_behind(fitted):
    named = pickle.loads(pickle.dumps(fitted)).set_params(input_kernel="rbf", max_iter=5).fit(X, Y)
    assert not hasattr(named, "kernel_search_")


def test_a_fit_that_goes_on_keeps_the_kernel_and_its_search(fitted):
    further = pickle.loads(pickle.dumps(fitted)).set_params(warm_start=True, max_iter=5).fit(X, Y)
    assert type(further.input_kernel_) is type(fitted.input_kernel_)
    assert further.kernel_search_.equals(fitted.kernel_search_)
    assert further.n_iter_ == 5


def test_where_every_weight_is_drawn_auto_is_the_global_model():
    model = MetaGPRegressor(**{**SMALL, "max_iter": 3}, output_layer="drawn").fit(X, Y)
    assert model.input_kernel_ is None
    assert not hasattr(model, "kernel_search_")


def test_few_rows_keep_the_posterior_of_the_chosen_hyper_parameters_alone():
    model = MetaGPRegressor(**SMALL).fit(X[:20], Y[:20])
    assert type(model.model_.hypers) is HyperPosterior
    assert len(model.model_.hypers.log_stds) == len(model.model_.hypers.centres.value)
    assert model.predict(X).shape == (60,)


@pytest.mark.slow
def test_restarts_go_on_with_the_kernel_of_one_search(monkeypatch):
    calls, search = [], kernel_search.search
    monkeypatch.setattr("metaprior.estimators.metagp_method.search", lambda *a: calls.append(1) or search(*a))
    model = MetaGPRegressor(**SMALL, n_restarts=1).fit(X, Y)
    assert len(calls) == 1
    assert len(model.kernel_search_) == 4


def test_fits_side_by_side_end_as_they_do_alone(fitted):
    other = (np.random.default_rng(1).permutation(X, axis=0), Y)
    models = [clone(fitted), clone(fitted).set_params(random_state=1)]
    fit_together(models, [(X, Y), other])
    assert models[0].kernel_search_.equals(fitted.kernel_search_)
    np.testing.assert_allclose(models[0].predict(X), fitted.predict(X), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_fit_goes_on_with_the_program_of_the_search_as_with_the_taken_kernel_alone(fitted, monkeypatch):
    monkeypatch.setattr(metagp_method, "goes_on", kernel_search.goes_on_alone)
    alone = MetaGPRegressor(**SMALL).fit(X, Y)
    assert repr(fitted.input_kernel_).partition("(")[0] == repr(alone.input_kernel_).partition("(")[0] == "RBF"
    np.testing.assert_allclose(fitted.elbo_history_, alone.elbo_history_, rtol=1e-3)
    np.testing.assert_allclose(fitted.predict(X), alone.predict(X), atol=1e-2)


def test_fits_side_by_side_in_one_phase_and_in_two_end_with_their_kernel_alone():
    x = np.random.default_rng(1).uniform(-2, 2, (COARSE_FROM + 10, 3))
    fits = [MetaGPRegressor(**SMALL) for _ in range(2)]
    fit_together(fits, [(X, Y), (x, np.sin(2 * x[:, 0]))])
    for fit in fits:
        assert not any(isinstance(kernel, ChosenSum) for kernel in _kernels_of(fit.model_))


def _kernels_of(model):
    return jax.tree.leaves(model, is_leaf=lambda node: isinstance(node, ChosenSum))


def test_classes_have_a_search_too():
    model = MetaGPClassifier(**{**SMALL, "max_iter": 40}).fit(X, Y > 0)
    assert len(model.kernel_search_) == 4
    assert model.predict_proba(X).shape == (60, 2)


def test_a_search_that_was_killed_ends_with_the_same_bits(tmp_path, monkeypatch):
    from metaprior.io.checkpoints import Checkpoint

    alone, save, calls = MetaGPRegressor(**SMALL).fit(X, Y), Checkpoint.save, []

    def killed(self, run, snapshot):
        save(self, run, snapshot)
        calls.append(self.folder)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        MetaGPRegressor(**SMALL).fit(X, Y, checkpoint=tmp_path)
    again = MetaGPRegressor(**SMALL).fit(X, Y, checkpoint=tmp_path)
    assert again.kernel_search_.equals(alone.kernel_search_)
    np.testing.assert_array_equal(again.elbo_history_, alone.elbo_history_)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_week_in_daily_numbers_is_found(seed):
    model = MetaGPRegressor(random_state=seed).fit(DAYS[:80], WEEKLY[:80])
    taken = model.kernel_search_[model.kernel_search_["taken"]].iloc[0]["kernel"]
    assert is_weekly(taken)
    ahead = model.predict(DAYS[80:])
    assert np.sqrt(np.mean((ahead - WEEKLY[80:]) ** 2)) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_default_is_as_good_as_the_rbf_where_the_global_model_is_not(seed):
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    parts = train_test_split(*load_diabetes(return_X_y=True), random_state=seed)
    usual, rbf = (MetaGPRegressor(input_kernel=k, random_state=0).fit(parts[0], parts[2]) for k in ("auto", "rbf"))
    assert usual.score(parts[1], parts[3]) > rbf.score(parts[1], parts[3]) - 0.03
