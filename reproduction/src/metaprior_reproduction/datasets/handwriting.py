"""Omniglot, its two small background sets: characters of several alphabets, twenty drawings of each."""

import struct
import zlib
from collections.abc import Sequence

import numpy as np

from metaprior_reproduction.datasets.archives import members
from metaprior_reproduction.datasets.data import Data, DataError
from metaprior_reproduction.datasets.files import fetch, licence, registered
from metaprior_reproduction.datasets.images import check_image_shape

#: Side of a drawing in pixels.
SIDE = 105
#: The largest side of a PNG that is read.
LARGEST_SIDE = 4096


def omniglot(part: str = "small1", *, side: int = 28, shape: Sequence[int] | None = None) -> Data:
    """Return drawings of characters: 2,720 of 136 characters (`small1`) or 3,120 of 156 (`small2`).

    Parameters
    ----------
    part : {"small1", "small2"}
        Which five alphabets.
    side : int
        Images have `side` by `side` pixels, each the mean of the drawing over its area; 105 keeps the drawings as is.
    shape : sequence of int, optional
        Shape of one image; flat by default.

    Returns
    -------
    Data
        X float32 [n, *shape] in [0, 1], with ink as 1; y int64, one class per character.

    Notes
    -----
    B. Lake, R. Salakhutdinov and J. Tenenbaum, https://github.com/brendenlake/omniglot; MIT.
    """
    if part not in ("small1", "small2"):
        raise ValueError(f"omniglot: expected part to be 'small1' or 'small2'; got {part!r}.")
    if not 1 <= side <= SIDE:
        raise ValueError(f"omniglot: expected side in 1..{SIDE}; got {side!r}.")
    shape = (side * side,) if shape is None else shape
    check_image_shape(shape, side * side)
    name = f"other/omniglot/images_background_{part}.zip"
    drawings = sorted((path.parts[-3:-1], path.name, content) for path, content in members(fetch(name)))
    X = np.stack([read_bitmap(content) for _, _, content in drawings]).astype(np.float32)
    characters, y = np.unique(["/".join(character) for character, _, _ in drawings], return_inverse=True)
    if side < SIDE:
        A = area_means(SIDE, side).astype(np.float32)
        X = np.clip(A @ X @ A.T, 0, 1)
    return Data(
        X.reshape(-1, *shape),
        y.astype(np.int64),
        licence=licence(name),
        homepage=registered(name).homepage,
        target="character",
        classes=tuple(str(character) for character in characters),
    )


def area_means(length: int, shorter: int) -> np.ndarray:
    """Return the matrix [shorter, length] that averages a row of pixels over `shorter` intervals of equal length."""
    edges = np.linspace(0, length, shorter + 1)
    left, right = np.arange(length), np.arange(1, length + 1)
    shared = np.minimum(edges[1:, None], right) - np.maximum(edges[:-1, None], left)
    return np.clip(shared, 0, None) * shorter / length


def read_bitmap(content: bytes) -> np.ndarray:
    """Return a black-and-white PNG (one bit per pixel, rows not filtered) as 0 and 1, with black as 1."""
    packed, place, width, height = b"", 8, 0, 0
    try:
        while place < len(content):
            length, kind = struct.unpack_from(">I4s", content, place)
            if kind == b"IHDR":
                width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", content, place + 8)
                if (depth, colour, interlaced) != (1, 0, 0):
                    raise DataError(f"expected a PNG of one bit per pixel; got depth {depth}, colour type {colour}.")
            elif kind == b"IDAT":
                packed += content[place + 8 : place + 8 + length]
            place += 12 + length
        rows = _rows(packed, width, height)
    except (struct.error, zlib.error) as error:
        raise DataError(f"expected a PNG; it is damaged ({error}). Get another copy.") from error
    if rows[:, 0].any():
        raise DataError("expected a PNG whose rows are not filtered; get another copy.")
    return 1 - np.unpackbits(rows[:, 1:], axis=1, count=width)


def _rows(packed: bytes, width: int, height: int) -> np.ndarray:
    """Return the rows of bytes of a PNG, each after the number of its filter; only what the size says is unpacked."""
    if not (0 < width <= LARGEST_SIDE and 0 < height <= LARGEST_SIDE):
        raise DataError(f"expected a PNG of at most {LARGEST_SIDE} by {LARGEST_SIDE} pixels; got {width} by {height}.")
    row = 1 + (width + 7) // 8
    content = zlib.decompressobj().decompress(packed, height * row + 1)
    if len(content) != height * row:
        raise DataError(f"expected a PNG of {height} rows of {row} bytes; it has more or fewer. Get another copy.")
    return np.frombuffer(content, np.uint8).reshape(height, row)
