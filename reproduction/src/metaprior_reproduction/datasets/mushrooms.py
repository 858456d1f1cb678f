"""The UCI mushrooms: 22 properties of gilled mushrooms, and whether they are poisonous."""

import csv
import re

import numpy as np

from metaprior_reproduction.datasets.data import Data
from metaprior_reproduction.datasets.files import fetch, licence, registered

_TABLE = "other/mushroom/agaricus-lepiota.data"
_NAMES = "other/mushroom/agaricus-lepiota.names"


def mushroom() -> Data:
    """Return the mushrooms, with one-hot properties.

    Returns
    -------
    Data
        X float32 [8124, 117] of 0 and 1, one column for each value that occurs, with names like "odor=almond".
        "stalk-root=missing" (2,480 rows) is a value like others. y int64: 0 edible (4,208 rows), 1 poisonous (3,916).

    Notes
    -----
    UCI, https://archive.ics.uci.edu/dataset/73/mushroom, from the Audubon Society Field Guide (1981); CC BY 4.0.
    """
    with fetch(_TABLE).open(newline="", encoding="ascii") as file:
        rows = np.array([row for row in csv.reader(file) if row])
    names = _value_names(fetch(_NAMES).read_text(encoding="latin-1"))
    blocks, columns = [], []
    for (attribute, words), letters in zip(names, rows.T[1:], strict=True):
        values = np.unique(letters)
        blocks.append(letters[:, None] == values)
        columns += [f"{attribute}={words[str(value)]}" for value in values]
    return Data(
        np.concatenate(blocks, axis=1).astype(np.float32),
        (rows[:, 0] == "p").astype(np.int64),
        licence=licence(_TABLE),
        homepage=registered(_TABLE).homepage,
        columns=tuple(columns),
        target="class",
        classes=("edible", "poisonous"),
    )


def _value_names(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return the attributes in order, each with its letters and their meanings."""
    part = text[text.index("7. Attribute Information") : text.index("8. Missing Attribute Values")]
    entries = re.findall(r"^ +\d+\. ([a-z?-]+):((?:\s*[a-z]+=[a-z?],?)+)", part, re.MULTILINE)
    return [
        (name.rstrip("?"), {letter: word for word, letter in re.findall(r"([a-z]+)=([a-z?])", words)})
        for name, words in entries
    ]
