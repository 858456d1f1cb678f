"""How this library compiles: with quick compiler options, and with an on-disk cache of its own.

XLA's CPU backend has two ways to turn fused operations into machine code. `compiled` asks for the older one: the newer
one takes a third longer for our programs of many small operations, which then run equally fast to within a few percent.
`compiled_to_run_fast` asks for the newer one: large predictions take three quarters of the time with it.

`import metaprior` changes no JAX setting. A fit or a prediction changes settings while it runs, and restores them. A
cache that the user has set is left alone. METAPRIOR_CACHE names another folder, and METAPRIOR_CACHE=off turns it off
(`cache_folder`). A process that was forked after JAX had run is refused (`forks`): it would hang.

XLA computes with threads of its own. On a CPU it calls BLAS for factors of matrices, and BLAS's threads then wait for
the same cores: with one of them a fit takes about half of the time. `one_blas_thread` sees to that while we compute.

A process that compiles thousands of programs (a long search over shapes) runs out of memory mappings, and XLA then ends
it with a segmentation fault. `drop_programs_when_many` drops the programs well before that.
"""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from threadpoolctl import ThreadpoolController

from metaprior.cache_folder import usable_cache_folder
from metaprior.forks import refuse_after_fork

_P = ParamSpec("_P")
_T = TypeVar("_T")
Tree = TypeVar("Tree", bound=eqx.Module)

#: The compiler option for CPUs, used if this version of XLA has it.
_QUICK = {"xla_cpu_use_fusion_emitters": False}

_SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0.1,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


class Compiled(Generic[_P, _T]):
    """A function compiled by `equinox.filter_jit` at its first call, when the backend is known."""

    def __init__(self, function: Callable[_P, _T], *, quickly: bool = True) -> None:
        """Wrap a pure function. Its array arguments are traced, and all others are static."""
        self._function, self._quickly = function, quickly
        functools.update_wrapper(self, function)

    @functools.cached_property
    def _program(self) -> Any:
        jit: Callable[..., Any] = eqx.filter_jit  # its signature lacks `compiler_options`
        return jit(self._function, compiler_options=(_options() or None) if self._quickly else None)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call the program, and compile it first if the shapes are new."""
        refuse_after_fork()
        return self._program(*args, **kwargs)

    def lower(self, *args: _P.args, **kwargs: _P.kwargs) -> Any:
        """Return the lowered program for these arguments, as `jax.jit(...).lower` does."""
        return self._program.lower(*args, **kwargs)


def compiled(function: Callable[_P, _T]) -> Compiled[_P, _T]:
    """Compile a function with the quick options. It must not be called from within another compiled function."""
    return Compiled(function)


def compiled_to_run_fast(function: Callable[_P, _T]) -> Compiled[_P, _T]:
    """Compile a function whose run time matters more than the time to compile it."""
    return Compiled(function, quickly=False)


@functools.cache
def _options() -> dict[str, bool]:
    """Return the quick options, or none if the device is not a CPU or this version of XLA does not have them."""
    if jax.default_backend() != "cpu":
        return {}
    try:
        jax.jit(lambda x: x, compiler_options=_QUICK).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return _QUICK


@contextlib.contextmanager
def compilation_cache() -> Iterator[None]:
    """Cache compiled programs on disk inside this block."""
    refuse_after_fork()
    folder = None if _setting("jax_compilation_cache_dir") is not None else usable_cache_folder()
    if folder is None:
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


#: The fraction of the allowed memory mappings beyond which compiled programs are dropped.
MAPPINGS_PART = 0.6


def drop_programs_when_many(part: float = MAPPINGS_PART) -> bool:
    """Drop all compiled programs if the process has more than a fraction of the memory mappings that Linux allows.

    A dropped program is compiled again, or read from the disk, at its next call. Returns whether programs were dropped,
    which is always False on other systems.
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


class _BlasLimit:
    """The limit on the threads of BLAS, held while at least one block wants it, in whatever thread that is."""

    def __init__(self) -> None:
        self._lock, self._blocks = threading.Lock(), 0
        self._limit: contextlib.AbstractContextManager[Any] | None = None

    def enter(self) -> None:
        with self._lock:
            if self._blocks == 0:
                self._limit = _blas().limit(limits=1)
                self._limit.__enter__()
            self._blocks += 1

    def leave(self) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0 and self._limit is not None:
                self._limit.__exit__(None, None, None)


_BLAS_LIMIT = _BlasLimit()


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread inside this block. Afterwards it has as many as before."""
    _BLAS_LIMIT.enter()
    try:
        yield
    finally:
        _BLAS_LIMIT.leave()


@contextlib.contextmanager
def in_float64() -> Iterator[None]:
    """Compute in float64 and with the compilation cache inside this block. Afterwards all settings are restored."""
    with compilation_cache(), one_blas_thread(), jax.enable_x64(True):
        yield


def as_float64(tree: Tree) -> Tree:
    """Return the tree with all its floating-point leaves in float64."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64) if eqx.is_inexact_array_like(leaf) else leaf, tree)
