"""How often a row counts: `sample_weight`, and rows that are equal."""

import equinox as eqx
import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

import metaprior
from every_estimator import CLASSIFIERS, REGRESSORS
from metaprior import MetaGPClassifier, MetaGPRegressor, baselines, kernels
from metaprior.estimators import fit_together, rows
from metaprior.estimators.checks import standard_units
from metaprior.estimators.fit import prepare_fit
from metaprior.estimators.rows import counted_rows
from metaprior.periods import periods_of

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (30, 2))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.standard_normal(30)
LABELS = np.where(X.sum(axis=1) > 0, "up", "down")
WEIGHT = RNG.integers(0, 4, 30)
QUICK = {"hidden_layer_sizes": (5,), "max_iter": 60, "random_state": 0}
FEW_DRAWS = {**QUICK, "n_predict_draws": 16}


def repeated(*arrays):
    return [np.repeat(array, WEIGHT, axis=0) for array in arrays]


# --- rows -----------------------------------------------------------------------------


def test_rows_that_differ_and_count_once_are_left_as_they_are():
    for weight in (None, np.ones(30), 1):
        counted = counted_rows(X, Y, weight)
        assert counted.weight is None
        np.testing.assert_array_equal(counted.x, X)
        np.testing.assert_array_equal(counted.y, Y)


def test_rows_of_weight_zero_are_left_out():
    counted = counted_rows(X, LABELS, np.arange(30) > 4)
    assert counted.weight is None
    np.testing.assert_array_equal(counted.x, X[5:])
    np.testing.assert_array_equal(counted.y, LABELS[5:])


