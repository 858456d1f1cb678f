"""The activations that have a name; any other function of an array can be used too."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

#: Maps pre-activations to activations, element by element.
Activation = Callable[[Array], Array]


# These are plain functions of this module, so that a model which contains one can be pickled.
def _identity(x: Array) -> Array:
    return x


def _tanh(x: Array) -> Array:
    return jnp.tanh(x)


def _relu(x: Array) -> Array:
    return jax.nn.relu(x)


def _logistic(x: Array) -> Array:
    return jax.nn.sigmoid(x)


def _gelu(x: Array) -> Array:
    return jax.nn.gelu(x)


def _silu(x: Array) -> Array:
    return jax.nn.silu(x)


def _elu(x: Array) -> Array:
    return jax.nn.elu(x)


def _softplus(x: Array) -> Array:
    return jax.nn.softplus(x)


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "identity": _identity,
    "tanh": _tanh,
    "relu": _relu,
    "logistic": _logistic,
    "gelu": _gelu,
    "silu": _silu,
    "elu": _elu,
    "softplus": _softplus,
}


def activation_named(activation: str | Activation) -> Activation:
    """Return the function with this name, or the function itself."""
    if callable(activation):
        return activation
    if isinstance(activation, str) and activation in _ACTIVATIONS:
        return _ACTIVATIONS[activation]
    raise ValueError(f"activation: expected a function or one of {sorted(_ACTIVATIONS)}; got {activation!r}.")


def name_of_activation(function: Activation) -> str | None:
    """Return the name of one of these activations, or None for any other function."""
    return next((name for name, own in _ACTIVATIONS.items() if own is function), None)
