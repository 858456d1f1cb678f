"""The on-disk compilation cache: on while this library compiles, out of the way otherwise.

`import metaprior` changes no JAX setting; these are set while a fit or a prediction runs and put back after it.
A cache that the user has set is respected. METAPRIOR_CACHE names another folder; METAPRIOR_CACHE=off turns it off.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

_SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0.1,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


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
