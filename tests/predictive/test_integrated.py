"""What a model with an integrated output layer answers, and what it says to odd data and to mistakes."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import logsumexp

from metaprior import MetaGPRegressor
from metaprior.estimators import method
from metaprior.estimators.fit import method_of
from metaprior.estimators.regime import EXACT_MOST
from metaprior.inference import Batch
from metaprior.likelihoods import Categorical, Gaussian, Likelihood
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.output_layer import Exact, OutputLayer, PseudoObservations
from metaprior.predictive import Predictive
from metaprior.predictive.integrated import IntegratedDraws
from metaprior.predictive.mixture import predictive_of
from written import integrated_metagp

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (30, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(30)
#: Among the data and away from them, and the same in another order.
X_NEW = np.concatenate([X[:3], RNG.uniform(-4, 4, (5, 2))])
ORDER = np.array([4, 0, 7, 1, 3, 6, 2, 5])

SMALL = {"hidden_layer_sizes": (5,), "max_iter": 100, "random_state": 0}
LOCAL = {**SMALL, "input_kernel": "rbf"}
pytestmark = pytest.mark.filterwarnings("ignore:the median distance")


class Known(NamedTuple):
    """A model that predicts, and the units of its targets."""

    at: Callable[[np.ndarray], Predictive]
    offset: np.ndarray
    scale: np.ndarray

    def targets(self) -> np.ndarray:
        return self.offset + self.scale * np.random.default_rng(1).standard_normal((len(X_NEW), len(self.scale)))

    def components(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """At X_NEW, [S, N, K] and [S, N, K, K] of the functions of every draw below, and its noise, [S, 1, K]."""
        ((_, mean, covariance, noise),) = self.at(X_NEW)._draws.gaussians()
        return self.offset + self.scale * mean, covariance * np.outer(self.scale, self.scale), self.scale * noise


@pytest.fixture(scope="module")
def fitted():
    """With so few rows hyper-parameters are uncertain: every draw has a noise of its own."""
    return MetaGPRegressor(**LOCAL).fit(X, Y)


@pytest.fixture(scope="module")
def one_output(fitted):
    return Known(fitted.predict_distribution, fitted.y_offset_, fitted.y_scale_)


def _built(sizes: tuple[int, ...], likelihood: Likelihood, output: OutputLayer, offset, scale) -> Known:
    """A model that nobody has trained: 4 draws below, 32 functions."""
    model = Model(integrated_metagp(sizes), Dense(sizes), likelihood, output)
    key = np.array([3, 0], np.uint32)

    def at(x: np.ndarray) -> Predictive:
        return predictive_of(IntegratedDraws(model, key, 4, key, 32, x), offset, scale, flat=False)

    return Known(at, offset, scale)


@pytest.fixture(scope="module")
def two_outputs():
    y = np.column_stack([Y, -Y + 0.1 * RNG.standard_normal(30)])
    output = Exact().with_rows(Batch(X[:6], y[:6], np.ones(6)))
    return _built((2, 3, 2), Gaussian(np.log([0.2, 0.3])), output, np.array([1.0, -2.0]), np.array([2.0, 0.5]))


@pytest.fixture(scope="module")
def classes():
    output = PseudoObservations.initial(X[:6], RNG.standard_normal((6, 3)), alike=False)
    return _built((2, 3, 3), Categorical(), output, np.zeros(1), np.ones(1))


@pytest.fixture(params=["one_output", "two_outputs"])
def known(request):
    return request.getfixturevalue(request.param)


# --- rows -------------------------------------------------------------------------------------------------------------


def _answers(predictive: Predictive, y: np.ndarray) -> dict[str, np.ndarray]:
    """Answers with the rows first."""
    return {
        "mean": predictive.mean,
        "variance": predictive.variance,
        "quantile": predictive.quantile(0.9),
        "log_prob": predictive.log_prob(y),
        "draws": np.swapaxes(predictive.draws(), 0, 1),
    }


def test_rows_alone_and_in_another_order_have_the_answers_they_have_together(known):
    y = known.targets()
    together = _answers(known.at(X_NEW), y)
    for rows in (ORDER, [0], [6]):
        for name, answer in _answers(known.at(X_NEW[rows]), y[rows]).items():
            assert_allclose(answer, together[name][rows], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", ["gaussians", "chunks", "coherent"])
def test_no_setting_of_jax_is_changed_between_two_parts_of_the_rows(fitted, name):
    draws = method_of(fitted).function_draws(fitted, np.asarray(X))
    parts = draws.coherent().chunks() if name == "coherent" else getattr(draws, name)()
    next(parts)
    assert jnp.zeros(1).dtype == jnp.float32


def test_classes_sum_to_one_and_those_of_a_row_alone_are_those_together(classes):
    together = classes.at(X_NEW).probabilities
    assert together.shape == (8, 3)
    assert together.std() > 0.05
    assert_allclose(together.sum(axis=1), 1, rtol=1e-12)
    for rows in (ORDER, [0], [6]):
        assert_allclose(classes.at(X_NEW[rows]).probabilities, together[rows], rtol=1e-9)


# --- answers ----------------------------------------------------------------------------------------------------------


def test_moments_are_those_of_the_mixture_over_draws(known):
    (mean, covariance, noise), predictive = known.components(), known.at(X_NEW)
    expected = {
        "mean": mean.mean(axis=0),
        "epistemic_variance": mean.var(axis=0) + np.diagonal(covariance, axis1=2, axis2=3).mean(axis=0),
        "aleatoric_variance": np.mean(noise**2, axis=0) * np.ones_like(mean[0]),
    }
    for name, value in expected.items():
        assert_allclose(getattr(predictive, name).reshape(value.shape), value, rtol=1e-9, err_msg=name)
    assert_allclose(predictive.variance, predictive.epistemic_variance + predictive.aleatoric_variance, rtol=1e-12)
    assert_allclose(predictive.std**2, predictive.variance, rtol=1e-12)


def test_log_prob_is_the_mixtures_joint_density_of_all_outputs(known):
    """Outputs that one draw of what is below ties together are not independent given it."""
    (mean, covariance, noise), y = known.components(), known.targets()
    each = [
        [
            stats.multivariate_normal(mean[s, n], covariance[s, n] + np.diag(noise[s, 0] ** 2)).logpdf(y[n])
            for n in range(len(y))
        ]
        for s in range(len(mean))
    ]
    assert_allclose(known.at(X_NEW).log_prob(y), logsumexp(each, axis=0) - np.log(len(mean)), rtol=1e-9)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.975])
def test_quantile_inverts_cdf_and_cdf_is_the_mixtures(known, level):
    (mean, covariance, noise), predictive = known.components(), known.at(X_NEW)
    y = predictive.quantile(level)
    assert_allclose(predictive.cdf(y), level, rtol=1e-6)
    std = np.sqrt(np.diagonal(covariance, axis1=2, axis2=3) + noise**2)
    assert_allclose(stats.norm(mean, std).cdf(y.reshape(8, -1)).mean(axis=0), level, rtol=1e-6)


def test_entropy_and_crps_are_those_of_integrals_over_the_mixture(one_output):
    predictive, y = one_output.at(X_NEW), one_output.targets()[:, 0]
    mean, covariance, noise = one_output.components()
    mixture = stats.norm(mean[..., 0, None], np.sqrt(covariance[..., 0, 0, None] + noise**2))
    reach = np.linspace(-30, 30, 20_001) * one_output.scale
    density, below = mixture.pdf(reach).mean(axis=0), mixture.cdf(reach).mean(axis=0)
    entropy = trapezoid(-density * np.log(np.maximum(density, 1e-300)), reach, axis=1)
    assert_allclose(predictive.entropy, entropy, atol=2e-3)  # as documented, and the grid's own
    given = np.mean(0.5 * np.log(2 * np.pi * np.e * noise**2))
    assert_allclose(predictive.mutual_information, entropy - given, atol=2e-3)
    crps = trapezoid((below - (reach >= y[:, None])) ** 2, reach, axis=1)
    assert_allclose(predictive.crps(y), crps, atol=2 * (reach[1] - reach[0]))


def test_drawn_functions_have_the_mean_and_the_epistemic_variance(fitted):
    predictive = fitted.predict_distribution(X_NEW)
    f = fitted.sample_y(X_NEW, 1600, random_state=3)
    squares = (f - predictive.mean[:, None]) ** 2
    for found, expected in ((f, predictive.mean), (squares, predictive.epistemic_variance)):
        error = found.std(axis=1) / np.sqrt(1600)
        np.testing.assert_array_less(np.abs(found.mean(axis=1) - expected), 4 * error)


# --- mistakes ---------------------------------------------------------------------------------------------------------

MISTAKES = {
    "exact, many rows": (
        {"output_layer": "exact", "input_kernel": "rbf"},
        EXACT_MOST + 1,
        1,
        "at most 4000 rows",
    ),
    "exact, many of two": (
        {"output_layer": "exact", "input_kernel": "rbf"},
        EXACT_MOST // 2 + 1,
        2,
        "Take output_layer='inducing_rows'",
    ),
    "inducing": ({"output_layer": "inducing_rows", "n_inducing_rows": 31}, 30, 1, "at most the 30 rows"),
    "pseudo": ({"output_layer": "pseudo_observations", "n_inducing_rows": 31}, 30, 1, "at most the 30 rows"),
    "exact counts": ({"output_layer": "exact", "likelihood": "poisson"}, 30, 1, "expected Gaussian noise"),
    "inducing counts": ({"output_layer": "inducing_rows", "likelihood": "poisson"}, 30, 1, "expected Gaussian noise"),
    "diag": ({"output_layer": "exact", "conditional": "diag"}, 30, 1, "expected conditional='pathwise' or 'full'"),
    "fitc": ({"output_layer": "pseudo_observations", "conditional": "fitc"}, 30, 1, "no function to integrate over"),
    "residual": ({"output_layer": "exact", "residual_layers": "all"}, 30, 1, "expected residual_layers=None"),
    "mean-field": ({"output_layer": "exact", "mean_field_layers": (-1,)}, 30, 1, "a last layer with the GP"),
    "name": ({"output_layer": "integrated"}, 30, 1, "output_layer: expected one of"),
    "no number": ({"n_inducing_rows": 0}, 30, 1, "n_inducing_rows: expected 'auto' or a whole number"),
}


@pytest.mark.parametrize(("options", "num_rows", "num_outputs", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_before_training(options, num_rows, num_outputs, message, monkeypatch):
    monkeypatch.setattr(method, "train", lambda *_, **__: pytest.fail("training began"))
    y = np.zeros(num_rows) if num_outputs == 1 else np.zeros((num_rows, num_outputs))
    x = np.arange(2.0 * num_rows).reshape(num_rows, 2)  # rows that are equal would be joined
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        MetaGPRegressor(**SMALL, **{"input_kernel": None, **options}).fit(x, y)


# --- odd data and odd models ------------------------------------------------------------------------------------------

ODD = {
    "repeated rows": (np.tile(X[:3], (10, 1)), np.tile(Y[:3], 10)),
    "repeated rows that disagree": (np.tile(X[:3], (10, 1)), Y),
    "a constant column": (np.column_stack([X[:, 0], np.full(30, 3.0)]), Y),
    "constant targets": (X, np.ones(30)),
    "one row": (X[:1], Y[:1]),
    "two rows": (X[:2], Y[:2]),
}


def _assert_finite(model, x: np.ndarray, y: np.ndarray) -> None:
    model.fit(x, y)
    assert np.all(np.isfinite(model.elbo_history_))
    predictive = model.predict_distribution(X_NEW)
    assert np.all(np.isfinite(predictive.mean))
    assert np.all(np.isfinite(predictive.log_prob(np.zeros(predictive.mean.shape))))
    assert np.all(predictive.epistemic_variance >= 0)


@pytest.mark.parametrize(("x", "y"), ODD.values(), ids=ODD)
def test_odd_data_end_in_finite_answers(x, y):
    _assert_finite(MetaGPRegressor(**LOCAL), x, y)


def test_repeated_rows_as_inducing_rows_end_in_finite_answers():
    _assert_finite(MetaGPRegressor(**LOCAL, output_layer="inducing_rows"), *ODD["repeated rows"])


def test_mean_field_layers_below_fit():
    _assert_finite(MetaGPRegressor(**SMALL, mean_field_layers=(0,), input_kernel=None), X, Y)


def test_full_with_local_layers_below_is_refused():
    with pytest.raises(ValueError, match="conditional: expected 'pathwise' with local layers below"):
        MetaGPRegressor(**LOCAL, conditional="full", local_layers=(0, 1)).fit(X, Y)
