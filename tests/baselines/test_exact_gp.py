"""The exact GP is scikit-learn's GP with this library's kernels, behind the interface of all estimators."""

import pickle

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.utils.estimator_checks import parametrize_with_checks

from metaprior import kernels
from metaprior.baselines import ExactGPRegressor, exact_gp, gp_functions
from metaprior.datasets import sinusoid
from metaprior.estimators.method import START_NOISE

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (30, 2)) * [1.0, 5.0]
Y = 3 * np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(30) + 7
BOTH = np.column_stack([Y, np.cos(X[:, 0]) + 0.01 * X[:, 1]])
NEW = RNG.uniform(-3, 3, (40, 2)) * [1.0, 5.0]

#: Kernels in units of the data, each with its twin in scikit-learn.
TWINS = [
    pytest.param(2.5 * kernels.RBF([0.7, 4.0]), 2.5 * sk.RBF([0.7, 4.0]), id="rbf"),
    pytest.param(2.5 * kernels.Matern12(1.3), 2.5 * sk.Matern(1.3, nu=0.5), id="matern12"),
    pytest.param(2.5 * kernels.Matern32([0.7, 4.0]), 2.5 * sk.Matern([0.7, 4.0], nu=1.5), id="matern32"),
    pytest.param(2.5 * kernels.Matern52([0.7, 4.0]), 2.5 * sk.Matern([0.7, 4.0], nu=2.5), id="matern52"),
    pytest.param(
        2.5 * kernels.RationalQuadratic(1.3, 0.6), 2.5 * sk.RationalQuadratic(1.3, alpha=0.6), id="rational_quadratic"
    ),
    pytest.param(
        2.5 * (kernels.RBF([0.7, 4.0]) + 0.3 * kernels.Matern32(2.0)),
        2.5 * (sk.RBF([0.7, 4.0]) + 0.3 * sk.Matern(2.0, nu=1.5)),
        id="sum",
    ),
]


