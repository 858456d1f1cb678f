"""Every baseline keeps the contract of the core's estimators: one suite for all of them."""

import copy
import pickle

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metaprior import MetaGPClassifier, MetaGPRegressor, baselines

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (30, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(30)
LABELS = np.array(["cold", "mild", "warm"])[np.digitize(X[:, 0], [-0.7, 0.7])]
TRAINED = {"hidden_layer_sizes": (4,), "max_iter": 60, "random_state": 0}
DRAWN = {**TRAINED, "n_predict_draws": 8}
SAMPLED = {"hidden_layer_sizes": (3,), "n_warmup": 20, "n_samples": 20, "n_chains": 2, "max_tree_depth": 4}
SAMPLED |= {"n_predict_draws": 20, "random_state": 0}
SMALL = {
    "MetaGP": {**DRAWN, "n_inducing": 4},
    "MAP": TRAINED,
    "MFVI": DRAWN,
    "MetaNN": DRAWN,
    "DKL": {**DRAWN, "n_inducing": 6},
    "Ensemble": {**TRAINED, "n_members": 3},
    "Laplace": DRAWN,
    "HMC": SAMPLED,
    "ExactGP": {"n_restarts": 0, "random_state": 0},
}
CLASSES = [MetaGPRegressor, MetaGPClassifier, *[getattr(baselines, name) for name in baselines.__all__]]
#: Programs that take long to compile: they are held to the suite in the slow tests (MetaGP has tests of its own).
LONG = ("HMC", "DKL", "MetaGP")
EACH = [pytest.param(c, marks=[pytest.mark.slow] * c.__name__.startswith(LONG), id=c.__name__) for c in CLASSES]
#: Estimators whose answers are functions drawn from a posterior over functions.
POINT = ("MAP",)

pytestmark = pytest.mark.filterwarnings("ignore:the chains mix poorly", "ignore:the median distance", "ignore:the feat")


def method(cls) -> str:
    return cls.__name__.removesuffix("Regressor").removesuffix("Classifier")


def small(cls, **kwargs):
    return cls(**{**SMALL[method(cls)], **kwargs})


def target(model):
    return Y if is_regressor(model) else LABELS


@pytest.fixture(scope="module", params=EACH)
def fitted(request):
    model = small(request.param)
    return model.fit(X, target(model))


def test_every_method_has_both_kinds_but_the_exact_gp():
    names = set(baselines.__all__)
    assert {f"{m}{kind}" for m in SMALL for kind in ("Regressor", "Classifier")} - names == {
        "MetaGPRegressor",
        "MetaGPClassifier",
        "ExactGPClassifier",
    }


def test_answers_have_the_shapes_of_the_interface(fitted):
    distribution = fitted.predict_distribution(X)
    assert len(distribution) == 30
    if is_regressor(fitted):
        mean, std = fitted.predict(X, return_std=True)
        assert mean.shape == std.shape == (30,)
        assert mean.dtype == std.dtype == np.float64
        assert np.all(std > 0)
        np.testing.assert_allclose(
            distribution.variance, distribution.epistemic_variance + distribution.aleatoric_variance, rtol=1e-12
        )
        low, high = distribution.interval(0.9)
        assert np.all(low < high)
        assert np.isfinite(distribution.log_prob(Y)).all()
        assert fitted.sample_y(X, 3, random_state=1).shape == (30, 3)
    else:
        probabilities = fitted.predict_proba(X)
        assert probabilities.shape == (30, 3)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
        assert set(fitted.predict(X)) <= set(LABELS)
        assert fitted.sample_y(X, 4).shape == (30, 3, 4)
    assert np.isfinite(distribution.entropy).all()
    assert np.all(distribution.mutual_information >= 0)


def test_functions_differ_where_there_is_a_posterior(fitted):
    draws = fitted.sample_y(X, 6, random_state=0)
    spread = np.ptp(draws, axis=-1).max()
    assert spread == 0 if method(type(fitted)) in POINT else spread > 0


def test_the_same_seed_gives_the_same_draws(fitted):
    assert np.array_equal(fitted.sample_y(X, 3, 1), fitted.sample_y(X, 3, 1))


def test_a_row_is_predicted_the_same_alone_and_in_another_order(fitted):
    ask = fitted.predict if is_regressor(fitted) else fitted.predict_proba
    expected = ask(X)
    np.testing.assert_allclose(ask(X[::-1])[::-1], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ask(X[7:8]), expected[7:8], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_a_copy_predicts_the_same_bits(fitted, copied):
    assert np.array_equal(copied(fitted).predict(X), fitted.predict(X))
    assert np.array_equal(copied(fitted).sample_y(X, 2, 3), fitted.sample_y(X, 2, 3))


def test_a_clone_is_unfitted_and_fits_to_the_same_bits(fitted):
    twin = clone(fitted)
    with pytest.raises(NotFittedError):
        twin.predict(X)
    assert np.array_equal(twin.fit(X, target(fitted)).predict(X), fitted.predict(X))


def test_predicting_adds_and_changes_no_attribute(fitted):
    content = pickle.dumps(fitted)
    fitted.predict(X)
    fitted.sample_y(X, 2)
    assert fitted.predict_distribution(X).entropy.shape == (30,)
    assert pickle.dumps(fitted) == content


def test_what_is_kept_lives_on_no_device(fitted):
    leaves = [leaf for leaf in jax.tree.leaves(vars(fitted)) if hasattr(leaf, "shape")]
    assert leaves
    assert all(isinstance(leaf, np.ndarray | np.generic) for leaf in leaves)


def test_frames_give_the_numbers_of_arrays(fitted):
    frame = pd.DataFrame(X, columns=["hour", "height"])
    np.testing.assert_array_equal(fitted.predict(X), fitted.predict(X.tolist()))
    named = clone(fitted).fit(frame, target(fitted))
    assert list(named.feature_names_in_) == ["hour", "height"]
    assert named.predict(frame).shape == (30,)


@pytest.mark.parametrize("cls", [c for c in EACH if c.id.endswith("Regressor")])
@pytest.mark.slow
def test_several_targets_have_a_column_each(cls):
    both = np.column_stack([Y, -Y + X[:, 0]])
    model = small(cls).fit(X, both)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (30, 2)
    assert model.sample_y(X, 3).shape == (30, 2, 3)
    assert model.predict_distribution(X).log_prob(both).shape == (30,)


@pytest.mark.parametrize("cls", [c for c in EACH if c.id.endswith("Regressor")])
def test_a_power_of_two_in_the_units_scales_the_answers(cls):
    mean, std = small(cls).fit(X, Y).predict(X, return_std=True)
    scaled_mean, scaled_std = small(cls).fit(4 * X, 1024 * Y).predict(4 * X, return_std=True)
    np.testing.assert_allclose(scaled_mean, 1024 * mean, rtol=1e-6)
    np.testing.assert_allclose(scaled_std, 1024 * std, rtol=1e-6)


@pytest.mark.parametrize("cls", [c for c in EACH if c.id.endswith("Classifier")])
def test_two_classes_take_one_function(cls):
    model = small(cls).fit(X, LABELS == "cold")
    assert model.predict_proba(X).shape == (30, 2)
    assert model.predict(X).dtype == bool


@pytest.mark.parametrize("cls", EACH)
def test_pipelines_and_cross_validation_work(cls):
    model = make_pipeline(StandardScaler(), small(cls))
    assert np.isfinite(cross_val_score(model, X, target(model), cv=2, error_score="raise")).all()


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_mistakes_in_the_data_are_named(cls):
    model = small(cls)
    y = target(model)
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(np.where(np.arange(60).reshape(30, 2) == 7, np.nan, X), y)
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.fit(X[:, 0], y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:20])
    with pytest.raises(ValueError, match=r"expected numeric columns; \['town'\]"):
        model.fit(pd.DataFrame({"height": X[:, 0], "town": ["Ulm", "Bonn"] * 15}), y)


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (baselines.MAPRegressor, "prior_scale", -1.0),
        (baselines.MAPRegressor, "prior_scale", "wide"),
        (baselines.MAPRegressor, "early_stopping", "never"),
        (baselines.DKLRegressor, "prior_scale", "auto"),
        (baselines.MFVIRegressor, "prior_scale", 0.0),
        (baselines.MFVIRegressor, "n_predict_draws", 1),
        (baselines.MetaNNRegressor, "weight_noise", "loud"),
        (baselines.MetaNNRegressor, "mapping_units", 0),
        (baselines.DKLRegressor, "n_inducing", 0),
        (baselines.EnsembleRegressor, "n_members", 0),
        (baselines.LaplaceRegressor, "structure", "diagonal"),
        (baselines.HMCRegressor, "prior", "flat"),
        (baselines.HMCRegressor, "target_accept", 1.5),
        (baselines.HMCRegressor, "n_chains", 0),
        (baselines.HMCRegressor, "dtype", "float16"),
    ],
)
def test_a_parameter_that_is_not_as_expected_is_named(cls, name, value):
    with pytest.raises(ValueError, match=f"{name}: expected"):
        small(cls, **{name: value}).fit(X, Y)


@pytest.mark.parametrize("name", ["MAP", "MFVI", "MetaNN", "DKL", "Ensemble", "Laplace"])
def test_a_warm_start_goes_on_from_the_last_fit(name):
    model = small(getattr(baselines, f"{name}Regressor"), warm_start=True).fit(X, Y)
    first = model.elbo_history_
    second = model.fit(X, Y).elbo_history_
    assert second[0] > first[0]


def test_chains_that_do_not_agree_are_warned_about():
    with pytest.warns(UserWarning, match="the chains mix poorly: R-hat"):
        small(baselines.HMCRegressor, n_warmup=2, n_samples=6).fit(X, Y)


def test_a_missing_sampler_is_named_with_the_way_to_get_it(monkeypatch):
    monkeypatch.setattr("metaprior.inference.nuts.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'the NUTS sampler needs numpyro.* pip install "\.\[hmc\]"'):
        small(baselines.HMCRegressor).fit(X, Y)
