"""What an item is: one figure or table, which one file of the folder `items` computes, draws and judges.

An item's file holds its claim, the paper's numbers, its presets and three functions. `compute` makes numbers and
arrays and knows nothing of figures, `draw` makes figures from saved arrays and computes nothing, and `judge` compares
the numbers with the claim.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Whose method a verdict is about: this library's, the paper's own inference, or a method that is compared with both.
Whose = Literal["ours", "as published", "baseline"]
#: The settings of an item, which JSON can hold. Every preset has "seeds", the number of seeds.
Config = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What one run (one method with one seed) found.

    Parameters
    ----------
    metrics : mapping of str to float
        The numbers; rows of the table are their means over seeds.
    arrays : mapping of str to ndarray
        What the figures are drawn from.
    """

    metrics: Mapping[str, float]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """An outcome with its method, its seed and the time it took."""

    method: str
    seed: int
    outcome: Outcome
    seconds: float


@dataclass(frozen=True)
class Summary:
    """A metric over seeds: the mean, its standard error (nan for one run) and the number of runs."""

    mean: float
    se: float
    n: int


@dataclass(frozen=True)
class Results:
    """All runs of an item under one configuration."""

    config: Config
    runs: Sequence[Run]

    def of(self, method: str) -> list[Run]:
        """Return the runs of a method in the order of their seeds."""
        return sorted((run for run in self.runs if run.method == method), key=lambda run: run.seed)

    @property
    def methods(self) -> list[str]:
        """The methods in the order of their first run."""
        return list(dict.fromkeys(run.method for run in self.runs))

    def values(self, method: str, metric: str) -> np.ndarray:
        """Return a metric of a method, one value for each seed that has it."""
        found = [run.outcome.metrics[metric] for run in self.of(method) if metric in run.outcome.metrics]
        return np.asarray(found, np.float64)

    def summary(self, method: str, metric: str) -> Summary:
        """Return the mean of a metric over seeds with its standard error."""
        values = self.values(method, metric)
        if not len(values):
            return Summary(float("nan"), float("nan"), 0)
        se = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
        return Summary(float(np.mean(values)), se, len(values))

    def metrics(self, method: str) -> list[str]:
        """Return the names of a method's metrics."""
        return list(dict.fromkeys(name for run in self.of(method) for name in run.outcome.metrics))


@dataclass(frozen=True)
class Verdict:
    """One claim compared with the numbers, in plain words.

    Parameters
    ----------
    claim : str
        The sentence that was tested.
    outcome : {"agrees", "better", "worse"}
        How we compare with the paper (for items of our own, with the expectation that the claim states).
    evidence : str
        The numbers that say so, with their standard errors.
    whose : {"ours", "as published", "baseline"}
        Whose method the claim is about, as the item declares it: a method of this library; the paper's own inference,
        in which every weight is drawn; or a method that is compared with these.
    cause : str, optional
        Why the claim is not met, in a sentence or two, from the item's `causes`; empty while it is not known.
    """

    claim: str
    outcome: Literal["agrees", "better", "worse"]
    evidence: str
    whose: Whose
    cause: str = ""


@dataclass(frozen=True)
class Item:
    """A figure or table.

    Parameters
    ----------
    title : str
        What it is in the paper, or that it is our own.
    claim : str
        What the results should show, in a sentence or two.
    presets : mapping of str to config
        "smoke" (seconds) and "paper" (the paper's sizes and repeats); each has "seeds".
    methods : function of config
        The names of the methods, in the order of the table.
    compute : function of (config, method, seeds)
        One outcome per seed; the numbers depend on nothing but the arguments.
    draw : function of results
        Figures by name (names become file names).
    judge : function of results
        Verdicts.
    paper : mapping of method to metrics, optional
        The paper's numbers, under our names.
    together : int, default=1
        The largest number of seeds in one call of `compute` (more than 1 if it trains them side by side).
    notes : str, optional
        What was chosen where the paper leaves it open, and what was tried where the results disagree.
    causes : mapping of claim to str, optional
        Why a claim is not met, in a sentence or two. The claim is that of the verdict, word by word; the cause is
        shown while the verdict is "worse".
    """

    title: str
    claim: str
    presets: Mapping[str, Config]
    methods: Callable[[Config], Sequence[str]]
    compute: Callable[[Config, str, Sequence[int]], Sequence[Outcome]]
    draw: Callable[[Results], "Mapping[str, Figure]"]
    judge: Callable[[Results], Sequence[Verdict]]
    paper: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    together: int = 1
    notes: str = ""
    causes: Mapping[str, str] = field(default_factory=dict)
