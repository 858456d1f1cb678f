"""What tells one run from another: digests of everything that a run is given, and of the program that it compiles.

A run that goes on from a snapshot must be the run that the snapshot was taken of. No list of parameters decides that.
The loop describes all that it holds, with the class and the static fields of every object, and adds the text of its
compiled program. A setting that changes a step changes the program, wherever it comes from: an activation, the bounds
of a kernel, a user's own function, the numbers inside an optimizer. Descriptions hold no addresses and no hashes of
Python, so they are the same in every process.
"""

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from metaprior.types import is_array

#: The digest of every part of a run, by the name of the part.
Identity = dict[str, str]
#: Values that `repr` gives in full.
_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, np.dtype)


def identity_of(parts: Mapping[str, Any], program: str) -> Identity:
    """Return the digests of the parts of a run and of the text of its compiled program."""
    return {name: _digest(value) for name, value in parts.items()} | {"compiled program": _digest(program)}


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    try:
        for piece in _described(value):
            digest.update(len(piece).to_bytes(8, "little") + piece)
    except RecursionError as error:
        raise ValueError(f"checkpoint: a {type(value).__name__} that contains itself cannot be kept.") from error
    return digest.hexdigest()


def _described(value: Any) -> Iterator[bytes]:
    """Yield a description of a value, the same in every process and different for every other value."""
    if isinstance(value, _PLAIN):
        yield f"{type(value).__name__} {value!r}".encode()
    elif is_array(value):
        yield from _array(value)
    elif isinstance(value, Mesh):
        kinds = [f"{device.platform} {device.device_kind}" for device in value.devices.ravel()]
        yield repr((value.axis_names, value.devices.shape, kinds)).encode()
    elif isinstance(value, type) or (callable(value) and not dataclasses.is_dataclass(value)):
        yield _name(value).encode()  # what it computes is in the compiled program
    else:
        parts = _parts(value)
        yield f"{_name(type(value))} {len(parts)}".encode()
        for name, part in parts.items():
            yield str(name).encode()
            yield from _described(part)


def _array(value: Any) -> Iterator[bytes]:
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        yield str(jax.random.key_impl(value)).encode()
        value = jax.random.key_data(value)
    if isinstance(value, jax.Array) and not (value.is_fully_addressable or value.is_fully_replicated):
        own = [np.asarray(shard.data) for shard in value.addressable_shards]  # other hosts have the rest
    else:
        own = [np.asarray(value)]
    for array in own:
        yield f"array {array.dtype.str} {array.shape}".encode()
        yield array.tobytes()


def _parts(value: Any) -> dict[Any, Any]:
    """Return the parts of an object by name, or raise an error if it has none that are known."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (tuple, list)):
        return dict(enumerate(value))
    if isinstance(value, Mapping):
        return dict(sorted(value.items(), key=lambda item: str(item[0])))
    if isinstance(value, (set, frozenset)):
        return dict.fromkeys(sorted(map(_digest, value)))
    if hasattr(value, "__dict__"):
        return vars(value)
    raise ValueError(
        f"checkpoint: expected parts of a run that can be told apart in another process; got {value!r}. Leave out "
        "checkpoint, or leave out this part."
    )


def _name(value: Any) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(named, '__module__', '')}:{named.__qualname__}"
