"""The exact GP is scikit-learn's GP with this library's kernels, behind the interface of all estimators."""

import copy
import pickle

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.utils.estimator_checks import parametrize_with_checks

from metaprior import kernels
from metaprior.baselines import ExactGPRegressor, exact_gp
from metaprior.baselines.evidence import Evidence, Hypers
from metaprior.baselines.scikit_kernel import KernelForScikit
from metaprior.compilation import in_float64
from metaprior.datasets import sinusoid
from metaprior.estimators.base import START_NOISE
from metaprior.predictive.gaussian import GaussianFunctions, GaussianPredictive

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


DIFFERENTIATED = [
    kernels.RBF([0.7, 4.0]),
    kernels.Matern12(),
    kernels.Matern32(),
    kernels.Periodic([1.5, 9.0]) * kernels.RBF(8.0),
    kernels.RationalQuadratic(1.3, 0.6) + kernels.Linear() + 0.5,
    kernels.RBF(fixed=["lengthscale"]).on(0) + 2.0 * kernels.Matern52().on(1),
]


def evidence_of(kernel, *, noise_learned=True):
    hypers = Hypers(kernels.Scaled(kernel.bound_to(2), 1.5), 0.3)
    return Evidence(hypers, X, (Y - 7) / 5, noise_learned=noise_learned)


