"""How this library compiles: quickly, and with an on-disk cache that is out of the way of the rest of the process.

XLA's CPU backend has two ways to turn fused operations into machine code. The newer takes a third longer for our
programs of many small operations, and what it makes is as fast to within some percent: `compiled` asks for the older.

`import metaprior` changes no JAX setting; these are set while a fit or a prediction runs and put back after it.
A cache that the user has set is respected. METAPRIOR_CACHE names another folder; METAPRIOR_CACHE=off turns it off.

A process that compiles thousands of programs (a long search over shapes) runs out of memory mappings, and XLA then
ends it with a segmentation fault; `drop_programs_when_many` lets go of them well before that.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

_P = ParamSpec("_P")
_T = TypeVar("_T")
Tree = TypeVar("Tree", bound=eqx.Module)

#: What the compiler is asked for on a CPU, where it knows the option.
_QUICK = {"xla_cpu_use_fusion_emitters": False}

_SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0.1,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


class Compiled(Generic[_P, _T]):
    """A function compiled by `equinox.filter_jit` at its first call, when the backend is known."""

    def __init__(self, function: Callable[_P, _T]) -> None:
        """Take a pure function; arrays are traced, all else is static."""
        self._function = function
        functools.update_wrapper(self, function)

    @functools.cached_property
    def _program(self) -> Any:
        jit: Callable[..., Any] = eqx.filter_jit  # its own signature names no options of the compiler
        return jit(self._function, compiler_options=_options() or None)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call the program; compile it for new shapes."""
        return self._program(*args, **kwargs)

    def lower(self, *args: _P.args, **kwargs: _P.kwargs) -> Any:
        """Return the program for these arguments before it is compiled."""
        return self._program.lower(*args, **kwargs)


def compiled(function: Callable[_P, _T]) -> Compiled[_P, _T]:
    """Return the function, to be compiled quickly. For programs called from outside only, not from within another."""
    return Compiled(function)


@functools.cache
def _options() -> dict[str, bool]:
    """Return the options this version of XLA knows; none on other devices than a CPU."""
    if jax.default_backend() != "cpu":
        return {}
    try:
        jax.jit(lambda x: x, compiler_options=_QUICK).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return _QUICK


def cache_folder() -> Path | None:
    """Return the folder of the compilation cache, None where it is turned off."""
    named = os.environ.get("METAPRIOR_CACHE")
    if named is not None and named.lower() in ("off", "0", ""):
        return None
    if named is not None:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "metaprior" / "compiled"


@contextlib.contextmanager
def compilation_cache() -> Iterator[None]:
    """Keep compiled programs on disk inside this block."""
    folder = cache_folder()
    if folder is None or _setting("jax_compilation_cache_dir") is not None or not _writable(folder):
        yield
        return
    from jax.experimental.compilation_cache import compilation_cache as cache

    settings = {"jax_compilation_cache_dir": str(folder), **_SETTINGS}
    before = {name: _setting(name) for name in settings}
    cache.reset_cache()
    for name, value in settings.items():
        jax.config.update(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        cache.reset_cache()


def _setting(name: str) -> Any:
    return getattr(jax.config, name)


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


#: The part of the allowed memory mappings beyond which compiled programs are dropped.
MAPPINGS_PART = 0.6


def drop_programs_when_many(part: float = MAPPINGS_PART) -> bool:
    """Drop all compiled programs where the process holds more than a part of the memory mappings Linux allows it.

    Programs in use are compiled again, or read from the disk, when next called. Returns whether it was done; where
    the numbers cannot be read (another system) it never is.
    """
    try:
        most = int(Path("/proc/sys/vm/max_map_count").read_text())
        held = Path("/proc/self/maps").read_bytes().count(b"\n")
    except (OSError, ValueError):
        return False
    if held <= part * most:
        return False
    jax.clear_caches()
    return True


@contextlib.contextmanager
def in_float64() -> Iterator[None]:
    """Compute in float64 with the compilation cache on, inside this block; no global setting stays changed."""
    with compilation_cache(), jax.enable_x64(True):
        yield


def as_float64(tree: Tree) -> Tree:
    """Return the tree with all its numbers in float64."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64) if eqx.is_inexact_array_like(leaf) else leaf, tree)
