"""What both items on images share: the digits, the sets that are none, and the networks, all 784-100-10."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from metaprior import baselines, datasets, kernels
from metaprior.estimators import MetaGPClassifier
from metaprior.experiments.item import Config
from metaprior.experiments.methods import configured

PAPER, OURS = "MetaGP-Local[RBF]", "MetaGP-Local[ours]"
#: The last layer has the GP, the first is mean-field; ours has more inducing codes, latents and projected dimensions.
CLASSIFIERS: Mapping[str, Callable[[], Any]] = {
    "BNN-MAP": lambda: baselines.MAPClassifier(),
    "BNN-MFVI": lambda: baselines.MFVIClassifier(),
    "MetaNN": lambda: baselines.MetaNNClassifier(),
    "DKL": lambda: baselines.DKLClassifier(num_inducing=50),
    "MetaGP": lambda: MetaGPClassifier(mean_field_layers=[0], num_inducing=50, latent_dim=2),
    PAPER: lambda: MetaGPClassifier(
        mean_field_layers=[0], num_inducing=50, latent_dim=2, input_kernel=kernels.RBF(), input_projection=2
    ),
    OURS: lambda: MetaGPClassifier(
        mean_field_layers=[0], num_inducing=200, latent_dim=8, input_kernel=kernels.RBF(), input_projection=16
    ),
}
#: Sets that hold no digits, by the names of the metrics.
OUTSIDE = ("notmnist", "fashion", "kmnist", "uniform", "gaussian")
#: Where the noise images start, so that they are the same for all methods and seeds.
NOISE_SEED = 0


def fitted(method: str, config: Config, seed: int) -> Any:
    """Return a method's classifier, trained on digits in random order."""
    digits = datasets.mnist("train")
    rows = np.random.default_rng(seed).permutation(len(digits.y))[: config["train_rows"]]
    model = configured(CLASSIFIERS[method](), config, seed)
    return model.fit(digits.X[rows], digits.y[rows])


def outside(name: str, num_images: int) -> np.ndarray:
    """Return the first images of a set that holds no digits."""
    if name == "uniform":
        return datasets.uniform_noise(num_images, NOISE_SEED)
    if name == "gaussian":
        return datasets.gaussian_noise(num_images, NOISE_SEED)
    load = {"notmnist": datasets.notmnist, "fashion": datasets.fashion_mnist, "kmnist": datasets.kmnist}[name]
    return load("test").X[:num_images]
