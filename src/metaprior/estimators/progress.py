"""A progress line for a fit: how far, how long, the ELBO and its terms. On stderr, only where it was asked for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from metaprior.inference import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


@contextmanager
def progress_bar(verbose: bool | int) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a listener for `train` that draws a bar, or None when silent."""
    if not verbose:
        yield None
        return
    with new_bar() as bar:
        task = bar.add_task("compiling", total=None)

        def listen(progress: Progress) -> None:
            bar.update(task, completed=progress.step, total=progress.num_steps, description=_described(progress))

        yield listen


@contextmanager
def counting_bar(verbose: bool | int, total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that is called with the name of each finished part, and draws a bar if `verbose`."""
    if not verbose:
        yield lambda part: None
        return
    with new_bar() as bar:
        task = bar.add_task("begun", total=total)
        yield lambda part: bar.update(task, advance=1, description=part)
        bar.update(task, description="done")


def new_bar() -> "Bar":
    """Return an empty bar on stderr: how many of how many, how long, and a description."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(30), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    return Bar(*columns, console=Console(stderr=True))


def _described(progress: Progress) -> str:
    terms = {name: value for name, value in progress.terms.items() if name != "jitter"}
    kl = sum(value for name, value in terms.items() if name.startswith("kl_"))
    parts = " ".join(f"{name} {value:.1f}" for name, value in terms.items())
    if "log_likelihood" not in terms:  # a sampler's
        return parts
    return f"ELBO {terms['log_likelihood'] - kl:.1f} = {parts}"
