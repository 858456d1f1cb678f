"""The estimators keep scikit-learn's contract and the units of the data."""

import copy
import pickle

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metaprior import MetaGPClassifier, MetaGPRegressor, kernels
from metaprior.estimators import method
from metaprior.networks import Dense
from metaprior.output_layer import PseudoObservations

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (30, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(30)
LABELS = np.array(["cold", "mild", "warm"])[np.digitize(X[:, 0], [-0.7, 0.7])]
SMALL = {"hidden_layer_sizes": (3,), "n_inducing": 4, "n_predict_draws": 8, "max_iter": 60, "random_state": 0}
#: Folds of 25 rows: padded to 32, as 30 are, so that nothing compiles anew.
FOLDS = 6


def regressor(**kwargs) -> MetaGPRegressor:
    return MetaGPRegressor(**{"input_kernel": None, **SMALL, **kwargs})


def classifier(**kwargs) -> MetaGPClassifier:
    return MetaGPClassifier(**{"input_kernel": None, **SMALL, **kwargs})


@pytest.fixture(scope="module")
def local():
    return regressor(input_kernel=kernels.RBF()).fit(X, Y)


@pytest.fixture(scope="module")
def three():
    return classifier().fit(X, LABELS)


def test_clone_is_unfitted_and_fits_to_the_same_numbers(local):
    twin = clone(local)
    assert not hasattr(twin, "model_")
    assert twin.get_params().keys() == local.get_params().keys()
    assert np.array_equal(twin.fit(X, Y).predict(X), local.predict(X))


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_a_copy_predicts_the_same_bits(local, three, copied):
    assert np.array_equal(copied(local).predict(X), local.predict(X))
    assert np.array_equal(copied(local).sample_y(X, 2, 3), local.sample_y(X, 2, 3))
    assert np.array_equal(copied(three).predict_proba(X), three.predict_proba(X))


@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic", "gelu", "silu", "elu", "softplus", "identity"])
def test_every_activation_pickles(activation):
    network = Dense((1, 1), activation)
    assert pickle.loads(pickle.dumps(network)) == network


def test_what_is_kept_is_numpy_and_lives_on_no_device(local):
    leaves = [leaf for leaf in jax.tree.leaves(vars(local)) if hasattr(leaf, "shape")]
    assert len(leaves) > 5
    assert all(isinstance(leaf, np.ndarray | np.generic) for leaf in leaves)


def test_predicting_adds_and_changes_no_attribute(local, three):
    for model in (local, three):
        before = {name: id(value) for name, value in vars(model).items()}
        content = pickle.dumps(model)
        model.predict(X)
        model.sample_y(X, 2)
        model.score(X, Y if model is local else LABELS)
        assert model.predict_distribution(X).entropy.shape == (30,)
        assert {name: id(value) for name, value in vars(model).items()} == before
        assert pickle.dumps(model) == content


def test_pipeline_equals_scaling_by_hand():
    scaler = StandardScaler().fit(X)
    pipeline = make_pipeline(StandardScaler(), regressor()).fit(X, Y)
    by_hand = regressor().fit(scaler.transform(X), Y)
    assert np.array_equal(pipeline.predict(X), by_hand.predict(scaler.transform(X)))


def test_columns_of_one_unit_are_scaled_together():
    rare = X * np.array([1.0, 1e-3])  # a column that hardly varies stays small
    model = regressor(input_scaling="joint").fit(rare, Y)
    np.testing.assert_allclose(model.x_scale_, rare.std(), rtol=1e-12)
    np.testing.assert_allclose(model.x_offset_, rare.mean(), atol=1e-12)
    assert regressor().fit(rare, Y).x_scale_ == pytest.approx(rare.std(axis=0))


def test_grid_search_tries_global_and_local():
    search = GridSearchCV(regressor(), {"input_kernel": [None, kernels.RBF()]}, cv=FOLDS, error_score="raise").fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(X).shape == (30,)


def test_cross_validation_scores_every_fold(three):
    scores = cross_val_score(regressor(), X, Y, cv=FOLDS, error_score="raise")
    assert scores.shape == (FOLDS,)
    assert np.isfinite(scores).all()
    accuracies = cross_val_score(clone(three), X, LABELS, cv=FOLDS, error_score="raise")
    assert ((accuracies >= 0) & (accuracies <= 1)).all()


def test_frames_and_lists_give_the_numbers_of_arrays(local):
    frame = pd.DataFrame(X, columns=["hour", "height"])
    from_frame = clone(local).fit(frame, pd.Series(Y))
    assert list(from_frame.feature_names_in_) == ["hour", "height"]
    # the columns of a frame are summed in another order: means differ in the last bit
    np.testing.assert_allclose(from_frame.predict(frame), local.predict(X), rtol=1e-5)
    assert np.array_equal(clone(local).fit(X.tolist(), Y.tolist()).predict(X.tolist()), local.predict(X))


def test_float32_in_gives_float64_out():
    model = regressor().fit(X.astype(np.float32), Y.astype(np.float32))
    mean, std = model.predict(X.astype(np.float32), return_std=True)
    assert mean.dtype == std.dtype == np.float64
    assert model.sample_y(X).dtype == np.float64


def test_std_is_the_root_of_both_variances(local):
    mean, std = local.predict(X, return_std=True)
    distribution = local.predict_distribution(X)
    assert mean.shape == std.shape == (30,)
    assert np.array_equal(mean, distribution.mean)
    np.testing.assert_allclose(std**2, distribution.epistemic_variance + distribution.aleatoric_variance, rtol=1e-12)
    assert (distribution.epistemic_variance > 0).all()
    assert (distribution.aleatoric_variance > 0).all()


def test_sample_y_has_a_column_a_draw_and_follows_its_seed(local):
    draws = local.sample_y(X, n_samples=5, random_state=1)
    assert draws.shape == (30, 5)
    assert np.array_equal(draws, local.sample_y(X, 5, 1))
    assert not np.array_equal(draws, local.sample_y(X, 5, 2))
    assert not np.array_equal(draws[:, 0], draws[:, 1])


def test_a_pathwise_draw_is_a_function_of_x(local):
    among_others = local.sample_y(X, 3, 0)
    alone = np.concatenate([local.sample_y(row[None], 3, 0) for row in X[:4]])
    np.testing.assert_allclose(alone, among_others[:4], rtol=1e-10)


def test_a_row_is_predicted_the_same_alone_in_another_order_and_across_chunks(local):
    many = np.tile(X, (10, 1))  # more rows than a chunk holds
    expected = local.predict(X)
    np.testing.assert_allclose(local.predict(many), np.tile(expected, 10), rtol=1e-10)
    np.testing.assert_allclose(local.predict(X[::-1])[::-1], expected, rtol=1e-10)
    np.testing.assert_allclose(local.predict(X[7:8]), expected[7:8], rtol=1e-10)


def test_probabilities_sum_to_one_and_labels_are_the_users(three):
    probabilities = three.predict_proba(X)
    assert probabilities.shape == (30, 3)
    assert list(three.classes_) == ["cold", "mild", "warm"]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    assert set(three.predict(X)) <= set(LABELS)
    assert np.array_equal(three.predict(X), three.classes_[probabilities.argmax(axis=1)])


def test_two_classes_take_one_function():
    model = classifier().fit(X, LABELS == "cold")
    assert model.model_.network.sizes[-1] == 1
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (30, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    assert model.predict(X).dtype == bool
    assert model.sample_y(X, 4).shape == (30, 2, 4)


@pytest.mark.slow
def test_classes_far_apart_are_learned():
    kind = np.arange(30) % 3
    centres = 5 * np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
    blobs = centres[kind] + np.random.default_rng(1).standard_normal((30, 2))
    model = MetaGPClassifier(max_iter=300, n_predict_draws=32, random_state=0, input_kernel=None)
    assert model.fit(blobs, kind).score(blobs, kind) == 1


def test_a_smooth_function_is_learned():
    assert regressor(max_iter=300).fit(X, Y).score(X, Y) > 0.7


@pytest.mark.parametrize(("scale_x", "scale_y"), [(0.25, 1.0), (1.0, 1024.0), (4.0, 2.0**-20)])
def test_a_power_of_two_in_the_units_changes_no_bit(local, scale_x, scale_y):
    """Standardised data are the same to the bit, and so is all that follows."""
    scaled = clone(local).fit(scale_x * X, scale_y * Y)
    mean, std = local.predict(X, return_std=True)
    scaled_mean, scaled_std = scaled.predict(scale_x * X, return_std=True)
    assert np.array_equal(scaled_mean, scale_y * mean)
    assert np.array_equal(scaled_std, scale_y * std)
    assert np.array_equal(scaled.elbo_history_, local.elbo_history_)


def test_any_scale_and_shift_of_the_data_is_undone(local):
    """In float64 rounding stays far below what a run of this length makes of it."""
    model = clone(local).set_params(dtype="float64")
    mean, std = model.fit(X, Y).predict(X, return_std=True)
    moved_mean, moved_std = model.fit(30 * X - 7, 0.3 * Y + 11).predict(30 * X - 7, return_std=True)
    np.testing.assert_allclose(moved_mean, 0.3 * mean + 11, rtol=1e-7)
    np.testing.assert_allclose(moved_std, 0.3 * std, rtol=1e-6)


def test_float64_trains_in_float64(local):
    narrow = clone(local).set_params(dtype="float32").fit(X, Y)
    assert local.model_.weights.latents.mean.dtype == np.float64
    assert narrow.model_.weights.latents.mean.dtype == np.float32
    assert not np.array_equal(narrow.predict(X), local.predict(X))
    # the draws differ with the type, so only the scale of the answers can be compared
    assert abs(narrow.predict(X) - local.predict(X)).max() < 10 * local.predict(X, return_std=True)[1].max()


def test_a_constant_column_and_a_constant_target_do_no_harm():
    constant = np.column_stack([X[:, 0], np.full(30, 5.0)])
    mean, std = regressor().fit(constant, np.full(30, 3.0)).predict(constant, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def test_history_has_a_value_a_step_and_its_terms_add_up(local):
    assert local.n_iter_ == 60
    assert local.elbo_history_.shape == (60,)
    terms = local.elbo_terms_
    assert terms.keys() == {"log_likelihood", "kl_z", "kl_u", "kl_theta"}
    total = terms["log_likelihood"] - terms["kl_z"] - terms["kl_u"] - terms["kl_theta"]
    np.testing.assert_allclose(local.elbo_history_, total, rtol=1e-5)


def test_a_warm_start_goes_on_from_the_last_fit():
    model = regressor(warm_start=True, max_iter=100).fit(X, Y)
    first, offset = model.elbo_history_[-20:], model.x_offset_
    shifted = model.fit(X + 0.1, Y)
    second = shifted.elbo_history_
    error = np.hypot(first.std(), second[-20:].std()) / np.sqrt(20)
    assert shifted.x_offset_ is offset
    assert second[-20:].mean() > first.mean() - 5 * error
    assert second[0] > regressor().fit(X, Y).elbo_history_[0]  # it does not begin at the start


def test_without_warm_start_a_second_fit_forgets_the_first():
    model = regressor().fit(10 * X, -Y)
    assert np.array_equal(model.fit(X, Y).predict(X), regressor().fit(X, Y).predict(X))


def test_random_state_decides_the_fit():
    expected = regressor().fit(X, Y).predict(X)
    assert np.array_equal(regressor().fit(X, Y).predict(X), expected)
    assert not np.array_equal(regressor(random_state=1).fit(X, Y).predict(X), expected)


class Told(Exception):
    """Raised in place of training, to look at what it was told."""


@pytest.mark.parametrize(
    ("rows", "batch_size", "expected"),
    [(30, "auto", None), (512, "auto", None), (513, "auto", 256), (30, 8, 8), (30, 30, None), (30, 64, None)],
)
@pytest.mark.parametrize("output_layer", ["drawn", "pseudo_observations"])
def test_batch_size_is_that_of_the_steps(rows, batch_size, expected, output_layer, monkeypatch):
    def look(model, data, key, *, step_config, **_):
        raise Told(step_config.batch_size)

    monkeypatch.setattr(method, "train", look)
    x = np.random.default_rng(0).standard_normal((rows, 2))  # rows that are equal would be joined
    with pytest.raises(Told) as told:
        regressor(batch_size=batch_size, output_layer=output_layer).fit(x, x[:, 0])
    assert told.value.args == (expected,)


def test_a_batch_that_is_asked_for_takes_the_regime_that_has_batches():
    model = regressor(batch_size=8).fit(X, Y)
    assert type(model.model_.output) is PseudoObservations
    with pytest.raises(ValueError, match="batch_size: expected 'auto' or at least the 30 rows .* got 8"):
        regressor(batch_size=8, output_layer="exact").fit(X, Y)


@pytest.mark.parametrize("held", [0.1, 0.5])
def test_early_stopping_keeps_its_part_out_of_training(held, monkeypatch):
    def look(model, data, key, *, stop_when, **_):
        raise Told(int(data.num_rows), int(stop_when.batch.weight.sum()))

    monkeypatch.setattr(method, "train", look)
    with pytest.raises(Told) as told:
        regressor(early_stopping=True, validation_fraction=held).fit(X, Y)
    assert told.value.args == (30 - round(30 * held), round(30 * held))


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_run_that_gains_nothing_ends_early(early_stopping):
    options = {"max_iter": 1000, "tol": 1e6, "n_iter_no_change": 1, "early_stopping": early_stopping}
    model = regressor(**options).fit(X, Y)
    assert model.n_iter_ == len(model.elbo_history_) == 200
    # where every weight is drawn, nothing is looked at before the recipe has let everything in
    assert regressor(**options, output_layer="drawn").fit(X, Y).n_iter_ == 800


def test_verbose_shows_the_elbo_on_stderr_and_silence_is_the_default(capsys):
    regressor().fit(X, Y)
    assert capsys.readouterr() == ("", "")
    regressor(verbose=True).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "ELBO" in err
    assert "log_likelihood" in err