@pytest.fixture(scope="module")
def fitted():
    return ExactGPRegressor(random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def two():
    return ExactGPRegressor("matern52", random_state=0).fit(X, BOTH)


# --- scikit-learn's GP ------------------------------------------------------------


def same_gp(ours, theirs, x, y, new):
    """Check mean, spread, covariance of draws and evidence at hyper-parameters in the units of the data."""
    model = ExactGPRegressor(ours, noise=0.4, max_iter=0).fit(x, y)
    gp = GaussianProcessRegressor(theirs, alpha=0.4**2, optimizer=None).fit(x, y - y.mean())
    mean, std = gp.predict(new, return_std=True)
    found = model.predict_distribution(new)
    np.testing.assert_allclose(found.mean, mean + y.mean(), rtol=1e-8)
    np.testing.assert_allclose(np.sqrt(found.epistemic_variance), std, rtol=1e-8)
    np.testing.assert_allclose(found.aleatoric_variance, 0.4**2, rtol=1e-12)
    np.testing.assert_allclose(found.std, np.hypot(std, 0.4), rtol=1e-8)
    np.testing.assert_allclose(model.log_evidence_, gp.log_marginal_likelihood(gp.kernel_.theta), rtol=1e-8)


@pytest.mark.parametrize(("ours", "theirs"), TWINS)
def test_mean_std_and_evidence_equal_those_of_scikit_learn(ours, theirs):
    same_gp(ours, theirs, X, Y, NEW)


def test_periodic_equals_exp_sine_squared():
    same_gp(2.5 * kernels.Periodic(1.7, 0.8), 2.5 * sk.ExpSineSquared(0.8, 1.7), X[:, :1], Y, NEW[:, :1])


def test_learned_noise_is_scikit_learns_white_kernel(fitted):
    kernel, variance = fitted.kernel_.inner, float(np.exp(fitted.kernel_.log_scale))
    theirs = variance * sk.RBF(np.exp(kernel.log_lengthscale)) + sk.WhiteKernel(fitted.noise_**2)
    gp = GaussianProcessRegressor(theirs, alpha=0, optimizer=None).fit(X, Y - Y.mean())
    mean, std = gp.predict(NEW, return_std=True)
    np.testing.assert_allclose(fitted.predict(NEW, return_std=True), (mean + Y.mean(), std), rtol=1e-7)
    np.testing.assert_allclose(fitted.log_evidence_, gp.log_marginal_likelihood(gp.kernel_.theta), rtol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_optimum_is_at_least_as_good_as_scikit_learns_from_the_same_start(seed):
    x, y = sinusoid(seed)["train"]
    ours = ExactGPRegressor(1.0 * kernels.RBF(1.0), n_restarts=0).fit(x, y)
    start = 1.0 * sk.RBF(1.0) + sk.WhiteKernel((START_NOISE * y.std()) ** 2)
    theirs = GaussianProcessRegressor(start, alpha=0).fit(x, y - y.mean())
    assert ours.log_evidence_ > theirs.log_marginal_likelihood_value_ - 1e-3


# --- hyper-parameters -------------------------------------------------------------


def test_fixed_hyper_parameters_stay_and_bounds_hold():
    kernel = kernels.RBF([0.7, 4.0], fixed=["lengthscale"])
    np.testing.assert_allclose(
        np.exp(ExactGPRegressor(kernel).fit(X, Y).kernel_.inner.log_lengthscale), [0.7, 4.0], rtol=1e-12
    )
    bounded = ExactGPRegressor(kernels.RBF(1.0, bounds={"lengthscale": (0.9, 1.1)}), random_state=0).fit(X, Y)
    found = np.exp(bounded.kernel_.inner.log_lengthscale)
    assert ((found >= 0.9 - 1e-9) & (found <= 1.1 + 1e-9)).all()


def test_fixed_noise_stays():
    model = ExactGPRegressor(noise=0.4).fit(X, Y)
    assert model.noise_ == pytest.approx(0.4)
    assert np.array_equal(ExactGPRegressor(noise=[0.4, 0.2], max_iter=5).fit(X, BOTH).noise_.round(12), [0.4, 0.2])


def test_no_step_keeps_what_is_given():
    model = ExactGPRegressor(2.5 * kernels.RBF([0.7, 4.0]), max_iter=0).fit(X, Y)
    assert model.n_iter_ == 0
    np.testing.assert_allclose(np.exp(model.kernel_.log_scale), 2.5)
    np.testing.assert_allclose(np.exp(model.kernel_.inner.log_lengthscale), [0.7, 4.0])


def test_restarts_never_lower_the_evidence():
    one = ExactGPRegressor("rational_quadratic", n_restarts=0, random_state=0).fit(X, Y)
    more = ExactGPRegressor("rational_quadratic", n_restarts=4, random_state=0).fit(X, Y)
    assert more.log_evidence_ >= one.log_evidence_ - 1e-6
    assert one.n_iter_ >= 1


def test_restarts_leave_a_start_from_which_all_is_noise():
    x, y = sinusoid(0)["train"]
    lost = kernels.RBF(1e-4)  # rows do not touch: the evidence is flat here
    assert ExactGPRegressor(lost, n_restarts=0).fit(x, y).log_evidence_ < -100
    assert ExactGPRegressor(lost, n_restarts=2, random_state=0).fit(x, y).log_evidence_ > 50


def test_a_kernel_given_as_a_function_is_used():
    model = ExactGPRegressor(kernels.Custom(lambda a, b: 1 + a @ b.T), noise=0.3).fit(X, Y)
    line = np.polynomial.Polynomial.fit(X[:, 1], Y, 1)
    assert np.corrcoef(model.predict(X), line(X[:, 1]))[0, 1] > 0.9


# --- drawn functions --------------------------------------------------------------


def test_functions_are_drawn_from_the_posterior_covariance():
    model = ExactGPRegressor(kernels.RBF([1.0, 5.0]), noise=0.5, max_iter=0).fit(X, Y)
    theirs = Y.var() * sk.RBF([1.0, 5.0])
    gp = GaussianProcessRegressor(theirs, alpha=0.25, optimizer=None).fit(X, Y - Y.mean())
    mean, covariance = gp.predict(NEW[:5], return_cov=True)
    draws = model.sample_y(NEW[:5], 20_000, random_state=0)
    error = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)) / 20_000)
    np.testing.assert_array_less(abs(np.cov(draws) - covariance), 8 * error)
    np.testing.assert_array_less(abs(draws.mean(1) - mean - Y.mean()), 5 * np.sqrt(np.diag(covariance) / 20_000))


