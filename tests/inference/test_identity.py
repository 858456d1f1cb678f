"""The identity of a run: the same in every process, and another for whatever differs."""

import os
import subprocess
import sys
import threading
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metaprior.inference import row_mesh
from metaprior.inference.identity import identity_of
from metaprior.kernels import RBF, Matern32
from metaprior.networks import Dense
from metaprior.random import make_key


class Pair(NamedTuple):
    left: object
    right: object


class Plain:
    """An object with attributes."""

    def __init__(self, value: object) -> None:
        self.value = value


def digest(value: object) -> str:
    return identity_of({"part": value}, "")["part"]


#: Values that all differ from each other.
DIFFERENT = [
    None,
    False,
    0,
    0.0,
    -0.0,
    1e-300,
    "0",
    b"0",
    (),
    [],
    {},
    (0,),
    (0, None),
    ((0,), None),
    [0],
    {"a": 0},
    {"a": "0"},
    {0, 1},
    {0, 2},
    range(3),
    Pair(0, 1),
    Pair(1, 0),
    Plain(0),
    Plain(1),
    np.float32(0),
    np.zeros(1, np.float32),
    np.zeros(1, np.float64),
    np.zeros((1, 1), np.float32),
    np.array([-0.0], np.float32),
    np.dtype("float32"),
    make_key(0),
    make_key(1),
    jax.random.key(0),
    jnp.tanh,
    jnp.sin,
    row_mesh(1),
    RBF(),
    RBF(fixed=["lengthscale"]),
    RBF(bounds={"lengthscale": (0.5, 2.0)}),
    RBF(bounds={"lengthscale": (0.5, 3.0)}),
    Matern32(),
    Dense((1, 2, 1), "tanh"),
    Dense((1, 2, 1), "relu"),
    Dense((1, 3, 1), "relu"),
]


def test_whatever_differs_has_another_digest():
    assert len({digest(value) for value in DIFFERENT}) == len(DIFFERENT)


def test_what_is_equal_has_the_same_digest():
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"x", "y", "z"}) == digest({"z", "y", "x"})
    assert digest(np.arange(3.0)[::-1]) == digest(np.array([2.0, 1.0, 0.0]))
    assert digest(jnp.ones(2)) == digest(np.ones(2, np.float32))
    assert digest(RBF()) == digest(RBF())


def test_the_digest_is_the_same_in_another_process():
    """With other seeds of Python's hashes, and without addresses."""
    code = "import test_identity as t; print(*[t.digest(value) for value in t.DIFFERENT])"
    folder = os.path.dirname(__file__)
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join([folder, *sys.path])}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    own = [digest(value) for value in DIFFERENT]
    assert found.stdout.split() == own


def test_the_program_is_a_part():
    assert identity_of({}, "one") != identity_of({}, "two")


def test_what_cannot_be_told_apart_is_refused():
    with pytest.raises(ValueError, match="checkpoint: expected parts of a run that can be told apart"):
        digest(threading.Lock())
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="checkpoint: a list that contains itself"):
        digest(endless)
