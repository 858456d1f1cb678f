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

ONE, MIXTURE, PUBLISHED = "MetaGP-Local[RBF]", "MetaGP-Local[mixture]", "MetaGP-Local[RBF] (as published)"
LAPLACE = "Laplace, last layer"


def _papers(**more: Any) -> MetaGPClassifier:
    """Return the paper's network: mean-field below, a GP on the last layer, input kernel on two learned directions."""
    settings: dict[str, Any] = {"mean_field_layers": [0], "latent_dim": 2, "input_projection": 2}
    return MetaGPClassifier(**settings, input_kernel=kernels.RBF(), **more)


#: Ours are the paper's network with the integrated output layer, once alone and once as a mixture of several from
#: different starts; the ensemble of plain networks makes the comparison of the mixture fair. "As published" draws every
#: weight through 50 inducing codes, as the paper does.
CLASSIFIERS: Mapping[str, Callable[[], Any]] = {
    "BNN-MAP": lambda: baselines.MAPClassifier(),
    "Ensemble": lambda: baselines.EnsembleClassifier(),
    LAPLACE: lambda: baselines.LaplaceClassifier(structure="last_layer"),
    "BNN-MFVI": lambda: baselines.MFVIClassifier(),
    "MetaNN": lambda: baselines.MetaNNClassifier(),
    "DKL": lambda: baselines.DKLClassifier(n_inducing=50),
    PUBLISHED: lambda: _papers(output_layer="drawn", n_inducing=50),
    "MetaGP": lambda: MetaGPClassifier(input_kernel=None, mean_field_layers=[0], latent_dim=2),
    ONE: _papers,
    MIXTURE: _papers,
}
#: Sets without digits, as the names of metrics spell them. Omniglot is the half that nothing was chosen with.
OUTSIDE = ("notmnist", "fashion", "kmnist", "omniglot", "uniform", "gaussian")
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


def settings_of(method: str, config: Config) -> dict[str, Any]:
    """Return the settings of a method: those of all, and those of an integrated output layer for methods with one."""
    integrated = config["integrated"] if method in ("MetaGP", ONE, MIXTURE) else {}
    return {**config, **integrated}


def fitted(method: str, config: Config, seed: int) -> Any:
    """Return the classifier of a method, trained on `train_rows` random digits."""
    digits, settings = datasets.mnist("train"), settings_of(method, config)
    rows = np.random.default_rng(seed).permutation(len(digits.y))[: config["train_rows"]]
    count = config["n_members"] if method == MIXTURE else 1
    models = [configured(CLASSIFIERS[method](), settings, seed + MEMBER_SEEDS * n) for n in range(count)]
    members = [model.fit(digits.X[rows], digits.y[rows]) for model in models]
    return Mixture(members) if method == MIXTURE else members[0]


def outside(name: str, num_images: int) -> np.ndarray:
    """Return the first images of a set without digits."""
    if name == "uniform":
        return datasets.uniform_noise(num_images, NOISE_SEED)
    if name == "gaussian":
        return datasets.gaussian_noise(num_images, NOISE_SEED)
    if name == "omniglot":
        return datasets.omniglot("small2").X[:num_images]
    load = {"notmnist": datasets.notmnist, "fashion": datasets.fashion_mnist, "kmnist": datasets.kmnist}[name]
    return load("test").X[:num_images]
