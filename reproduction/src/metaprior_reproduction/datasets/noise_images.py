"""Images of noise, to see what a classifier says of inputs that resemble nothing."""

import math
from collections.abc import Sequence

import numpy as np


def uniform_noise(num_images: int, seed: int, *, shape: Sequence[int] = (784,)) -> np.ndarray:
    """Return images float32 [num_images, *shape] whose pixels are independent and uniform on [0, 1)."""
    return np.random.default_rng(seed).random((num_images, *_checked(shape)), dtype=np.float32)


def gaussian_noise(
    num_images: int, seed: int, *, mean: float = 0.5, std: float = 0.5, shape: Sequence[int] = (784,)
) -> np.ndarray:
    """Return images float32 [num_images, *shape] of independent Gaussian pixels, clipped to [0, 1].

    Parameters
    ----------
    num_images : int
        How many images.
    seed : int
        The same seed gives the same images.
    mean, std : float
        Mean and standard deviation of a pixel before clipping. The paper does not state them. With the defaults, a
        third of the pixels is black or white, so that the images differ from uniform ones.
    shape : sequence of int
        Shape of one image.
    """
    drawn = np.random.default_rng(seed).standard_normal((num_images, *_checked(shape)), dtype=np.float32)
    drawn *= np.float32(std)
    drawn += np.float32(mean)
    return np.clip(drawn, 0, 1, out=drawn)


def _checked(shape: Sequence[int]) -> tuple[int, ...]:
    if not shape or math.prod(shape) < 1:
        raise ValueError(f"shape: expected the lengths of an image, such as (784,) or (28, 28); got {tuple(shape)}.")
    return tuple(shape)
