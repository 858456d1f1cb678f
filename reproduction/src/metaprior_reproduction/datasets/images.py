"""MNIST and image sets in its format: 28 by 28 pixels, ten classes, ink (or cloth) as 1 and the background as 0."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from metaprior.io.unpacking import UnpackingError, open_unpacked, too_large, unpacking_limit
from metaprior_reproduction.datasets.archives import unpacking_told
from metaprior_reproduction.datasets.data import Data, DataError
from metaprior_reproduction.datasets.files import fetch, licence, registered

#: The largest number of axes of an IDX file.
MAX_RANK = 8
_PARTS = {"train": "train", "test": "t10k"}
_CLOTHES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)


def mnist(part: str = "train", *, shape: Sequence[int] = (784,)) -> Data:
    """Return MNIST, handwritten digits: 60,000 images to train on, 10,000 to test on.

    Parameters
    ----------
    part : {"train", "test"}
        Which images.
    shape : sequence of int
        Shape of one image, such as (784,), (28, 28) or (28, 28, 1).

    Returns
    -------
    Data
        X float32 [n, *shape] in [0, 1], y int64 in 0..9.

    Notes
    -----
    Y. LeCun, C. Cortes and C. Burges, http://yann.lecun.com/exdb/mnist; CC BY-SA 3.0 as commonly cited.
    """
    return _images("mnist", part, shape, tuple("0123456789"))


def fashion_mnist(part: str = "train", *, shape: Sequence[int] = (784,)) -> Data:
    """Return Fashion-MNIST, articles of clothing, in the form of `mnist`: 60,000 images to train on, 10,000 to test on.

    Notes
    -----
    Zalando Research, https://github.com/zalandoresearch/fashion-mnist; MIT.
    """
    return _images("fashion-mnist", part, shape, _CLOTHES)


def kmnist(part: str = "test", *, shape: Sequence[int] = (784,)) -> Data:
    """Return Kuzushiji-MNIST, cursive Japanese characters, in the form of `mnist`: the 10,000 test images.

    Notes
    -----
    "KMNIST Dataset" (created by CODH), adapted from "Kuzushiji Dataset" (created by NIJL and others),
    doi:10.20676/00000341; CC BY-SA 4.0. The training images have no https address and are not registered.
    """
    return _images("kmnist", part, shape, ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"))


def notmnist(part: str = "test", *, shape: Sequence[int] = (784,)) -> Data:
    """Return notMNIST, letters A to J in many fonts, in the form of `mnist`: 10,000 images, 196 of them duplicates.

    Notes
    -----
    Y. Bulatov, in the format of MNIST by D. Flanagan; no licence stated, posted with the author's permission. Only
    the test images are registered.
    """
    return _images("notmnist", part, shape, tuple("ABCDEFGHIJ"))


def _images(folder: str, part: str, shape: Sequence[int], classes: tuple[str, ...]) -> Data:
    check_image_shape(shape, 784)
    pixels, labels = _file(folder, part, "images-idx3"), _file(folder, part, "labels-idx1")
    X = read_idx(fetch(pixels)).astype(np.float32)
    X /= 255
    y = read_idx(fetch(labels)).astype(np.int64)
    return Data(
        X.reshape(-1, *shape),
        y,
        licence=licence(pixels),
        homepage=registered(pixels).homepage,
        target="class",
        classes=classes,
    )


def _file(folder: str, part: str, kind: str) -> str:
    known = ["train", "test"] if folder in ("mnist", "fashion-mnist") else ["test"]
    if part not in known:
        raise ValueError(f"{folder}: expected part to be one of {known}; got {part!r}.")
    return f"{folder}/{_PARTS[part]}-{kind}-ubyte.gz"


def check_image_shape(shape: Sequence[int], num_pixels: int) -> None:
    """Raise if a shape does not have the pixels of an image."""
    if math.prod(shape) != num_pixels or any(length < 1 for length in shape):
        raise ValueError(f"shape: expected {num_pixels} pixels, such as ({num_pixels},); got {tuple(shape)}.")


def read_idx(path: Path) -> np.ndarray:
    """Return the array of unsigned bytes in a gzipped IDX file: 0 0 8 rank, the lengths (big-endian), the bytes."""
    with unpacking_told(path), open_unpacked(path) as stream:
        beginning = stream.read(4)
        rank = beginning[3] if len(beginning) == 4 and beginning[:3] == b"\0\0\x08" else 0
        head = stream.read(4 * rank)
        lengths = [int(length) for length in np.frombuffer(head[: len(head) // 4 * 4], ">u4")]
        if not 0 < rank == len(lengths) <= MAX_RANK:
            raise UnpackingError(_no_idx(path))
        size = math.prod(lengths)
        if size > (limit := unpacking_limit()):
            raise too_large(str(path), limit)
        content = stream.read(size + 1)
    if len(content) != size:
        raise DataError(_no_idx(path))
    return np.frombuffer(content, np.uint8).reshape(lengths)


def _no_idx(path: Path) -> str:
    return f"{path}: expected an IDX file of unsigned bytes; it is not one. Get another copy."
