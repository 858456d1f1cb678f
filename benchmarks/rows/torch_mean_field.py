"""A training step of 784-100-10: ours, local in all layers, against mean-field weights in PyTorch's own style."""

import torch
from torch import nn
from torch.nn import functional

from benchmarks.measure import Row, alternating
from benchmarks.models import BATCH, images, metagp, training
from metaprior.inference import StepConfig

SIZES, STEPS = (784, 100, 10), 50


class MeanFieldLinear(nn.Module):
    """A linear layer with Gaussian weights, which draws its pre-activations."""

    def __init__(self, num_in: int, num_out: int) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.randn(num_in + 1, num_out) / num_in**0.5)
        self.log_std = nn.Parameter(torch.full((num_in + 1, num_out), -4.0))

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        h = functional.pad(h, (0, 1), value=1.0)
        variance = (h * h) @ torch.exp(2 * self.log_std)
        return h @ self.mean + variance.sqrt() * torch.randn_like(variance)

    def kl(self) -> torch.Tensor:
        return 0.5 * (torch.exp(2 * self.log_std) + self.mean**2 - 1 - 2 * self.log_std).sum()


def peer(x: torch.Tensor, y: torch.Tensor):
    """Return a program that makes STEPS steps."""
    torch.manual_seed(0)
    layers = [MeanFieldLinear(a, b) for a, b in zip(SIZES[:-1], SIZES[1:], strict=True)]
    network = nn.Sequential(layers[0], nn.ReLU(), layers[1])
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)

    def call() -> None:
        for _ in range(STEPS):
            rows = torch.randint(len(x), (BATCH,))
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(x[rows]), y[rows]) + sum(l.kl() for l in layers) / len(x)
            loss.backward()
            optimizer.step()

    return call


def measure() -> Row:
    """Return (time of our step) / (time of PyTorch's mean-field step)."""
    data, draws = images(), StepConfig(BATCH, 1)
    x, y = torch.tensor(data.x), torch.tensor(data.y[:, 0]).long()
    programs = {
        "ours": training(metagp(SIZES, data, projection_dims=2), data, STEPS, draws),
        "PyTorch": peer(x, y),
    }
    times = {name: value / STEPS for name, value in alternating(programs, repeats=11).items()}
    return Row(
        "training step, 784-100-10, batch 128: ours (pathwise, all layers local) / a PyTorch MFVI",
        times["ours"] / times["PyTorch"],
        "<= 2",
        {"seconds": times},
    )
