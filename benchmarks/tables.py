"""The tables that whole fits and predictions are measured on, and the programs of others that fit them."""

from collections.abc import Callable
from typing import Any

import gpytorch
import numpy as np
import torch

from metaprior.inference import Settling

#: When a fit has converged: the rule of our own.
FLAT = Settling()


def friedman(num_rows: int, seed: int, num_columns: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of Friedman's first function, with noise of 1 and columns that do not matter."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(num_rows, num_columns))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, y + rng.standard_normal(num_rows)


def training_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows of the first standard split of a table, whose files METAPRIOR_DATA must name."""
    from metaprior_reproduction.datasets import uci, uci_splits

    data = uci(name)
    rows = uci_splits(name, [0])[0][0]
    return data.X[rows], data.y[rows]


def _standardised(x: np.ndarray, y: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    scaled = [(a - a.mean(axis=0)) / a.std(axis=0) for a in (x, y)]
    return torch.tensor(scaled[0], dtype=torch.float64), torch.tensor(scaled[1], dtype=torch.float64)


class _Exact(gpytorch.models.ExactGP):
    def __init__(self, x: torch.Tensor, y: torch.Tensor, likelihood: Any) -> None:
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=x.shape[1]))

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


def exact_gp(x: np.ndarray, y: np.ndarray) -> Callable[[], int]:
    """Return a program that fits GPyTorch's exact GP with ARD until its evidence is flat, and returns the steps taken.

    Adam with its usual 0.1, as GPyTorch's own examples; the factor is a Cholesky factor, as ours.
    """
    rows, targets = _standardised(x, y)

    def call() -> int:
        torch.manual_seed(0)
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        model = _Exact(rows, targets, likelihood).double()
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        model.train()
        evidence: list[float] = []
        with gpytorch.settings.max_cholesky_size(10_000):
            while FLAT.flat_at(np.array(evidence), len(targets)) is None:
                optimizer.zero_grad()
                loss = -objective(model(rows), targets)
                loss.backward()
                optimizer.step()
                evidence.append(-loss.item() * len(targets))
        return len(evidence)

    return call


class _Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, inducing: torch.Tensor) -> None:
        q = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
        super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, q, learn_inducing_locations=True))
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=inducing.shape[1]))

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


def sparse_gp(x: np.ndarray, y: np.ndarray, num_inducing: int, num_steps: int, batch: int) -> Callable[[], None]:
    """Return a program that fits GPyTorch's SVGP in batches, in its default float32."""
    rows, targets = (part.float() for part in _standardised(x, y))

    def call() -> None:
        torch.manual_seed(0)
        model = _Sparse(rows[torch.randperm(len(rows))[:num_inducing]])
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(rows))
        optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)
        for _ in range(num_steps):
            chosen = torch.randint(len(rows), (batch,))
            optimizer.zero_grad()
            loss = -objective(model(rows[chosen]), targets[chosen])
            loss.backward()
            optimizer.step()

    return call
