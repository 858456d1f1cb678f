"""Warnings that show the line of the user's program, and of which each kind comes once in a fit.

A fit passes through dozens of functions before something is to be told, and how many there are changes with the code.
So the line is found by leaving the library on the stack, and with it the searches and pipelines of scikit-learn that
call it. What happens again and again in one fit (in every block of steps, layer, restart or fold) is told at its first
time; the fitted attributes say how often it was.
"""

import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

#: Files of this library, and packages whose functions stand between it and the user's line.
_HERE = str(Path(__file__).parent)
_CALLERS = ("sklearn", "joblib", "contextlib", "functools", "jaxtyping", "beartype", "equinox", "jax")


class _Told(set[str]):
    """The kinds of warnings that a fit has told."""


#: What the present fit has told. Only the fit itself keeps it alive, so one that is interrupted leaves nothing.
_TOLD: ContextVar[weakref.ref[_Told] | None] = ContextVar("told", default=None)


def _present() -> _Told | None:
    """Return what the present fit has told, or None outside of a fit."""
    known = _TOLD.get()
    return None if known is None else known()


def warn_user(message: str, category: type[Warning] = UserWarning, *, once: str | None = None) -> None:
    """Warn at the first line on the stack that is the user's.

    Parameters
    ----------
    message : str
        What has happened, and which parameter changes it.
    category : class, default=UserWarning
    once : str, optional
        The kind of warning: within a fit, another one of this kind is not shown.
    """
    told = _present()
    if once is not None and told is not None:
        if once in told:
            return
        told.add(once)
    warnings.warn(message, category, stacklevel=_level_of_user())


@contextmanager
def one_fit() -> Iterator[None]:
    """Show each kind of warning once inside this block. A block inside another belongs to it."""
    if _present() is not None:
        yield
        return
    told = _Told()
    token = _TOLD.set(weakref.ref(told))
    try:
        yield
    finally:
        _TOLD.reset(token)


def _level_of_user() -> int:
    """Return the stack level, counted from `warn_user`, of the nearest frame outside of the library."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_inside(frame.f_code.co_filename, frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    return level


def _is_inside(file: str, module: str) -> bool:
    return file.startswith(_HERE) or module.partition(".")[0] in _CALLERS
