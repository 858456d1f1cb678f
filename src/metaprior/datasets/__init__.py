"""Data: toy problems as functions of a seed, and public data sets by https and checksum, or from METAPRIOR_DATA."""

from metaprior.datasets.archives import unpack
from metaprior.datasets.data import Data, DataError
from metaprior.datasets.files import DataFile, fetch, licence, registry
from metaprior.datasets.handwriting import omniglot
from metaprior.datasets.images import fashion_mnist, kmnist, mnist, notmnist
from metaprior.datasets.mushrooms import mushroom
from metaprior.datasets.noise_images import gaussian_noise, uniform_noise
from metaprior.datasets.regression import UCI, uci, uci_splits
from metaprior.datasets.time_series import SERIES, series
from metaprior.datasets.toy import Split, fnp, four_class, sinusoid, x_sin_x

__all__ = [
    "SERIES",
    "UCI",
    "Data",
    "DataError",
    "DataFile",
    "Split",
    "fashion_mnist",
    "fetch",
    "fnp",
    "four_class",
    "gaussian_noise",
    "kmnist",
    "licence",
    "mnist",
    "mushroom",
    "notmnist",
    "omniglot",
    "registry",
    "series",
    "sinusoid",
    "uci",
    "uci_splits",
    "uniform_noise",
    "unpack",
    "x_sin_x",
]