def test_a_draw_is_the_same_at_a_row_that_is_repeated(fitted):
    twice = np.repeat(NEW[:4], 2, axis=0)
    draws = fitted.sample_y(twice, 5)
    np.testing.assert_allclose(draws[::2], draws[1::2], atol=1e-4 * Y.std())


# --- the contract of all estimators -----------------------------------------------


def test_clone_is_unfitted_and_fits_to_the_same_numbers(fitted):
    twin = clone(fitted)
    assert not hasattr(twin, "gps_")
    assert twin.get_params().keys() == {"kernel", "n_restarts", "noise", "max_iter", "random_state"}
    assert np.array_equal(twin.fit(X, Y).predict(NEW), fitted.predict(NEW))


def test_float32_in_gives_float64_out():
    model = ExactGPRegressor(random_state=0).fit(X.astype(np.float32), Y.astype(np.float32))
    mean, std = model.predict(NEW.astype(np.float32), return_std=True)
    assert mean.dtype == std.dtype == model.sample_y(NEW).dtype == np.float64


def test_a_row_is_predicted_the_same_alone_in_another_order_and_across_chunks(fitted):
    many = np.tile(NEW, (10, 1))  # more rows than a chunk holds
    mean, std = fitted.predict(NEW, return_std=True)
    for rows, expected in [(many, np.tile([mean, std], 10)), (NEW[::-1], np.array([mean, std])[:, ::-1])]:
        np.testing.assert_allclose(fitted.predict(rows, return_std=True), expected, rtol=1e-9)
    alone = np.array([fitted.predict(row[None], return_std=True) for row in NEW])[..., 0].T
    np.testing.assert_allclose(alone, [mean, std], rtol=1e-9)


def test_frames_and_lists_give_the_numbers_of_arrays(fitted):
    frame = pd.DataFrame(X, columns=["hour", "height"])
    from_frame = clone(fitted).fit(frame, pd.Series(Y))
    assert list(from_frame.feature_names_in_) == ["hour", "height"]
    # the columns of a frame are summed in another order: the search for hyper-parameters ends a little elsewhere
    np.testing.assert_allclose(from_frame.predict(frame), fitted.predict(X), rtol=1e-4)
    assert np.array_equal(clone(fitted).fit(X.tolist(), Y.tolist()).predict(X.tolist()), fitted.predict(X))