@pytest.mark.parametrize("noise_learned", [True, False])
@pytest.mark.parametrize("kernel", DIFFERENTIATED, ids=repr)
def test_gradient_of_the_evidence_equals_finite_differences(kernel, noise_learned):
    evidence, step = evidence_of(kernel, noise_learned=noise_learned), 1e-5
    _, gradient = evidence(evidence.theta)
    assert gradient.shape == evidence.theta.shape
    for found, move in zip(gradient, step * np.eye(len(gradient)), strict=True):
        up, down = evidence(evidence.theta + move)[0], evidence(evidence.theta - move)[0]
        # the difference of two numbers of size 100 in float64, by the step
        np.testing.assert_allclose(found, (up - down) / (2 * step), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kernel", DIFFERENTIATED, ids=repr)
def test_evidence_and_gradient_equal_those_of_scikit_learn(kernel):
    evidence = evidence_of(kernel)
    wrapped = KernelForScikit(evidence.start.kernel) + sk.WhiteKernel(0.3**2)
    gp = GaussianProcessRegressor(wrapped, alpha=0, optimizer=None).fit(evidence.x, evidence.y)
    value, gradient = gp.log_marginal_likelihood(gp.kernel_.theta, eval_gradient=True)
    gradient[-1] *= 2  # theirs is by the logarithm of the variance of the noise
    found, found_gradient = evidence(evidence.theta)
    np.testing.assert_allclose(found, value, rtol=1e-10)
    np.testing.assert_allclose(found_gradient, gradient, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", DIFFERENTIATED, ids=repr)
def test_rows_of_several_blocks_are_those_of_one(kernel):
    """150 rows are two whole blocks and a part of a third."""
    rng = np.random.default_rng(3)
    own = kernels.Scaled(kernel.bound_to(2), 1.5)
    a, b, slope = rng.standard_normal((150, 2)), rng.standard_normal((70, 2)), rng.standard_normal((150, 150))
    wrapped = KernelForScikit(own)
    with in_float64():
        whole = [np.asarray(own(jnp.asarray(a), jnp.asarray(other))) for other in (a, b)]
    matrix, derivatives = wrapped(a, eval_gradient=True)
    np.testing.assert_allclose(matrix, whole[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(wrapped(a, b), whole[1], rtol=1e-12, atol=1e-14)
    expected = np.einsum("nm,nmp->p", slope, derivatives)
    np.testing.assert_allclose(wrapped.pulled_back(a, slope), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_optimum_is_at_least_as_good_as_scikit_learns_from_the_same_start(seed):
    x, y = sinusoid(seed)["train"]
    ours = ExactGPRegressor(1.0 * kernels.RBF(1.0), n_restarts=0).fit(x, y)
    start = 1.0 * sk.RBF(1.0) + sk.WhiteKernel((START_NOISE * y.std()) ** 2)
    theirs = GaussianProcessRegressor(start, alpha=0).fit(x, y - y.mean())
    assert ours.log_evidence_ > theirs.log_marginal_likelihood_value_ - 1e-3


def test_theta_is_every_hyper_parameter_that_is_not_fixed():
    kernel = kernels.Periodic(2.0, 0.5, fixed=["period"]) + kernels.RBF([3.0, 4.0])
    wrapped = KernelForScikit(kernels.Scaled(kernel.bound_to(2), 1.5))
    np.testing.assert_allclose(np.sort(np.exp(wrapped.theta)), [0.5, 0.5, 1.5, 3.0, 4.0])
    moved = wrapped.clone_with_theta(np.arange(5.0))
    assert np.array_equal(moved.theta, np.arange(5.0))
    assert np.array_equal(moved.kernel.inner.left.log_period, wrapped.kernel.inner.left.log_period)


def test_bounds_are_the_kernels_own_and_wide_elsewhere():
    kernel = kernels.Scaled(kernels.RBF(1.0, bounds={"lengthscale": (0.5, 2.0)}).bound_to(2), 1.0)
    bounds = np.exp(KernelForScikit(kernel).bounds)
    np.testing.assert_allclose(sorted(bounds.tolist()), [[1e-5, 1e5], [0.5, 2.0], [0.5, 2.0]])


@pytest.mark.parametrize("kernel", [kernels.RBF([0.7, 4.0]), kernels.Matern32(2.0) + kernels.Linear()], ids=repr)
def test_diagonal_is_that_of_the_matrix(kernel):
    wrapped = KernelForScikit(kernel.bound_to(2))
    np.testing.assert_allclose(wrapped.diag(X), np.diag(wrapped(X)), rtol=1e-12)
    np.testing.assert_allclose(wrapped(X, NEW), wrapped(NEW, X).T, rtol=1e-12)


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


# --- closed forms -----------------------------------------------------------------


class Known(GaussianFunctions):
    """Independent functions of known moments."""

    def __init__(self, mean, variance):
        self.mean, self.variance, self.num_rows = mean, variance, len(mean)

    def moments(self):
        return self.mean, self.variance

    def draws(self, num_draws, seed):
        normals = np.random.default_rng(seed).standard_normal((num_draws, *self.mean.shape))
        return self.mean + np.sqrt(self.variance) * normals


MEAN, VARIANCE, NOISE = np.array([[0.5], [-1.0], [2.0]]), np.array([[0.3], [0.0], [2.0]]), np.array([0.6])
OFFSET, SCALE = np.array([10.0]), np.array([4.0])
TARGETS = np.array([11.0, 3.0, 30.0])


@pytest.fixture
def known():
    return GaussianPredictive(Known(MEAN, VARIANCE), NOISE, OFFSET, SCALE, flat=True, seed=0)


def densities():
    """Return the distribution of y at every row, from the definition."""
    spread = SCALE * np.sqrt(VARIANCE + NOISE**2)
    return [norm(m, s) for m, s in zip((OFFSET + SCALE * MEAN)[:, 0], spread[:, 0], strict=True)]


def integral(function, normal):
    return quad(function, *(normal.mean() + 12 * normal.std() * np.array([-1, 1])), limit=200, epsabs=1e-12)[0]


def test_moments_in_closed_form(known):
    for row, normal in enumerate(densities()):
        mean = integral(lambda y, d=normal: y * d.pdf(y), normal)
        np.testing.assert_allclose(known.mean[row], mean, rtol=1e-8)
        variance = integral(lambda y, d=normal, m=mean: (y - m) ** 2 * d.pdf(y), normal)
        np.testing.assert_allclose(known.variance[row], variance, rtol=1e-8)
    np.testing.assert_allclose(known.epistemic_variance, 16 * VARIANCE[:, 0])
    np.testing.assert_allclose(known.aleatoric_variance, 16 * 0.36)
    np.testing.assert_allclose(known.std**2, known.epistemic_variance + known.aleatoric_variance)


def test_entropy_and_mutual_information_equal_integrals(known):
    for row, normal in enumerate(densities()):
        entropy = -integral(lambda y, d=normal: d.pdf(y) * d.logpdf(y), normal)
        np.testing.assert_allclose(known.entropy[row], entropy, rtol=1e-8)
        of_noise = norm(0, 4 * 0.6).entropy()
        np.testing.assert_allclose(known.mutual_information[row], entropy - of_noise, atol=1e-8)


def test_cdf_quantile_and_interval_invert_each_other(known):
    for row, normal in enumerate(densities()):
        np.testing.assert_allclose(known.cdf(TARGETS)[row], normal.cdf(TARGETS[row]), rtol=1e-10)
    for level in (0.05, 0.5, 0.9):
        np.testing.assert_allclose(known.cdf(known.quantile(level)), level, rtol=1e-10)
    assert known.quantile(np.array([0.1, 0.5, 0.9])).shape == (3, 3)
    low, high = known.interval(0.8)
    np.testing.assert_allclose(known.cdf(high) - known.cdf(low), 0.8, rtol=1e-10)


def test_crps_equals_the_integral_of_its_definition(known):
    for row, normal in enumerate(densities()):
        y = TARGETS[row]
        low, high = normal.mean() - 12 * normal.std(), normal.mean() + 12 * normal.std()
        below = quad(lambda t, d=normal: d.cdf(t) ** 2, low, y, limit=200)[0]
        above = quad(lambda t, d=normal: d.sf(t) ** 2, y, high, limit=200)[0]
        np.testing.assert_allclose(known.crps(TARGETS)[row], below + above, rtol=1e-7)


def test_log_prob_is_the_log_density_summed_over_outputs(known):
    each = [normal.logpdf(y) for normal, y in zip(densities(), TARGETS, strict=True)]
    np.testing.assert_allclose(known.log_prob(TARGETS), each, rtol=1e-10)
    twice = GaussianPredictive(
        Known(np.tile(MEAN, 2), np.tile(VARIANCE, 2)), np.tile(NOISE, 2), np.tile(OFFSET, 2), np.tile(SCALE, 2),
        flat=False, seed=0,
    )  # fmt: skip
    both = np.column_stack([TARGETS, TARGETS])
    np.testing.assert_allclose(twice.log_prob(both), 2 * np.array(each), rtol=1e-10)
    np.testing.assert_allclose(twice.entropy, 2 * known.entropy, rtol=1e-10)
    np.testing.assert_allclose(twice.mutual_information, 2 * known.mutual_information, atol=1e-12)
    assert twice.cdf(both).shape == twice.crps(both).shape == (3, 2)
    assert twice.quantile(0.3).shape == twice.mean.shape == (3, 2)
    assert twice.sample(0).shape == twice.draws().shape == (twice.num_draws, 3, 2)


def test_draws_and_samples_have_the_moments(known):
    draws, samples = known.draws(), known.sample(1)
    error = 5 / np.sqrt(known.num_draws)
    assert len(known) == 3
    assert draws.shape == samples.shape == (known.num_draws, 3)
    assert (abs(draws.mean(0) - known.mean) <= error * np.sqrt(known.epistemic_variance) + 1e-9).all()
    assert (abs(samples.mean(0) - known.mean) <= error * known.std).all()
    assert (abs(samples.var(0) / known.variance - 1) <= error * np.sqrt(2)).all()
    assert np.array_equal(known.sample(1), samples)
    assert not known.is_classification


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


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_a_copy_predicts_the_same_bits(fitted, two, copied):
    for model in (fitted, two):
        assert np.array_equal(copied(model).predict(NEW), model.predict(NEW))
        assert np.array_equal(copied(model).sample_y(NEW, 2, 3), model.sample_y(NEW, 2, 3))


def test_predicting_adds_and_changes_no_attribute(fitted):
    before, content = {name: id(value) for name, value in vars(fitted).items()}, pickle.dumps(fitted)
    fitted.predict(NEW)
    fitted.sample_y(NEW, 2)
    fitted.score(X, Y)
    assert fitted.predict_distribution(NEW).entropy.shape == (40,)
    assert {name: id(value) for name, value in vars(fitted).items()} == before
    assert pickle.dumps(fitted) == content


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
        ("noise", -1.0, "expected a positive number, or one a target; got -1.0"),
        ("noise", [0.1, 0.2], "expected a positive number, or one a target; got"),
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
    with pytest.raises(ValueError, match="expected at most 25 rows.*got 30: fit a part of them"):
        ExactGPRegressor().fit(X, Y)


def test_a_joint_draw_over_too_many_rows_is_refused(fitted, monkeypatch):
    monkeypatch.setattr(exact_gp, "MOST_ROWS", 25)
    with pytest.raises(ValueError, match="draws: .*expected at most 25 of them, got 40: draw at fewer rows"):
        fitted.sample_y(NEW)


def test_questions_with_a_mistake(fitted):
    distribution = fitted.predict_distribution(NEW)
    with pytest.raises(ValueError, match="quantile: levels must lie strictly between 0 and 1; got 1.5"):
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
