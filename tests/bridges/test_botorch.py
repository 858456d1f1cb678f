"""BoTorch with our functions: posteriors, gradients, and a search for the maximum end to end."""

import numpy as np
import pytest

pytest.importorskip("botorch", reason='the bridge to BoTorch needs pip install ".[botorch]"')

import torch
from botorch.acquisition import qLogExpectedImprovement, qUpperConfidenceBound
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.optim import optimize_acqf
from botorch.sampling.get_sampler import get_sampler

from bridges.fitted import X, Y, regressor
from metaprior import MetaGPRegressor
from metaprior.bridges import BoTorchModel

BOUNDS = torch.tensor([[-1.0, -1.0], [1.0, 1.0]], dtype=torch.double)


def test_the_members_are_the_draws_and_their_mean_is_near_that_of_the_model():
    model = BoTorchModel(regressor(), num_draws=1024)
    rows = torch.as_tensor(X)
    posterior = model.posterior(rows)
    np.testing.assert_array_equal(posterior.values.numpy(), model.functions.values(X))
    predicted = regressor().predict_distribution(X)
    std = np.sqrt(predicted.epistemic_variance)
    # of 1024 draws, which share the 4 draws of what is below equally
    assert np.all(np.abs(posterior.mean.numpy()[:, 0] - predicted.mean) < 5 * std / np.sqrt(1024))
    np.testing.assert_allclose(posterior.variance.numpy()[:, 0], std**2, rtol=0.35)


@pytest.mark.parametrize("kind", ["global", "local", "two targets"])
def test_gradients_are_those_of_torchs_own_check(kind):
    model = BoTorchModel(regressor(kind), num_draws=3)
    rows = torch.as_tensor(X[:2]).requires_grad_()
    assert torch.autograd.gradcheck(model.forward, (rows,), eps=1e-5, atol=1e-5)


def test_batches_of_points_have_the_values_of_their_points():
    model, points = BoTorchModel(regressor("two targets"), num_draws=5), torch.as_tensor(X).reshape(3, 2, 4, 2)
    values = model.posterior(points).values
    assert values.shape == (3, 2, 5, 4, 2)
    for one in range(3):
        for two in range(2):
            torch.testing.assert_close(values[one, two], model.posterior(points[one, two]).values)
    assert model.posterior(points.float()).values.dtype == torch.float32
    assert model.posterior(points, output_indices=[1]).mean.shape == (3, 2, 4, 1)


def test_a_later_fit_of_the_estimator_leaves_the_model_as_it_is():
    estimator = MetaGPRegressor((3,), max_iter=20, random_state=0).fit(X, Y)
    model, rows = BoTorchModel(estimator, num_draws=4), torch.as_tensor(X)
    before = model.posterior(rows).values
    estimator.fit(X, 10 * Y)
    torch.testing.assert_close(model.posterior(rows).values, before, rtol=0, atol=0)


@pytest.mark.parametrize("q", [1, 2])
def test_the_optimised_expected_improvement_beats_the_best_of_many_candidates(q):
    torch.manual_seed(0)
    model = BoTorchModel(regressor(), num_draws=64)
    sampler = get_sampler(model.posterior(BOUNDS), torch.Size([64]), seed=0)
    improvement = qLogExpectedImprovement(model, best_f=float(Y.max()), sampler=sampler)
    found, value = optimize_acqf(improvement, BOUNDS, q=q, num_restarts=3, raw_samples=32, options={"maxiter": 30})
    assert found.shape == (q, 2)
    assert torch.all((found >= BOUNDS[0]) & (found <= BOUNDS[1]))
    with torch.no_grad():
        candidates = BOUNDS[0] + 2 * torch.rand(64, q, 2, dtype=torch.double)
        assert value >= improvement(candidates).max() - 1e-6
    assert torch.isfinite(value)


def test_other_acquisitions_and_pending_points_run():
    model = BoTorchModel(regressor(), num_draws=32)
    points = torch.as_tensor(X[:4, None]).requires_grad_()
    for acquisition in (
        qUpperConfidenceBound(model, beta=2.0),
        qLogNoisyExpectedImprovement(model, X_baseline=torch.as_tensor(X), prune_baseline=False),
        qLogExpectedImprovement(model, best_f=0.5, X_pending=torch.as_tensor(X[5:7])),
    ):
        values = acquisition(points)
        assert values.shape == (4,)
        (gradient,) = torch.autograd.grad(values.sum(), points)
        assert torch.all(torch.isfinite(gradient))


@pytest.mark.slow
def test_a_loop_of_expected_improvement_finds_the_maximum():
    """The maximum of exp(-2 |x - c|^2), from 6 points and 10 more, is found within 0.01; random points are worse."""
    torch.manual_seed(0)
    centre = np.array([0.3, -0.4])

    def function(x):
        return np.exp(-np.sum((x - centre) ** 2, axis=-1) / 0.5)

    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (6, 2))
    for _ in range(10):
        fitted = MetaGPRegressor((20,), input_kernel="rbf", max_iter=200, noise=1e-3, random_state=0).fit(
            x, function(x)
        )
        improvement = qLogExpectedImprovement(BoTorchModel(fitted, num_draws=64), best_f=function(x).max())
        found, _ = optimize_acqf(improvement, BOUNDS, q=1, num_restarts=4, raw_samples=64)
        x = np.vstack([x, found.numpy()])
    assert function(x).max() > 0.99
    assert function(rng.uniform(-1, 1, (16, 2))).max() < function(x).max()