def test_several_targets_are_as_many_gps(two):
    mean, std = two.predict(NEW, return_std=True)
    assert mean.shape == std.shape == (40, 2)
    assert two.sample_y(NEW, 3).shape == (40, 2, 3)
    assert two.noise_.shape == (2,)
    assert len(two.kernel_) == len(two.gps_) == 2
    assert np.array_equal(pickle.loads(pickle.dumps(two)).predict(NEW), mean)
    alone = [ExactGPRegressor("matern52", random_state=0).fit(X, column) for column in BOTH.T]
    # means of several columns are summed in another order: the search for hyper-parameters ends a little elsewhere
    np.testing.assert_allclose(mean, np.column_stack([model.predict(NEW) for model in alone]), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(two.log_evidence_, sum(model.log_evidence_ for model in alone), atol=1e-4)
    assert two.predict_distribution(X).log_prob(BOTH).shape == (30,)


def test_one_column_keeps_its_axis(fitted):
    model = clone(fitted).fit(X, Y[:, None])
    assert model.predict(NEW).shape == (40, 1)
    np.testing.assert_array_equal(model.predict(NEW)[:, 0], fitted.predict(NEW))


@pytest.mark.parametrize(("scale_x", "scale_y"), [(0.25, 1.0), (1.0, 1024.0), (4.0, 2.0**-20)])
def test_a_power_of_two_in_the_units_changes_no_bit(fitted, scale_x, scale_y):
    scaled = clone(fitted).fit(scale_x * X, scale_y * Y)
    mean, std = fitted.predict(NEW, return_std=True)
    scaled_mean, scaled_std = scaled.predict(scale_x * NEW, return_std=True)
    assert np.array_equal(scaled_mean, scale_y * mean)
    assert np.array_equal(scaled_std, scale_y * std)
    # p(y) = p(y / scale) / scale^N
    np.testing.assert_allclose(scaled.log_evidence_, fitted.log_evidence_ - 30 * np.log(scale_y), rtol=1e-12)
    np.testing.assert_allclose(np.exp(scaled.kernel_.log_scale), scale_y**2 * np.exp(fitted.kernel_.log_scale))


def test_any_scale_and_shift_of_the_data_is_undone(fitted):
    mean, std = fitted.predict(NEW, return_std=True)
    moved = clone(fitted).fit(30 * X - 7, 0.3 * Y + 11)
    moved_mean, moved_std = moved.predict(30 * NEW - 7, return_std=True)
    np.testing.assert_allclose(moved_mean, 0.3 * mean + 11, rtol=1e-4)
    np.testing.assert_allclose(moved_std, 0.3 * std, rtol=1e-3)


def test_a_constant_column_and_a_constant_target_do_no_harm():
    constant = np.column_stack([X[:, 0], np.full(30, 5.0)])
    mean, std = ExactGPRegressor(random_state=0).fit(constant, np.full(30, 3.0)).predict(constant, return_std=True)
    np.testing.assert_allclose(mean, 3, atol=1e-3)
    assert np.isfinite(std).all()


def test_repeated_rows_without_noise_do_no_harm():
    x, y = np.repeat(X, 3, axis=0), np.repeat(np.sin(X[:, 0]), 3)
    model = ExactGPRegressor(random_state=0).fit(x, y)
    np.testing.assert_allclose(model.predict(x), y, atol=0.01)
    assert np.isfinite(model.sample_y(x, 3)).all()


@parametrize_with_checks([ExactGPRegressor(), ExactGPRegressor("matern32", n_restarts=0, max_iter=30)])
def test_scikit_learn_checks_hold(estimator, check):
    assert check(estimator) is None


# --- errors -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("kernel", "gauss", "expected a kernel such as .*RBF.*'rbf'.*; got 'gauss'"),
        ("kernel", 3, "expected a kernel such as .*RBF.*'rbf'.*; got 3"),
        ("n_restarts", -1, "expected a whole number of at least 0; got -1"),
        ("max_iter", 1.5, "expected a whole number of at least 0; got 1.5"),
        ("noise", -1.0, "expected a positive number, or one per target; got -1.0"),
        ("noise", [0.1, 0.2], "expected a positive number, or one per target; got"),
    ],
)
def test_parameter_error_names_the_parameter_and_what_is_expected(name, value, message):
    with pytest.raises(ValueError, match=f"^{name}: {message}"):
        ExactGPRegressor(**{name: value}).fit(X, Y)


