"""A trial of a prediction: it is traced for shapes alone, and nothing is computed or compiled.

A model that comes from a file may have parts that do not fit together. The trial runs the code of the prediction
itself, so it finds whatever that code would not accept, for every kind of model. It takes some ten milliseconds.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from metaprior.likelihoods import Likelihood
from metaprior.types import is_array

#: The most numbers that a prediction may draw or keep at once. They take 16 GB.
MOST_NUMBERS = 2**31
#: The shape of a random key.
KEY = jax.ShapeDtypeStruct((2,), np.uint32)


def as_shapes(tree: Any) -> Any:
    """Return the tree with shapes in place of its arrays, in float64 as in predictions."""

    def shape(leaf: Any) -> Any:
        dtype = np.float64 if jnp.issubdtype(leaf.dtype, np.floating) else leaf.dtype
        return jax.ShapeDtypeStruct(leaf.shape, dtype)

    return jax.tree.map(lambda leaf: shape(leaf) if is_array(leaf) else leaf, tree)


def traced(program: Any, *arguments: Any) -> Any:
    """Return the shapes of what a program of `jax.jit` returns for arguments with the shapes of these, in float64.

    A program remembers what it has traced, so that many models of one shape take one trace.
    """
    with jax.enable_x64(True):
        return program.eval_shape(*as_shapes(arguments))


def check_count(count: int, what: str) -> None:
    """Raise an error if a prediction would need more numbers than any machine has memory for."""
    if count > MOST_NUMBERS:
        raise ValueError(f"a prediction would take {count} {what}; expected at most {MOST_NUMBERS}")


def num_numbers(shapes: Any) -> int:
    """Return the total size of all arrays of a tree of shapes."""
    return sum(int(np.prod(leaf.shape, dtype=object)) for leaf in jax.tree.leaves(shapes))


def outputs_of(likelihood: Likelihood, functions: jax.ShapeDtypeStruct) -> int:
    """Return how many outputs the likelihood has for functions of a shape, or raise an error if they do not fit."""
    mean, variance = traced(_moments, likelihood, functions)
    if mean.shape != variance.shape or mean.shape[:-1] != functions.shape[:-1]:
        raise ValueError("the likelihood of the model does not fit its functions")
    return int(mean.shape[-1])


@jax.jit
def _moments(likelihood: Likelihood, functions: jax.Array) -> tuple[jax.Array, jax.Array]:
    return likelihood.mean(functions), likelihood.variance(functions)
