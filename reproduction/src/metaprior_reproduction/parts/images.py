"""What both items on images share: the digits, the sets without digits, and the networks, all 784-100-10."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from metaprior import baselines, kernels
from metaprior.estimators import MetaGPClassifier
from metaprior.predictive import Predictive
from metaprior.predictive.mixture import mixture_of
from metaprior_reproduction import datasets
from metaprior_reproduction.parts.item import Config
from metaprior_reproduction.parts.methods import configured

PAPER, OURS = "MetaGP-Local[RBF]", "MetaGP-Local[mixture]"


def _papers(**more: Any) -> MetaGPClassifier:
    """Return the paper's network: mean-field below, a GP on the last layer, input kernel on two learned directions."""
    settings: dict[str, Any] = {"mean_field_layers": [0], "n_inducing": 50, "latent_dim": 2}
    return MetaGPClassifier(**settings, input_kernel=kernels.RBF(), input_projection=2, **more)


#: Ours differs from the paper's in two ways: a weight of the last layer has a residual beside the GP, and several such
#: networks, from different starts, are mixed. The ensemble of plain networks makes the comparison fair.
CLASSIFIERS: Mapping[str, Callable[[], Any]] = {
    "BNN-MAP": lambda: baselines.MAPClassifier(),
    "Ensemble": lambda: baselines.EnsembleClassifier(),
    "BNN-MFVI": lambda: baselines.MFVIClassifier(),
    "MetaNN": lambda: baselines.MetaNNClassifier(),
    "DKL": lambda: baselines.DKLClassifier(n_inducing=50),
    "MetaGP": lambda: MetaGPClassifier(input_kernel=None, mean_field_layers=[0], n_inducing=50, latent_dim=2),
    PAPER: _papers,
    OURS: lambda: _papers(residual_layers=[1]),
}
#: Sets without digits, as the names of metrics spell them.
OUTSIDE = ("notmnist", "fashion", "kmnist", "uniform", "gaussian")
#: The seed of the noise images, which are the same for all methods and seeds.
NOISE_SEED = 0
#: The difference between the seeds of two members of a mixture; larger than the number of runs.
MEMBER_SEEDS = 1000


class Mixture(NamedTuple):
    """Fitted classifiers whose predictions are mixed."""

    members: list[Any]

    def predict_distribution(self, X: np.ndarray) -> Predictive:
        """Return the mixture of the members' predictive distributions."""
        return mixture_of([member.predict_distribution(X) for member in self.members])

    def sample_y(self, X: np.ndarray, n_samples: int, random_state: int) -> np.ndarray:
        """Return draws from all members, equally many from each, [images, classes, draws]."""
        each = -(-n_samples // len(self.members))
        parts = [member.sample_y(X, each, random_state=random_state) for member in self.members]
        return np.concatenate(parts, axis=2)[:, :, :n_samples]


def fitted(method: str, config: Config, seed: int) -> Any:
    """Return the classifier of a method, trained on `train_rows` random digits."""
    digits = datasets.mnist("train")
    rows = np.random.default_rng(seed).permutation(len(digits.y))[: config["train_rows"]]
    count = config["n_members"] if method == OURS else 1
    models = [configured(CLASSIFIERS[method](), config, seed + MEMBER_SEEDS * n) for n in range(count)]
    members = [model.fit(digits.X[rows], digits.y[rows]) for model in models]
    return Mixture(members) if method == OURS else members[0]


def outside(name: str, num_images: int) -> np.ndarray:
    """Return the first images of a set without digits."""
    if name == "uniform":
        return datasets.uniform_noise(num_images, NOISE_SEED)
    if name == "gaussian":
        return datasets.gaussian_noise(num_images, NOISE_SEED)
    load = {"notmnist": datasets.notmnist, "fashion": datasets.fashion_mnist, "kmnist": datasets.kmnist}[name]
    return load("test").X[:num_images]
