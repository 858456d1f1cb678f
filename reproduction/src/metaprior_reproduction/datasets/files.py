"""Data files: a registry of public addresses with checksums, a folder that may hold files, and a cache for the rest.

`registry.json` lists every file with its sha256, size, licence and https addresses. A file in the folder that
METAPRIOR_DATA names is used in place. Otherwise the file in the user's cache folder is used, where pooch downloads it
if needed. In all cases, a file is read only if its size and sha256 match the registry.
"""

import difflib
import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PureWindowsPath
from typing import Any
from urllib.parse import urljoin

from metaprior_reproduction.datasets.data import DataError


@dataclass(frozen=True)
class DataFile:
    """One file of the registry."""

    name: str
    sha256: str
    size: int
    licence: str
    homepage: str
    addresses: tuple[str, ...]

    def __post_init__(self) -> None:
        place = PureWindowsPath(self.name)  # knows both slashes, drives and shares
        if not self.name or place.anchor or ".." in place.parts or "\0" in self.name:
            raise ValueError(f"the register: expected names that stay inside the folder of data; got {self.name!r}.")

    @property
    def non_commercial(self) -> bool:
        """Whether the licence, or a part of it, allows non-commercial use only."""
        return "-NC" in self.licence


@functools.cache
def registry() -> dict[str, DataFile]:
    """Return every registered file by its name, such as "mnist/t10k-labels-idx1-ubyte.gz"."""
    text = resources.files("metaprior_reproduction.datasets").joinpath("registry.json").read_text(encoding="utf-8")
    return {
        name: DataFile(name=name, **{**entry, "addresses": tuple(entry["addresses"])})
        for name, entry in json.loads(text).items()
    }


def registered(name: str) -> DataFile:
    """Return the entry of a file; the error for an unknown name suggests similar ones."""
    if name not in registry():
        near = difflib.get_close_matches(name, registry(), n=3, cutoff=0.4)
        raise ValueError(f"{name!r} is not a registered file; similar names: {near}. See datasets.registry() for all.")
    return registry()[name]


def under(name: str) -> list[DataFile]:
    """Return the file of that name, or all files in the folder of that name."""
    found = [file for path, file in registry().items() if path == name or path.startswith(f"{name}/")]
    return found or [registered(name)]


def licence(name: str) -> str:
    """Return the licence of a file ("mnist/t10k-labels-idx1-ubyte.gz") or those of a folder ("uci/yacht", "mnist").

    The registry repeats what the publishers state, if they state anything; check before you rely on it.
    """
    return " | ".join(dict.fromkeys(file.licence for file in under(name)))


# --- where files are -----------------------------------------------------------------


def data_folder() -> Path | None:
    """Return the folder that METAPRIOR_DATA names; None if it is not set."""
    named = os.environ.get("METAPRIOR_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"METAPRIOR_DATA: expected a folder; {named!r} is not one. Name a folder that has data files (such as "
            "mnist/t10k-labels-idx1-ubyte.gz), or unset it so that files are downloaded."
        )
    return folder


def cache_folder() -> Path:
    """Return the folder that downloads go to: metaprior/data in the user's cache (XDG_CACHE_HOME or ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "metaprior" / "data"


def fetch(name: str) -> Path:
    """Return the path of a registered file on this machine, downloading it if needed.

    Parameters
    ----------
    name : str
        A key of `registry()`.

    Returns
    -------
    Path
        The file in the folder of METAPRIOR_DATA if it is there (never copied, never written to), else in the cache
        folder. Its size and sha256 are verified once per process, and again if the file changes.

    Raises
    ------
    DataError
        The file is not what it should be, or cannot be downloaded; the message says why and what to do.
    """
    file, folder = registered(name), data_folder()
    if folder is not None and (folder / name).is_file():
        if wrong := fault(folder / name, file):
            raise DataError(
                f"{folder / name} (in the folder of METAPRIOR_DATA) {wrong} Replace it with the file at "
                f"{file.addresses[0]}, or unset METAPRIOR_DATA so that it is downloaded."
            )
        return folder / name
    kept = cache_folder() / name
    if kept.is_file() and fault(kept, file) is None:
        return kept
    return download(file, kept)


def fault(path: Path, file: DataFile) -> str | None:
    """Return what is wrong with a file, in words; None if it is the registered one."""
    state = path.stat()
    if state.st_size != file.size:
        kind = "is not complete" if state.st_size < file.size else "is another file"
        return f"{kind}: expected {file.size:,} bytes, it has {state.st_size:,}."
    found = _sha256(path, state.st_size, state.st_mtime_ns)
    if found != file.sha256:
        return f"has the wrong checksum: expected sha256 {file.sha256}, it has {found}."
    return None


@functools.lru_cache(maxsize=4096)
def _sha256(path: Path, size: int, changed: int) -> str:
    """Return the checksum of a file; with size and time of change as arguments, a changed file is read again."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


# --- downloads -----------------------------------------------------------------------


def download(file: DataFile, target: Path) -> Path:
    """Download a file to `target` from the first of its addresses that returns the registered bytes."""
    import pooch

    reasons = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(target, error) from error
    for address in file.addresses:
        try:
            _check_https(address)
            pooch.retrieve(address, f"sha256:{file.sha256}", target.name, target.parent, downloader=_checked(file))
            return target
        except DataError as error:
            reasons.append(f"{address}: {error}")
        except OSError as error:  # requests' own errors are OSErrors without a number
            if error.errno is not None:
                raise _unwritable(target, error) from error
            reasons.append(f"{address}: no usable answer ({error}).")
    raise DataError(
        f"{file.name}: cannot be downloaded. Expected {file.size:,} bytes of sha256 {file.sha256}. What came:\n  "
        + "\n  ".join(reasons)
        + f"\nCheck the network and try again; or get the file yourself and put it at {target}; or set METAPRIOR_DATA "
        f"to a folder that has {file.name}."
    )


def _checked(file: DataFile) -> Callable[[str, str, Any], None]:
    """Return a downloader that never leaves https, and that raises if what came is not the file."""
    import pooch

    get = pooch.HTTPDownloader(
        chunk_size=2**16,
        headers={"Accept-Encoding": "identity"},
        hooks={"response": [_stay_on_https, functools.partial(_stop_at_size, file)]},
    )

    def run(address: str, path: str, caller: Any) -> None:
        get(address, path, caller)
        if wrong := fault(Path(path), file):
            raise DataError(f"what came {wrong}")

    return run


def _stay_on_https(response: Any, **_: Any) -> None:
    onward = response.headers.get("location")
    if onward is not None:
        _check_https(urljoin(response.url, onward))


def _stop_at_size(file: DataFile, response: Any, **_: Any) -> None:
    """Let the content of a response end with an error where it becomes longer than the file."""
    content = response.iter_content

    def pieces(*args: Any, **options: Any) -> Iterator[bytes]:
        length = 0
        for piece in content(*args, **options):
            length += len(piece)
            if length > file.size:
                raise DataError(f"what came is another file: expected {file.size:,} bytes, it has more.")
            yield piece

    response.iter_content = pieces


def _check_https(address: str) -> None:
    if not address.lower().startswith("https://"):
        raise DataError(f"expected an https address; got {address!r}, which is not contacted.")


def _unwritable(target: Path, error: OSError) -> DataError:
    return DataError(
        f"{target}: cannot be written ({error.strerror}). Make room, or set XDG_CACHE_HOME to another cache folder, "
        "or METAPRIOR_DATA to a folder that has the data files."
    )
