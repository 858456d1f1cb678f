"""The file of a loop that asks and is told: one of `metaprior.io.saving`, safetensors and JSON, written atomically."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metaprior.io.saving import load, save

if TYPE_CHECKING:
    import pandas as pd


class LoopRecord:
    """The state of a loop, in the shape of what `metaprior.io.saving` writes."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.state: dict[str, Any] = {}

    def get_params(self, deep: bool = False) -> dict[str, str]:
        """Return what the record is made with."""
        return {"kind": self.kind}

    def _saved_state(self) -> dict[str, Any]:
        return self.state

    def _restore(self, state: dict[str, Any]) -> None:
        self.state = state


def write_loop(path: str | os.PathLike, kind: str, state: dict[str, Any]) -> None:
    """Write the state of a loop in place of the last one, atomically."""
    record = LoopRecord(kind)
    record._restore(state)
    save(record, path, overwrite=True)


def read_loop(path: str | os.PathLike, kind: str) -> dict[str, Any]:
    """Return the state of a loop; reading runs no code of the file's."""
    record = load(path)
    found = getattr(record, "kind", type(record).__name__)
    if not (isinstance(record, LoopRecord) and found == kind):
        raise ValueError(f"load: expected the file of a loop of '{kind}'; {path} is one of '{found}'.")
    return record.state


def refuse_to_replace(path: str | os.PathLike | None) -> None:
    """Raise where a new loop would be written over a file that is there."""
    if path is not None and Path(path).exists():
        raise FileExistsError(f"path: {path} exists; load it to go on with that loop, or give another name.")


def history_frame(columns: dict[str, Any]) -> "pd.DataFrame":
    """Return the history of a loop as a frame."""
    return needed_pandas("history").DataFrame(columns)


def needed_pandas(name: str) -> Any:
    """Return pandas, or say how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f'{name}: the table needs pandas; pip install "metaprior[compare]".') from error
    return pandas