def test_a_kernel_that_is_no_covariance_is_said_to_be_none():
    indefinite = kernels.Custom(lambda a, b: -jnp.exp(-jnp.abs(a[:, None, 0] - b[None, :, 0])))
    with pytest.raises(
        ValueError, match="(?s)^kernel: the covariance of 30 rows .* cannot be factorised; give a larger"
    ):
        ExactGPRegressor(indefinite).fit(X, Y)


def test_many_rows_are_warned_about_and_too_many_refused(monkeypatch):
    monkeypatch.setattr(exact_gp, "MANY_ROWS", 20)
    with pytest.warns(UserWarning, match="30 rows are many for an exact GP"):
        ExactGPRegressor(max_iter=0).fit(X, Y)
    monkeypatch.setattr(exact_gp, "MOST_ROWS", 25)
    with pytest.raises(ValueError, match="expected at most 25 rows.*got 30: fit some of them"):
        ExactGPRegressor().fit(X, Y)


def test_a_joint_draw_over_too_many_rows_is_refused(fitted, monkeypatch):
    monkeypatch.setattr(gp_functions, "MOST_ROWS", 25)
    with pytest.raises(ValueError, match="draws: .*expected at most 25 rows, .*got 40: draw at fewer rows"):
        fitted.sample_y(NEW)


def test_questions_with_a_mistake(fitted):
    distribution = fitted.predict_distribution(NEW)
    with pytest.raises(ValueError, match="quantile: levels must lie strictly between 0 and 1, such as 0.5; got 1.5"):
        distribution.quantile(1.5)
    for name in ("log_prob", "cdf", "crps"):
        with pytest.raises(ValueError, match=f"{name}: expected 40 targets, one per row; got 3"):
            getattr(distribution, name)(Y[:3])
    with pytest.raises(AttributeError, match="probabilities: this is a regression"):
        _ = distribution.probabilities
    with pytest.raises(NotFittedError, match="This ExactGPRegressor instance is not fitted yet"):
        ExactGPRegressor().predict(X)
    with pytest.raises(ValueError, match="X has 3 features, but ExactGPRegressor is expecting 2 features"):
        fitted.predict(np.zeros((4, 3)))


# --- the sinusoid -----------------------------------------------------------------


def scores(seed):
    """Return RMSE and NLL inside, then outside, of the periodic GP with no period given."""
    parts = sinusoid(seed)
    model = ExactGPRegressor(kernels.Periodic(), random_state=seed).fit(*parts["train"])
    found = []
    for name in ("inside", "outside"):
        predicted = model.predict_distribution(parts[name].X)
        found += [np.sqrt(np.mean((predicted.mean - parts[name].y) ** 2)), -np.mean(predicted.log_prob(parts[name].y))]
    return found


def reaches_the_bars(in_rmse, in_nll, out_rmse, out_nll):
    return in_rmse <= 0.13 and in_nll <= -0.75 and out_rmse <= 0.13 and out_nll <= -0.78


def test_periodic_gp_reaches_the_bars_on_one_seed():
    assert reaches_the_bars(*scores(0))


@pytest.mark.slow
def test_periodic_gp_reaches_the_bars_over_five_seeds():
    assert reaches_the_bars(*np.mean([scores(seed) for seed in range(5)], axis=0))


def test_a_scale_that_is_fixed_or_bounded_stays_so_in_the_units_of_the_targets():
    fixed = ExactGPRegressor(kernels.Scaled(kernels.RBF(), 2.0, fixed=("scale",)), random_state=0).fit(X, 5 * Y)
    assert fixed.kernel_.get_params()["scale"] == pytest.approx(2.0)
    bounded = ExactGPRegressor(kernels.Scaled(kernels.RBF(), 2.0, bounds={"scale": (1.0, 3.0)}), random_state=0).fit(
        X, 5 * Y
    )
    assert bounded.kernel_.get_params()["bounds"]["scale"] == pytest.approx((1.0, 3.0))
    assert 1.0 <= bounded.kernel_.get_params()["scale"] <= 3.0 * (1 + 1e-9)
