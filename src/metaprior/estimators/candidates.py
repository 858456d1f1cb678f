"""The candidates of `input_kernel="auto"`: kernels on the standardised inputs, with their starts.

All of them are sums of a few terms (`kernels.chosen_sum`), so they share one compiled program. Which periods there are
is a matter of values, not of shape: the strongest few of the spectrum are tried.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from metaprior import kernels
from metaprior.estimators.method import Problem
from metaprior.inputs import Projection
from metaprior.kernels import Kernel
from metaprior.kernels.chosen_sum import ChosenSum
from metaprior.kernels.stationary import Stationary
from metaprior.periods import periods_of

#: Columns up to which periods are looked for, and the most that are tried for each of them.
PERIODIC_COLUMNS, MOST_PERIODS = 2, 2
#: Columns from which on a kernel on a learned projection of them is tried, and the projection.
WIDE, PROJECTION = 30, Projection((8,))
#: A period is tried if its waves gain so many nats over a slow trend, and, beside a better one, at most so many less.
LEAST_GAIN, BEHIND_BEST = 2.0, 30.0
#: Where the lengthscale of a trend beside waves, or of their change, starts, in standard deviations of the inputs.
SLOW = 2.0
#: The places of the terms; those of a column with a period follow.
CONSTANT, RBF, MATERN, LINEAR, WAVES = range(5)


class Candidate(NamedTuple):
    """A kernel to try, in standardised inputs: its name, and the joint kernel at its start with its terms chosen.

    `keeps` are the terms that go on from where the RBF alone has come to; `as_rbf` are those that take over its
    lengthscale. With a `projection` the kernel sees a learned projection of the inputs.
    """

    name: str
    joint: ChosenSum
    keeps: tuple[int, ...] = ()
    as_rbf: tuple[int, ...] = ()
    projection: Projection | None = None

    @property
    def start(self) -> Kernel:
        """The kernel itself, before training."""
        return self.joint.alone(self.joint.chosen)

    @property
    def is_global(self) -> bool:
        """Whether the kernel is constant, so that the model is the global one."""
        return self.joint.chosen == (CONSTANT,)

    @property
    def has_waves(self) -> bool:
        """Whether a term is a wave."""
        return max(self.joint.chosen) >= WAVES

    @property
    def begins_anew(self) -> bool:
        """Whether the layers below have to learn something else than with the RBF, so that nothing is gone on with."""
        return self.is_global or self.projection is not None

    @property
    def kind(self) -> str:
        """What is the same for all kernels of one shape."""
        return f"{self.joint.chosen} of {len(self.joint.terms)} {self.projection}"

    def after(self, trained: ChosenSum) -> ChosenSum:
        """Return the joint kernel with this candidate's terms, once the RBF alone has been trained."""
        lengthscale = _stationary(trained.terms[RBF]).leaf("lengthscale")
        assert lengthscale is not None
        terms = [trained.terms[n] if n in self.keeps else term for n, term in enumerate(self.joint.terms)]
        for place in self.as_rbf:
            terms[place] = _stationary(terms[place]).with_leaves({"lengthscale": lengthscale})
        return dataclasses.replace(self.joint, terms=tuple(terms))


class _Wave(NamedTuple):
    """A period of a column, in the units of the data."""

    column: int
    period: float


def candidates_for(problem: Problem, projection: Projection | None) -> list[Candidate]:
    """Return the candidates for some data, the RBF first.

    Of a projection of the inputs that the user asks for, they are those without a period. Where the inputs are wide,
    the RBF on a projection is one of them.
    """
    num_columns = problem.x.shape[1]
    plain, waves = _plain(projection, num_columns), [] if projection else _waves(problem)
    columns = sorted({wave.column for wave in waves})
    first = [next(wave for wave in waves if wave.column == column) for column in columns]
    terms = [*plain, *(term for wave in first for term in _terms_of(wave, problem))]
    found = [
        Candidate("rbf", ChosenSum.of(terms, [RBF]), keeps=(RBF,)),
        Candidate("none", ChosenSum.of(terms, [CONSTANT])),
        Candidate("matern32", ChosenSum.of(terms, [MATERN]), as_rbf=(MATERN,)),
        Candidate("linear + rbf", ChosenSum.of(terms, [LINEAR, RBF]), keeps=(RBF,)),
    ]
    for wave in waves:
        found += _with_period(wave, terms, WAVES + 3 * columns.index(wave.column), problem)
    if projection is None and num_columns >= WIDE:
        joint = ChosenSum.of(_plain(PROJECTION, num_columns), [RBF])
        found.append(Candidate("rbf of a projection", joint, projection=PROJECTION))
    return found


def _plain(projection: Projection | None, num_columns: int) -> list[Kernel]:
    """Return the terms that are no waves.

    Rows of D standardised columns lie about sqrt(2 D) apart, so stationary kernels start at sqrt(D).
    """
    num_dims = num_columns if projection is None else int(projection.dims[-1])
    start = 1.0 if projection else float(np.sqrt(num_dims))
    return [
        kernels.Constant(1.0, fixed=("value",)),
        kernels.RBF().bound_to(num_dims).starting_at(start),
        kernels.Matern32().bound_to(num_dims).starting_at(start),
        kernels.Linear().bound_to(num_dims),
    ]


def _with_period(wave: _Wave, terms: Sequence[Kernel], place: int, problem: Problem) -> list[Candidate]:
    """Return the kernels with a period: alone, beside a trend, beside a trend around a line, and changing slowly."""
    own, several = list(terms), problem.x.shape[1] > 1
    own[place : place + 3] = _terms_of(wave, problem)
    own[RBF] = _stationary(own[RBF]).starting_at(_slow(problem))
    told = f"periodic({wave.period:.4g})" + (f"@{wave.column}" if several else "")
    return [
        Candidate(told, ChosenSum.of(own, [place])),
        Candidate(f"{told} + rbf", ChosenSum.of(own, [place + 1, RBF])),
        Candidate(f"linear + {told} + rbf", ChosenSum.of(own, [LINEAR, place + 1, RBF])),
        Candidate(f"{told} * rbf", ChosenSum.of(own, [place + 2])),
    ]


def _terms_of(wave: _Wave, problem: Problem) -> list[Kernel]:
    """Return waves alone, waves with a learned scale, and waves that change slowly."""
    num_dims = problem.x.shape[1]
    waves: Kernel = kernels.Periodic(period=wave.period)
    if num_dims > 1:
        waves = waves.on(wave.column)
    waves = waves.bound_to(num_dims).standardised(problem.x_scale)
    return [waves, waves * 1.0, waves * kernels.RBF().bound_to(num_dims).starting_at(_slow(problem))]


def _stationary(kernel: Kernel) -> Stationary:
    assert isinstance(kernel, Stationary)
    return kernel


def _slow(problem: Problem) -> float:
    return SLOW * float(np.sqrt(problem.x.shape[1]))


def _waves(problem: Problem) -> list[_Wave]:
    """Return the periods that are worth a try, the best of each column first."""
    if problem.x.shape[1] > PERIODIC_COLUMNS:
        return []
    found: list[tuple[float, _Wave]] = []
    for column, values in enumerate(problem.x.T):
        periods = periods_of(values, problem.targets, problem.weight)
        pairs = list(zip(periods.gain.tolist(), periods.period.tolist(), strict=True))[:MOST_PERIODS]
        found += [(gain, _Wave(column, period)) for gain, period in pairs if gain > LEAST_GAIN]
    best = max((gain for gain, _ in found), default=0.0)
    return [wave for gain, wave in found if gain > best - BEHIND_BEST]
