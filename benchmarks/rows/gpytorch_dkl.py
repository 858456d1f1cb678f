"""A training step on 100 rows: GPyTorch's deep kernel learning (50 inducing points) against the 1-50-1 local model."""

import gpytorch
import torch

from benchmarks.measure import Row, alternating
from benchmarks.models import gaussian, metagp, sinusoid, training
from metaprior.inference import StepConfig

STEPS, NUM_INDUCING = 50, 50


class DeepKernel(gpytorch.models.ApproximateGP):
    """A sparse variational GP on the features of a network, in GPyTorch's own style."""

    def __init__(self, inducing: torch.Tensor) -> None:
        q = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
        strategy = gpytorch.variational.VariationalStrategy(self, inducing, q, learn_inducing_locations=True)
        super().__init__(strategy)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, features: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean(features), self.kernel(features))


def peer(x: torch.Tensor, y: torch.Tensor):
    """Return a program of STEPS steps of GPyTorch's DKL."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(1, 50), torch.nn.Tanh(), torch.nn.Linear(50, 1))
    model, likelihood = (
        DeepKernel(torch.linspace(-1, 1, NUM_INDUCING)[:, None]),
        gpytorch.likelihoods.GaussianLikelihood(),
    )
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(x))
    parts = [network, model, likelihood]
    optimizer = torch.optim.Adam([p for part in parts for p in part.parameters()], lr=0.01)

    def call() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = -objective(model(network(x)), y)
            loss.backward()
            optimizer.step()

    return call


def measure() -> Row:
    """Return (time of GPyTorch's step) / (time of ours), with the library's default of four draws."""
    data = sinusoid()
    num_rows = int(data.num_rows)
    x, y = (torch.tensor(a[:num_rows]) for a in (data.x, data.y))
    programs = {
        "GPyTorch": peer(x, y[:, 0]),
        "ours": training(metagp((1, 50, 1), data, gaussian(), activation="tanh"), data, STEPS, StepConfig(None, 4)),
    }
    times = {name: value / STEPS for name, value in alternating(programs, repeats=11).items()}
    return Row(
        "1-50-1 local step, 100 rows: GPyTorch DKL (variational, 50 inducing points) / ours (4 draws)",
        times["GPyTorch"] / times["ours"],
        ">= 2",
        {"seconds": times},
    )
