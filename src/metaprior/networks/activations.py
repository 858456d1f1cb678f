"""The activations by name; any function of an array will do."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array


def _identity(x: Array) -> Array:
    return x


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "identity": _identity,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "logistic": jax.nn.sigmoid,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "elu": jax.nn.elu,
    "softplus": jax.nn.softplus,
}


def activation_named(activation: str | Callable) -> Callable[[Array], Array]:
    """Return the function from its name, or the function itself."""
    if callable(activation):
        return activation
    if isinstance(activation, str) and activation in _ACTIVATIONS:
        return _ACTIVATIONS[activation]
    raise ValueError(f"activation: expected a function or one of {sorted(_ACTIVATIONS)}; got {activation!r}.")
