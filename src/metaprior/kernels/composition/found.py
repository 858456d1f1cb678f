"""What a search has found: the kernel, its components in words, and all that was tried."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import ive

from metaprior.extras import imported
from metaprior.kernels.base import Kernel
from metaprior.kernels.compose import Sum
from metaprior.kernels.composition.bases import Rows
from metaprior.kernels.composition.evidence import COMMON, Evidence, Fitted
from metaprior.kernels.composition.expression import (
    Composition,
    Term,
    assembled,
    evaluated_term,
    factors,
    kernel_of_term,
)
from metaprior.kernels.composition.sentences import Columns, Effect, sentence_of
from metaprior.kernels.constant import Constant

#: The variance of the constant, in variances of the target, below which the kernel has none.
LEAST_CONSTANT = 1e-3
#: The share of the variance from which on a component is named.
LEAST_SHARE = 1e-3


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
    share : float
        The variance of its posterior mean at the rows, as a share of the variance of the target.
    sentence : str
        What it is, in words.
    mean : ndarray of shape (num_rows, n_outputs)
        Its posterior mean at the rows of the result, in the units of the target.
    """

    composition: str
    share: float
    sentence: str
    mean: np.ndarray = field(repr=False, compare=False)


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
        The additive components, that with the largest share first. A product with a periodic kernel is two of them:
        the period, and what the function is on average over it.
    noise : ndarray of shape (n_outputs,)
        The standard deviation of the noise, in the units of the target.
    log_evidence, score : float
        The log evidence of the standardised targets, and the same less the price of the hyper-parameters, in nats.
    rows : ndarray of shape (num_rows, n_features)
        The inputs whose evidence was computed.
    num_all_rows : int
        The number of all rows.
    num_evaluations, seconds : int, float
        The cost.
    """

    kernel: Kernel
    composition: str
    components: tuple[Component, ...]
    noise: np.ndarray
    log_evidence: float
    score: float
    rows: np.ndarray
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
        pandas = imported("pandas", part="frame", extra="compare")
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
        used = len(self.rows)
        rows = f"{used}" + (f" of {self.num_all_rows}" if self.num_all_rows > used else "")
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
    effects = [effect for term, own in pairs for effect in _effects(term, own, evidence.rows)]
    components = sorted((_component(effect, weights, problem) for effect in effects), key=lambda each: -each.share)
    components = [each for number, each in enumerate(components) if number == 0 or each.share > LEAST_SHARE]
    return FoundKernel(
        kernel=_kernel(composition, theta, float(constant), problem.scale),
        composition=composition.text(problem.names),
        components=tuple(components),
        noise=np.sqrt(noise) * problem.target_scale,
        log_evidence=best.log_evidence,
        score=best.score(len(evidence.y)),
        rows=evidence.rows.x * problem.scale + problem.offset,
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


class _Effect(NamedTuple):
    """A part of the function: the term that says what it is, with its hyper-parameters, and its covariance."""

    term: Term
    theta: np.ndarray
    covariance: np.ndarray


def _effects(term: Term, theta: np.ndarray, rows: Rows) -> list[_Effect]:
    """Return a term as one effect or, if it has a period and something else, as the period and its average.

    A periodic kernel is one of functions with mean 0 over the period plus the constant exp(-1 / l^2) I_0(1 / l^2). So
    growth * periodic is a period that grows, and also a straight line.
    """
    whole = evaluated_term(term, rows, theta)[0]
    product = factors(term, theta)
    periods = [own for base, own in product if base.name == "periodic"]
    if len(periods) != 1:
        return [_Effect(term, theta, whole)]
    average = float(ive(0, np.exp(-2 * periods[0][1])))
    rest, rest_theta = assembled(
        [(theta[:1] + np.log(average), [each for each in product if each[0].name != "periodic"])]
    )
    if not rest.terms[0]:
        return [_Effect(term, theta, whole - average * np.exp(theta[0]))]
    of_rest = evaluated_term(rest.terms[0], rows, rest_theta)[0]
    return [_Effect(term, theta, whole - of_rest), _Effect(rest.terms[0], rest_theta, of_rest)]


def _component(effect: _Effect, weights: np.ndarray, problem: Searched) -> Component:
    """Return a component with its share of the variance and its sentence."""
    rows = problem.evidence.rows
    mean = effect.covariance @ weights  # E[component | y] = K_c C^-1 y
    share = float(np.mean(np.var(mean, axis=0) / np.maximum(np.var(problem.evidence.y, axis=0), 1e-300)))
    columns = Columns(problem.names, problem.units, rows.x * problem.scale + problem.offset)
    in_units = mean * problem.target_scale
    said = sentence_of(Effect(effect.term, effect.theta, problem.scale, in_units, share), columns)
    return Component(Composition((effect.term,)).text(problem.names), share, said, in_units)
