"""A description of the files that contain no model, for `metaprior info`: decision loops and checkpoints."""

from pathlib import Path
from typing import Any

from metaprior.cli.result import Result

#: How the format of a checkpoint begins, whatever its version.
CHECKPOINT = "metaprior checkpoint "


def other_file(path: str) -> Result | None:
    """Return the description of a loop's file or a checkpoint, or None if the file is neither."""
    return _loop(path) or _checkpoint(path)


def _loop(path: str) -> Result | None:
    from metaprior.decisions.active import PoolLoop
    from metaprior.decisions.bandit import Bandit
    from metaprior.decisions.optimise import Optimiser
    from metaprior.io.saving import load_state, origin

    loops: list[Any] = [PoolLoop, Bandit, Optimiser]
    for cls in loops:
        try:
            load_state(path, cls.kind)
        except ValueError:  # a loop of another kind, or no loop at all
            continue
        name = f"{cls.__module__.rpartition('.')[0]}.{cls.__name__}"
        data = {"file": path, "kind": cls.kind, "loop": name, **origin(path), "bytes": Path(path).stat().st_size}
        return Result(
            data,
            f"{path}: a decision loop of kind {data['kind']!r}, format {data['format']}, written by metaprior "
            f"{data['written_by']}, {data['bytes']:,} bytes\nTo continue it in Python: {name}.load({path!r})",
        )
    return None


def _checkpoint(path: str) -> Result | None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            written = (file.metadata() or {}).get("format", "")
    except (SafetensorError, ValueError, OSError):
        return None
    if not written.startswith(CHECKPOINT):
        return None
    data = {
        "file": path,
        "kind": "checkpoint",
        "format": written.removeprefix(CHECKPOINT),
        "bytes": Path(path).stat().st_size,
    }
    return Result(
        data,
        f"{path}: a checkpoint of a fit, format {data['format']}, {data['bytes']:,} bytes\n"
        f"To continue the fit, run its command again, with --checkpoint {str(Path(path).parent)!r}",
    )