@pytest.mark.parametrize("y", [Y, LABELS, np.column_stack([Y, -Y]), LABELS.astype(object), WEIGHT])
def test_equal_rows_are_joined_in_an_order_of_their_own(y):
    mixed = np.random.default_rng(1).permutation(30)
    joined, weighted = counted_rows(*repeated(X, y)), counted_rows(X[mixed], y[mixed], WEIGHT[mixed])
    for one, other in zip(joined, weighted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert sorted(joined.weight) == sorted(WEIGHT[WEIGHT > 0])
    counts = {(*x, str(target)): w for x, target, w in zip(X, y, WEIGHT, strict=True) if w}
    assert {(*x, str(target)): w for x, target, w in zip(*joined, strict=True)} == counts


def test_rows_that_differ_in_inputs_or_targets_alone_are_not_joined():
    x, y = np.zeros((4, 1)), np.array([1.0, 2.0, 1.0, 3.0])
    counted = counted_rows(x, y)
    assert dict(zip(counted.y, counted.weight, strict=True)) == {1.0: 2, 2.0: 1, 3.0: 1}
    assert counted_rows(np.array([[0.0], [-0.0]]), np.ones(2)).weight == [2]
    assert counted_rows(np.arange(2.0)[:, None], np.ones(2)).weight is None


def test_different_rows_with_the_same_sum_are_told_apart(monkeypatch):
    x, y = np.array([[3.0, 4], [1, 2], [3, 4], [1, 3]]), np.zeros(4)
    assert len(np.unique(rows._sums(list(x.T)))) == 3
    monkeypatch.setattr(rows, "_sums", lambda columns: np.zeros(len(columns[0]), np.uint64))
    found = rows.counted_rows(x, y)
    assert found.x.tolist() == [[1, 2], [1, 3], [3, 4]]
    assert found.weight.tolist() == [1, 1, 2]


def test_units_are_those_of_repeated_rows():
    for ours, theirs in zip(standard_units(X, weight=WEIGHT), standard_units(*repeated(X)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    offset, scale = standard_units(1e9 + 1e-3 * X, weight=WEIGHT)
    np.testing.assert_allclose(scale, standard_units(*repeated(1e9 + 1e-3 * X))[1], rtol=1e-9)


def test_periods_are_those_of_repeated_rows():
    x = np.sort(np.random.default_rng(2).uniform(0, 40, 150))
    y = np.sin(2 * np.pi * x / 3.3)[:, None] + 0.1 * np.random.default_rng(3).standard_normal((150, 1))
    weight = np.random.default_rng(4).integers(1, 4, 150)
    ours, theirs = periods_of(x, y, weight), periods_of(np.repeat(x, weight), np.repeat(y, weight, axis=0))
    np.testing.assert_allclose(ours.period[0], theirs.period[0], rtol=1e-6)
    np.testing.assert_allclose(ours.gain[0], theirs.gain[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("weight", "what"),
    [
        (np.ones(29), r"expected one number per row, \(30,\); got the shape \(29,\)"),
        (np.ones((30, 1)), "expected one number per row"),
        (np.where(np.arange(30) == 3, -1.0, 1.0), "expected numbers from 0 to 1e.09.*row 3 has -1"),
        (np.full(30, 1e10), "row 0 has 1e"),
        (np.zeros(30), "at least one weight above zero"),
        (np.full(30, np.nan), "sample_weight contains NaN"),
        (["a"] * 30, "could not convert"),
    ],
)
def test_weights_that_say_nothing_are_refused(weight, what):
    with pytest.raises(ValueError, match=what):
        MetaGPRegressor(**FEW_DRAWS).fit(X, Y, sample_weight=weight)


def test_weights_that_make_all_data_count_as_one_row_are_told_of():
    with pytest.warns(UserWarning, match="30 rows count as 1. If the weights are only relative, divide them"):
        counted_rows(X, Y, np.full(30, 1 / 30))


# --- fits -----------------------------------------------------------------------------

GP = baselines.ExactGPRegressor(kernels.RBF(), noise=0.3, max_iter=0)
REGIMES = {
    "exact": {"input_kernel": "rbf"},
    "inducing rows": {"output_layer": "inducing_rows", "n_inducing_rows": 8, "input_kernel": "rbf"},
    "batches": {"batch_size": 8, "input_kernel": "rbf"},
    "drawn, held out": {"output_layer": "drawn", "early_stopping": True},
    "period": {"input_kernel": kernels.Periodic().on(0)},
}


def test_a_fit_to_repeated_rows_has_the_problem_of_one_to_weighted_rows():
    for make in (*REGRESSORS.values(), *CLASSIFIERS.values()):
        y = LABELS if is_classifier(make()) else Y
        weighted, plain = prepare_fit(make(), X, y, WEIGHT).problem, prepare_fit(make(), *repeated(X, y)).problem
        assert weighted.total_weight == plain.total_weight == WEIGHT.sum()
        assert eqx.tree_equal(weighted._replace(kind=None), plain._replace(kind=None))
        assert vars(weighted.kind).keys() == vars(plain.kind).keys()
        for own, other in zip(vars(weighted.kind).values(), vars(plain.kind).values(), strict=True):
            np.testing.assert_array_equal(own, other)


def assert_fits_as_repeated_rows_do(model):
    weighted = model.fit(X, Y, sample_weight=WEIGHT).predict(X)
    np.testing.assert_array_equal(model.fit(*repeated(X, Y)).predict(X), weighted)


def test_weights_fit_as_repeated_rows_do_to_the_last_bit():
    assert_fits_as_repeated_rows_do(MetaGPRegressor(**FEW_DRAWS))


@pytest.mark.slow
@pytest.mark.parametrize("settings", REGIMES.values(), ids=REGIMES)
def test_weights_fit_as_repeated_rows_do_in_every_regime(settings):
    assert_fits_as_repeated_rows_do(MetaGPRegressor(**FEW_DRAWS, **settings))


@pytest.mark.slow
def test_weights_of_a_classifier_fit_as_repeated_rows_do():
    model = MetaGPClassifier(**FEW_DRAWS)
    weighted = model.fit(X, LABELS, sample_weight=WEIGHT).predict_proba(X)
    np.testing.assert_array_equal(model.fit(*repeated(X, LABELS)).predict_proba(X), weighted)


def test_a_class_whose_rows_have_no_weight_is_no_class():
    with pytest.raises(ValueError, match="expected at least two classes; y has one class, 'up'"):
        MetaGPClassifier().fit(X, LABELS, sample_weight=LABELS == "up")


@pytest.mark.slow
def test_weights_reach_every_model_of_a_group():
    together = [MetaGPRegressor(**FEW_DRAWS) for _ in range(2)]
    fit_together(together, [(X, Y, WEIGHT), (X, Y)])
    alone = MetaGPRegressor(**FEW_DRAWS).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(together[0].predict(X), alone.predict(X), rtol=1e-6, atol=1e-6)
    assert np.max(np.abs(together[1].predict(X) - alone.predict(X))) > 1e-3


def test_weights_pass_through_searches_and_pipelines():
    search = GridSearchCV(GP, {"kernel": [kernels.RBF(), kernels.Linear()]}, cv=2)
    assert search.fit(X, Y, sample_weight=WEIGHT).best_params_ == {"kernel": kernels.RBF()}
    pipeline = make_pipeline(StandardScaler(), GP)
    weighted = pipeline.fit(X, Y, exactgpregressor__sample_weight=WEIGHT).predict(X)
    assert np.max(np.abs(pipeline.fit(X, Y).predict(X) - weighted)) > 1e-3


def test_weights_can_be_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(GP).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        routed = cross_val_predict(model, X, Y, params={"sample_weight": WEIGHT}, cv=2)
    assert np.max(np.abs(routed - cross_val_predict(GP, X, Y, cv=2))) > 1e-3
    for cls in (MetaGPRegressor, MetaGPClassifier):
        assert has_fit_parameter(cls(), "sample_weight")
        assert hasattr(cls(), "set_fit_request")


# --- the twins without weights ----------------------------------------------------------


def plain_twin(model, monkeypatch):
    """Fit to repeated rows without joining them."""
    import metaprior.estimators.fit as page

    monkeypatch.setattr(page, "counted_rows", lambda x, y, weight: (x, y, None))
    return model.fit(*repeated(X, Y))


def test_the_evidence_of_an_exact_gp_is_that_of_repeated_rows(monkeypatch):
    model = baselines.ExactGPRegressor(0.8 * kernels.RBF(1.2), noise=0.3, max_iter=0)
    weighted = model.fit(X, Y, sample_weight=WEIGHT)
    evidence, predicted = weighted.log_evidence_, np.concatenate(weighted.predict(X, return_std=True))
    twin = plain_twin(model, monkeypatch)
    np.testing.assert_allclose(twin.log_evidence_, evidence, rtol=1e-10)
    np.testing.assert_allclose(np.concatenate(twin.predict(X, return_std=True)), predicted, rtol=1e-7, atol=1e-9)


def test_the_search_of_an_exact_gp_ends_where_that_of_repeated_rows_does(monkeypatch):
    model = baselines.ExactGPRegressor(n_restarts=0, random_state=0)
    noise = model.fit(X, Y, sample_weight=WEIGHT).noise_
    np.testing.assert_allclose(plain_twin(model, monkeypatch).noise_, noise, rtol=1e-3)


def test_the_gradient_of_the_evidence_is_right_with_weights():
    from metaprior.baselines.evidence import Evidence, Hypers
    from metaprior.compilation import in_float64

    start = Hypers(kernels.Scaled(kernels.RBF(0.7).bound_to(2), 1.3), 0.4)
    with in_float64():
        evidence = Evidence(start, X, Y, noise_learned=True, weight=WEIGHT + 0.5)
        _, gradient = evidence(evidence.theta)
        steps = 1e-5 * np.eye(len(evidence.theta))
        by_steps = [(evidence(evidence.theta + s)[0] - evidence(evidence.theta - s)[0]) / 2e-5 for s in steps]
    np.testing.assert_allclose(gradient, by_steps, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("structure", ["full", "last_layer", "kronecker"])
def test_the_evidence_of_laplace_is_that_of_repeated_rows(structure):
    from metaprior.baselines.laplace import curvature_of, weights_of
    from metaprior.baselines.laplace_evidence import Evidence
    from metaprior.compilation import as_float64, in_float64

    model = baselines.MAPRegressor(**{**QUICK, "max_iter": 20}).fit(X, Y).model_
    x, y = repeated(X, Y[:, None])
    with in_float64():
        model = as_float64(model)
        values = weights_of(model)
        curvatures = curvature_of(model, X, structure, WEIGHT.astype(float)), curvature_of(model, x, structure)
        weighted = Evidence(model, values, X, Y[:, None], curvatures[0], WEIGHT.astype(float))
        plain = Evidence(model, values, x, y, curvatures[1])
        np.testing.assert_allclose(weighted(0.3, 0.2), plain(0.3, 0.2), rtol=1e-9)


def test_a_weighted_exact_gp_survives_its_file(tmp_path):
    model = clone(GP).fit(X, Y, sample_weight=WEIGHT)
    model.save(tmp_path / "gp.metaprior")
    loaded = metaprior.load(tmp_path / "gp.metaprior")
    np.testing.assert_allclose(loaded.predict(X, return_std=True), model.predict(X, return_std=True), rtol=1e-9)
    assert model.fit(X, Y)._row_weight is None


def test_a_fraction_says_less():
    model = clone(GP)
    stds = [model.fit(X, Y, sample_weight=weight).predict(X, return_std=True)[1].mean() for weight in (1.0, 0.2)]
    assert stds[1] > stds[0]
