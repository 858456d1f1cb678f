"""What a search has found: the kernel, its components in words, and all that was tried."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from metaprior.kernels.base import Kernel
from metaprior.kernels.compose import Sum
from metaprior.kernels.composition.evidence import COMMON, Evidence, Fitted
from metaprior.kernels.composition.expression import Composition, Term, evaluated_term, kernel_of_term
from metaprior.kernels.composition.sentences import Columns, Effect, sentence_of
from metaprior.kernels.constant import Constant

#: The variance of the constant, in variances of the target, below which the kernel has none.
LEAST_CONSTANT = 1e-3


class Tried(NamedTuple):
    """A composition that was tried; `ended` says whether its fit ran to its end."""

    level: int
    fitted: Fitted
    num_rows: int
    ended: bool

    @property
    def score(self) -> float:
        """The log evidence less the price of the hyper-parameters."""
        return self.fitted.score(self.num_rows)


@dataclass(frozen=True)
class Component:
    """An additive component of the function.

    Attributes
    ----------
    composition : str
        Its base kernels, such as "periodic * rbf".
    kernel : Kernel
        Its kernel, in the units of the data; its scale is in variances of the target.
    share : float
        The variance of its posterior mean at the rows, as a share of the variance of the target.
    sentence : str
        What it is, in words.
    """

    composition: str
    kernel: Kernel
    share: float
    sentence: str


@dataclass(frozen=True, repr=False)
class FoundKernel:
    """The result of `metaprior.kernels.search`.

    Attributes
    ----------
    kernel : Kernel
        The kernel in the units of the data, to be given as `input_kernel=` or `kernel=`. In a sum the scales are in
        variances of the target; a single component has none, because models learn it.
    composition : str
        Its base kernels as a formula.
    components : tuple of Component
        The additive components, that with the largest share first.
    noise : ndarray of shape (n_outputs,)
        The standard deviation of the noise, in the units of the target.
    log_evidence, score : float
        The log evidence of the standardised targets, and the same less the price of the hyper-parameters, in nats.
    num_rows, num_all_rows : int
        The rows whose evidence was computed, and all.
    num_evaluations, seconds : int, float
        The cost.
    """

    kernel: Kernel
    composition: str
    components: tuple[Component, ...]
    noise: np.ndarray
    log_evidence: float
    score: float
    num_rows: int
    num_all_rows: int
    num_evaluations: int
    seconds: float
    tried: tuple[Tried, ...] = field(default=(), compare=False)
    names: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence per component, that with the largest share of the variance first."""
        return tuple(component.sentence for component in self.components)

    def frame(self) -> Any:
        """Return what was tried as a pandas DataFrame, the best first.

        Columns: `composition`, `level` (its number of base kernels), `score`, `log_evidence`, `hypers`, `noise` (its
        share of the variance), and `ended` (False where the first steps were too far behind to go on).
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError('frame: the table needs pandas; pip install "metaprior[compare]".') from error
        rows = [
            {
                "composition": each.fitted.composition.text(self.names),
                "level": each.level,
                "score": each.score,
                "log_evidence": each.fitted.log_evidence,
                "hypers": each.fitted.composition.num_hypers,
                "noise": float(np.exp(each.fitted.theta[0])),
                "ended": each.ended,
            }
            for each in self.tried
        ]
        return pandas.DataFrame(rows).sort_values("score", ascending=False, ignore_index=True)

    def __str__(self) -> str:
        """Show the sentences, and what they cost."""
        rows = f"{self.num_rows}" + (f" of {self.num_all_rows}" if self.num_all_rows > self.num_rows else "")
        lines = [f"- {sentence}" for sentence in self.sentences] or ["- nothing but noise"]
        noise = ", ".join(f"{value:.3g}" for value in self.noise)
        return "\n".join(
            [
                f"{self.composition}   (score {self.score:.1f} nats; {len(self.tried)} compositions tried on {rows} "
                f"rows in {self.seconds:.1f} s)",
                *lines,
                f"- noise with a standard deviation of {noise}",
            ]
        )

    def __repr__(self) -> str:
        """Show the same."""
        return f"FoundKernel: {self}"


class Searched(Protocol):
    """What the search knows of the data."""

    @property
    def evidence(self) -> Evidence:
        """The evidence at the rows that were used."""

    @property
    def num_all(self) -> int:
        """The number of all rows."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    def units(self) -> tuple[str, ...]:
        """The units of the columns."""

    @property
    def offset(self) -> np.ndarray:
        """The means of the columns."""

    @property
    def scale(self) -> np.ndarray:
        """The standard deviations of the columns."""

    @property
    def target_scale(self) -> np.ndarray:
        """The standard deviations of the targets."""


def found_kernel(best: Fitted, tried: list[Tried], problem: Searched, seconds: float) -> FoundKernel:
    """Return the best composition in the units of the data and in words."""
    composition, theta, evidence = best.composition, best.theta, problem.evidence
    noise, constant = np.exp(theta[:COMMON])
    weights = evidence.weights(best)
    pairs = zip(composition.terms, composition.split(theta[COMMON:]), strict=True)
    components = [_component(term, own, weights, problem) for term, own in pairs]
    components.sort(key=lambda each: -each.share)
    return FoundKernel(
        kernel=_kernel(composition, theta, float(constant), problem.scale),
        composition=composition.text(problem.names),
        components=tuple(components),
        noise=np.sqrt(noise) * problem.target_scale,
        log_evidence=best.log_evidence,
        score=best.score(len(evidence.y)),
        num_rows=len(evidence.y),
        num_all_rows=problem.num_all,
        num_evaluations=evidence.num_evaluations,
        seconds=seconds,
        tried=tuple(tried),
        names=problem.names,
    )


def _kernel(composition: Composition, theta: np.ndarray, constant: float, scale: np.ndarray) -> Kernel:
    """Return the whole kernel; a constant that matters is a part of it."""
    parts = list(zip(composition.terms, composition.split(theta[COMMON:]), strict=True))
    has_constant = constant > LEAST_CONSTANT
    if not parts:
        return Constant(1.0)
    alone = len(parts) == 1 and not has_constant
    found = [kernel_of_term(term, own, scale, scaled=not alone) for term, own in parts]
    kernel = found[0]
    for other in [*found[1:], *([Constant(constant)] if has_constant else [])]:
        kernel = Sum(kernel, other)
    return kernel


def _component(term: Term, theta: np.ndarray, weights: np.ndarray, problem: Searched) -> Component:
    """Return a component with its share of the variance and its sentence."""
    rows = problem.evidence.rows
    mean = evaluated_term(term, rows, theta)[0] @ weights  # E[component | y] = K_c C^-1 y
    share = float(np.mean(np.var(mean, axis=0) / np.maximum(np.var(problem.evidence.y, axis=0), 1e-300)))
    columns = Columns(problem.names, problem.units, rows.x * problem.scale + problem.offset)
    effect = Effect(term, theta, problem.scale, mean * problem.target_scale, share)
    return Component(
        Composition((term,)).text(problem.names),
        kernel_of_term(term, theta, problem.scale),
        share,
        sentence_of(effect, columns),
    )
