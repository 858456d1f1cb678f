"""What a distribution says of several rows together: covariances and joint densities, and of some of its rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import logsumexp

from built_models import NOISE, OFFSET, SCALE, X_NEW, X, Y, built
from metaprior import MetaGPRegressor
from metaprior.baselines import ExactGPRegressor, MFVIRegressor
from metaprior.kernels import RBF
from metaprior.predictive import integrated, limits
from metaprior.predictive.mixture import mixture_of

RNG = np.random.default_rng(4)
TARGETS = OFFSET + SCALE * RNG.standard_normal((len(X_NEW), 2))


@pytest.fixture(scope="module")
def mixture():
    return built(input_kernel=RBF([1.2, 0.9]), weight_gp="per_layer", local_layers=(-1,))


@pytest.fixture(scope="module")
def gp():
    return ExactGPRegressor(n_restarts=0, max_iter=5, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def drawn():
    return MFVIRegressor((3,), max_iter=20, n_predict_draws=16, random_state=0).fit(X, Y)


@pytest.fixture(params=["mixture", "gp", "drawn"])
def predicted(request):
    """With two targets, at seven rows."""
    model = request.getfixturevalue(request.param)
    return model.at(X_NEW) if request.param == "mixture" else model.predict_distribution(X_NEW)


# --- covariances ------------------------------------------------------------------------------------------------------


def _components(mixture):
    """Mean [S, N, K] and covariance [S, K N, K N] of every Gaussian, in the units of the data."""
    found = list(mixture.draws(X_NEW).joint_gaussians())
    scales = np.repeat(SCALE, len(X_NEW))
    covariance = [own.covariance.reshape(len(scales), -1) * np.outer(scales, scales) for own in found]
    return np.stack([OFFSET + SCALE * own.mean for own in found]), np.stack(covariance)


def test_covariance_of_a_mixture_is_the_mean_covariance_and_the_covariance_of_means(mixture):
    mean, covariance = _components(mixture)
    found = mixture.at(X_NEW).covariance()
    for k in range(2):
        block = covariance.reshape(-1, 2, len(X_NEW), 2, len(X_NEW))[:, k, :, k]
        expected = block.mean(axis=0) + np.cov(mean[..., k], rowvar=False, ddof=0)
        assert_allclose(found[..., k], expected, rtol=1e-9, atol=1e-12)


def test_diagonal_is_the_epistemic_variance_and_with_noise_the_variance(predicted):
    each = np.arange(len(predicted))
    tolerance = {"rtol": 1e-6, "atol": 1e-8}
    assert predicted.covariance().shape == (7, 7, 2)
    assert_allclose(predicted.covariance()[each, each], predicted.epistemic_variance, **tolerance)
    noisy = predicted.covariance(noise=True)
    assert_allclose(noisy[each, each], predicted.variance, **tolerance)
    assert_allclose(noisy - predicted.covariance(), np.eye(7)[..., None] * predicted.aleatoric_variance, **tolerance)


def test_covariance_of_drawn_functions_is_that_of_the_draws(drawn):
    predicted = drawn.predict_distribution(X_NEW)
    expected = np.cov(predicted.draws()[..., 1], rowvar=False, ddof=0)
    assert_allclose(predicted.covariance()[..., 1], expected, rtol=1e-9, atol=1e-12)


def test_blocks_of_rows_have_the_covariance_of_all_together(mixture, monkeypatch):
    together = mixture.at(X_NEW).covariance()
    monkeypatch.setattr(integrated, "BLOCK_ROWS", 3)
    monkeypatch.setattr("metaprior.predictive.draws.CHUNK_ROWS", 3)
    assert_allclose(mixture.at(X_NEW).covariance(), together, rtol=1e-9, atol=1e-12)


def test_mixture_of_models_has_the_covariance_of_all_components(mixture):
    other = mixture.at(X_NEW)
    together = mixture_of([mixture.at(X_NEW), other])
    assert_allclose(together.covariance(), other.covariance(), rtol=1e-9)


def test_a_covariance_that_is_too_large_is_refused_with_its_size(predicted, monkeypatch):
    monkeypatch.setattr(limits, "MOST_COVARIANCES", 50)
    with pytest.raises(ValueError, match=r"covariance of 7 rows would have 98 numbers, .* GB; .* predicted\[:5\]"):
        predicted.covariance()


# --- joint densities --------------------------------------------------------------------------------------------------


def test_joint_density_of_a_mixture_is_the_mean_of_its_normal_densities(mixture):
    mean, covariance = _components(mixture)
    noise = np.diag(np.repeat((SCALE * NOISE) ** 2, len(X_NEW)))
    each = [
        stats.multivariate_normal(m.T.ravel(), c + noise).logpdf(TARGETS.T.ravel())
        for m, c in zip(mean, covariance, strict=True)
    ]
    expected = logsumexp(each) - np.log(len(each))
    assert mixture.at(X_NEW).joint_log_prob(TARGETS) == pytest.approx(expected, rel=1e-9)


def test_joint_density_of_an_exact_gp_is_normal(gp):
    predicted = gp.predict_distribution(X_NEW)
    covariance = predicted.covariance(noise=True)
    expected = sum(
        stats.multivariate_normal(predicted.mean[:, k], covariance[..., k]).logpdf(TARGETS[:, k]) for k in range(2)
    )
    assert predicted.joint_log_prob(TARGETS) == pytest.approx(expected, rel=1e-9)


def test_joint_density_of_drawn_functions_mixes_products_over_rows(drawn):
    predicted = drawn.predict_distribution(X_NEW)
    noise = np.sqrt(predicted.aleatoric_variance[0])
    each = stats.norm(predicted.draws(), noise).logpdf(TARGETS).sum(axis=(1, 2))
    assert predicted.joint_log_prob(TARGETS) == pytest.approx(logsumexp(each) - np.log(16), rel=1e-9)


def test_joint_density_of_one_row_is_its_density(mixture):
    one = mixture.at(X_NEW)[3]
    assert one.joint_log_prob(TARGETS[3:4]) == pytest.approx(one.log_prob(TARGETS[3:4])[0], rel=1e-9)


# --- some of the rows -------------------------------------------------------------------------------------------------

INDICES = {
    "slice": (slice(2, 6), [2, 3, 4, 5]),
    "backwards": (slice(None, None, -1), [6, 5, 4, 3, 2, 1, 0]),
    "number": (3, [3]),
    "from the end": (-1, [6]),
    "numbers": ([4, 0, -1, 4], [4, 0, 6, 4]),
    "mask": (np.arange(7) % 3 == 0, [0, 3, 6]),
}


def _answers(predicted, targets):
    """What depends on a row alone, rows first; the first two are kept once they are known."""
    return {
        "mean": predicted.mean,
        "variance": predicted.variance,
        "entropy": predicted.entropy,
        "quantile": predicted.quantile(0.9),
        "log_prob": predicted.log_prob(targets),
        "draws": np.swapaxes(predicted.draws(), 0, 1),
    }


@pytest.mark.parametrize("index", INDICES)
def test_selected_rows_say_what_the_whole_says_of_them_before_and_after_it_is_known(predicted, index):
    rows, chosen = INDICES[index]
    before = _answers(predicted[rows], TARGETS[chosen])
    whole = _answers(predicted, TARGETS)
    after = _answers(predicted[rows], TARGETS[chosen])
    for name, answer in whole.items():
        assert_allclose(before[name], answer[chosen], rtol=1e-9, atol=1e-9, err_msg=name)
        assert_allclose(after[name], answer[chosen], rtol=1e-13, atol=1e-13, err_msg=name)
    for name in ("mean", "variance", "entropy"):
        assert_array_equal(after[name], whole[name][chosen])
    assert len(predicted[rows]) == len(chosen)


def test_what_is_known_of_selected_rows_is_not_computed_again(mixture, monkeypatch):
    predicted = mixture.at(X_NEW)
    expected = predicted.quantile(0.3)[2:4]

    def refuse(*_):
        raise AssertionError("computed again")

    monkeypatch.setattr(integrated.IntegratedDraws, "gaussians", refuse)
    assert_array_equal(predicted[2:4].quantile(0.3), expected)
    assert_array_equal(predicted[1:5][1:3].quantile(0.3), expected)


def test_rows_can_be_gone_through_one_by_one(gp):
    predicted = gp.predict_distribution(X_NEW)
    mean = predicted.mean  # from now on it is known of every row
    assert_array_equal(np.concatenate([row.mean for row in predicted]), mean)


@pytest.mark.parametrize(
    ("index", "told"),
    [
        (7, "expected rows from -7 to 6; got 7"),
        ([0, -8], "expected rows from -7 to 6; got -8"),
        (np.ones(6, bool), r"a mask with one value for each of the 7 rows; got the shape \(6,\)"),
        (slice(3, 3), "expected at least one of the 7 rows"),
        (np.zeros((1, 2), int), "Columns are not selected"),
        ("mean", "expected rows: a slice, a number"),
        (1.5, "expected rows: a slice, a number"),
    ],
)
def test_other_indices_are_refused(gp, index, told):
    with pytest.raises(IndexError, match=told):
        gp.predict_distribution(X_NEW)[index]


def test_a_distribution_is_not_one_array(gp):
    with pytest.raises(TypeError, match="is not one array; take mean"):
        np.asarray(gp.predict_distribution(X_NEW))


# --- predict(return_cov=True) -----------------------------------------------------------------------------------------


def test_predict_returns_the_covariance_of_y_whose_diagonal_is_the_squared_deviation(gp):
    mean, covariance = gp.predict(X_NEW, return_cov=True)
    expected, std = gp.predict(X_NEW, return_std=True)
    assert_array_equal(mean, expected)
    assert_allclose(np.diagonal(covariance).T, std**2, rtol=1e-9)
    flat = ExactGPRegressor(n_restarts=0, max_iter=2).fit(X, Y[:, 0])
    assert flat.predict(X_NEW, return_cov=True)[1].shape == (7, 7)


def test_deviation_and_covariance_at_once_are_refused():
    model = MetaGPRegressor()
    with pytest.raises(RuntimeError, match="at most one of return_std and return_cov"):
        model.predict(X_NEW, return_std=True, return_cov=True)
