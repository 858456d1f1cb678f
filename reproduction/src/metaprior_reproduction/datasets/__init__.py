"""Data sets: toy problems made from a seed, and public data from METAPRIOR_DATA or by https, with checksums."""

from metaprior_reproduction.datasets.archives import unpack
from metaprior_reproduction.datasets.data import Data, DataError
from metaprior_reproduction.datasets.files import DataFile, fetch, licence, registry
from metaprior_reproduction.datasets.handwriting import omniglot
from metaprior_reproduction.datasets.images import fashion_mnist, kmnist, mnist, notmnist
from metaprior_reproduction.datasets.mushrooms import mushroom
from metaprior_reproduction.datasets.noise_images import gaussian_noise, uniform_noise
from metaprior_reproduction.datasets.package_tables import PACKAGE_TABLES, package_table
from metaprior_reproduction.datasets.regression import UCI, uci, uci_splits
from metaprior_reproduction.datasets.time_series import SERIES, series
from metaprior_reproduction.datasets.toy import fnp, four_class, x_sin_x

__all__ = [
    "PACKAGE_TABLES",
    "SERIES",
    "UCI",
    "Data",
    "DataError",
    "DataFile",
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
    "package_table",
    "registry",
    "series",
    "uci",
    "uci_splits",
    "uniform_noise",
    "unpack",
    "x_sin_x",
]
