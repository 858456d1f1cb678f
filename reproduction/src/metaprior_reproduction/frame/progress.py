"""Progress on stderr: a line for every call that ends, with an estimate of the time left; on a terminal, a bar too."""

from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple

import numpy as np


class Call(NamedTuple):
    """Runs that are computed in one call: one method of an item with some seeds."""

    id: str
    method: str
    seeds: tuple[int, ...]

    def __str__(self) -> str:
        first, last = self.seeds[0], self.seeds[-1]
        seeds = f"seed {first}" if len(self.seeds) == 1 else f"seeds {first} to {last}"
        return f"{self.id}, {self.method}, {seeds}"


class Watch:
    """Reports the progress of the calls.

    Parameters
    ----------
    calls : sequence of Call
        The calls to make, in the order in which they start.
    jobs : int
        How many calls run at once.
    known : mapping of (id, method) to list of float
        How many seconds each of the stored runs took.
    quiet : bool
        Whether to print nothing.
    """

    def __init__(
        self, calls: Sequence[Call], jobs: int, known: dict[tuple[str, str], list[float]], quiet: bool
    ) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._left, self._jobs = list(calls), jobs
        self._seconds = {place: list(seconds) for place, seconds in known.items()}
        self._total = sum(len(call.seeds) for call in calls)
        self._console = Console(stderr=True, quiet=quiet)
        what = TextColumn("{task.description}", markup=False)  # method names contain brackets
        columns = (BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn(), what)
        hidden = quiet or not self._console.is_terminal
        self._bar = Progress(*columns, console=self._console, transient=True, disable=hidden)
        self._task = self._bar.add_task("", total=self._total)

    def __enter__(self) -> "Watch":
        self._bar.start()
        num_kept = sum(map(len, self._seconds.values()))
        self.say(f"{self._total} runs to do, {num_kept} kept from before. {self._state()}")
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._bar.stop()
        if kind is KeyboardInterrupt:
            self.say("Stopped. Finished runs are kept, and the same command resumes from here.")

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def ended(self, call: Call, seconds: float, error: str | None) -> None:
        """Record that a call ended, and print how it went and what runs next."""
        self._left.remove(call)
        if error is None:
            self._seconds.setdefault((call.id, call.method), []).extend([seconds / len(call.seeds)] * len(call.seeds))
        done = self._total - sum(len(other.seeds) for other in self._left)
        self._bar.update(self._task, completed=done)
        end = duration(seconds) if error is None else f"failed after {duration(seconds)}"
        told = "" if error is None else f"\n{error.rstrip()}\n"
        self.say(f"[{done}/{self._total}] {call}: {end}. {told}{self._state()}")

    def _state(self) -> str:
        now = "; ".join(map(str, self._left[: self._jobs]))
        self._bar.update(self._task, description=now)
        left = self.seconds_left()
        words = "" if left is None else f" About {duration(left)} left."
        return f"Now: {now}.{words}" if now else "All runs are done."

    def seconds_left(self) -> float | None:
        """Estimate the time left from other runs of the same method, else of the same item, else of all items."""
        if not self._seconds or not self._left:
            return None
        expected = sum(len(call.seeds) * self._usual(call) for call in self._left)
        return expected / min(self._jobs, len(self._left))

    def _usual(self, call: Call) -> float:
        of_item = [value for (id, _), values in self._seconds.items() if id == call.id for value in values]
        of_all = [value for values in self._seconds.values() for value in values]
        return float(np.mean(self._seconds.get((call.id, call.method)) or of_item or of_all))


def duration(seconds: float) -> str:
    """Return a time in words: 0.4 s, 41 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"
