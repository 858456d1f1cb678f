"""Laplace's approximation of linear models is exact: the posterior, the evidence, and what is chosen by it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from linear_data import NOISE, X, Y, outputs_of
from metaprior.baselines import LaplaceClassifier, LaplaceRegressor
from metaprior.baselines.laplace import curvature_of
from metaprior.baselines.laplace_evidence import Evidence
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.weights import Point

pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.parametrize("structure", ["full", "last_layer", "kronecker"])
def test_laplace_of_a_linear_model_is_the_exact_posterior(structure):
    """A linear network has one layer, and for one output its curvature is a Kronecker product."""
    model = LaplaceRegressor((), noise=NOISE, structure=structure, n_predict_draws=4000, random_state=0).fit(X, Y)
    design = np.column_stack([(X - model.x_offset_) / model.x_scale_, np.ones(40)])
    noise = NOISE / model.y_scale_
    covariance = np.linalg.inv(model.prior_precision_ * np.eye(3) + design.T @ design / noise**2)
    expected = np.einsum("nv,vw,nw->n", design, covariance, design) * model.y_scale_**2
    found = model.predict_distribution(X).epistemic_variance
    assert_allclose(found, expected, rtol=6 * np.sqrt(2 / 4000))


@pytest.mark.parametrize(("log_precision", "log_factor"), [(0.0, 0.0), (-1.0, 0.4), (2.0, -0.3)])
@pytest.mark.parametrize("structure", ["full", "kronecker"])
def test_laplace_evidence_of_a_linear_model_is_the_evidence_wherever_it_is_linearised(
    structure, log_precision, log_factor
):
    design, targets, noise = np.column_stack([X, np.ones(40)]), Y[:, None], 0.6
    covariance = design @ design.T / np.exp(log_precision) + (noise * np.exp(log_factor)) ** 2 * np.eye(40)
    exact = stats.multivariate_normal(np.zeros(40), covariance).logpdf(Y)
    network = Dense((2, 1))
    anywhere = Point((np.array([[0.3], [-1.2], [0.9]]),))  # far from the posterior's maximum
    model = Model(anywhere, network, Gaussian(np.log([noise])))
    curvature = curvature_of(model, X, structure)
    evidence = Evidence(model, model.weights.values, X, targets, curvature)
    assert_allclose(evidence(log_precision, log_factor), exact, rtol=1e-9)


def test_laplace_evidence_of_the_last_layer_takes_its_inputs_as_given():
    """Features that are held make a linear model of the last layer, whose evidence is in closed form."""
    network, rng = Dense((2, 3, 1)), np.random.default_rng(4)
    values = Point.initial(network, rng).values
    model = Model(Point(values), network, Gaussian(np.log([0.6])))
    hidden = np.tanh(np.column_stack([X, np.ones(40)]) @ values[0])
    design = np.column_stack([hidden, np.ones(40)])
    exact = stats.multivariate_normal(np.zeros(40), design @ design.T / 2.0 + 0.36 * np.eye(40)).logpdf(Y)
    curvature = curvature_of(model, X, "last_layer")
    assert_allclose(Evidence(model, model.weights.values, X, Y[:, None], curvature)(np.log(2.0), 0.0), exact, rtol=1e-9)


def test_laplace_takes_the_precision_and_the_noise_of_the_highest_evidence():
    model = LaplaceRegressor((), random_state=0, dtype="float64").fit(X, Y)
    x, targets = (X - model.x_offset_) / model.x_scale_, (Y - model.y_offset_) / model.y_scale_
    design, noise = np.column_stack([x, np.ones(40)]), np.exp(model.model_.likelihood.log_noise[0])

    def exact(precision, noise):
        covariance = design @ design.T / precision + noise**2 * np.eye(40)
        return stats.multivariate_normal(np.zeros(40), covariance).logpdf(targets)

    best = exact(model.prior_precision_, noise)
    assert_allclose(model.log_evidence_, best, rtol=1e-6)
    for factor in (0.9, 1.1):
        assert exact(factor * model.prior_precision_, noise) < best
        assert exact(model.prior_precision_, factor * noise) < best


def test_the_noise_of_laplace_is_no_less_than_what_the_network_leaves_unexplained():
    """After one step the linear model goes through many more targets than the network, whose mean is predicted."""
    model = LaplaceRegressor((50,), max_iter=1, random_state=0).fit(X, Y)
    predicted = model.predict_distribution(X)
    f = outputs_of(model.model_, (X - model.x_offset_) / model.x_scale_)
    left = np.sqrt(np.mean((Y - model.y_offset_ - model.y_scale_ * f) ** 2))
    assert np.sqrt(predicted.aleatoric_variance).min() >= left * (1 - 1e-6)


def test_laplace_classes_are_less_certain_far_away_than_the_map():
    labels = (X[:, 0] > 0).astype(int)
    model = LaplaceClassifier((8,), max_iter=300, random_state=0).fit(X, labels)
    far = model.predict_distribution(30 * X)
    assert far.mutual_information.mean() > 0.1
