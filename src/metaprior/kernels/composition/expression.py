"""A composition: a sum of terms, each of which is a product of base kernels with a scale of its own.

Every expression of sums and products can be written so, and each term of it is one additive component of the function.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metaprior.kernels.base import Kernel
from metaprior.kernels.composition.bases import STATIONARY, Base, Evaluated, Rows

#: A product of base kernels, in alphabetical order.
Term = tuple[Base, ...]
#: The logarithm of a term's scale [1], and its factors with their hyper-parameters.
Part = tuple[np.ndarray, list[tuple[Base, np.ndarray]]]
#: Bounds of the logarithm of a term's scale, in variances of the target.
SCALES = (np.log(1e-6), np.log(1e4))


class Move(NamedTuple):
    """A base kernel more: as a factor of the term at a place, or as a term of its own."""

    place: int | None
    base: Base


@dataclass(frozen=True)
class Composition:
    """A sum of terms. Its theta has, for every term, the log of the scale and the hyper-parameters of the factors."""

    terms: tuple[Term, ...]

    @property
    def num_hypers(self) -> int:
        """The number of hyper-parameters."""
        return sum(term_size(term) for term in self.terms)

    @property
    def num_bases(self) -> int:
        """The number of base kernels."""
        return sum(len(term) for term in self.terms)

    def split(self, theta: np.ndarray) -> list[np.ndarray]:
        """Return theta by terms."""
        return np.split(theta, np.cumsum([term_size(term) for term in self.terms]))[:-1]

    def evaluated(self, rows: Rows, theta: np.ndarray) -> Evaluated:
        """Return the matrix between the rows and how slopes are pulled back."""
        parts = [evaluated_term(term, rows, own) for term, own in zip(self.terms, self.split(theta), strict=True)]
        return np.sum([k for k, _ in parts], axis=0), lambda slope: np.concatenate([pull(slope) for _, pull in parts])

    def bounds(self, theta: np.ndarray) -> list[tuple[float, float]]:
        """Return the lowest and highest hyper-parameters of a run that starts at theta."""
        found = []
        for term, own in zip(self.terms, self.split(theta), strict=True):
            found += [SCALES]
            for base, values in factors(term, own):
                found += base.bounds(values)
        return found

    def moves(self, bases: Sequence[Base], growths: Sequence[Base]) -> list[Move]:
        """Return the ways to have one base kernel more: as a term of its own, or as a factor of a term."""
        found = [Move(None, base) for base in bases if _may_stand_beside(base, self.terms)]
        for place, term in enumerate(self.terms):
            found += [Move(place, base) for base in (*bases, *growths) if _may_multiply(base, term)]
        return found

    def moved(self, theta: np.ndarray, move: Move, own: np.ndarray, scale: float) -> tuple["Composition", np.ndarray]:
        """Return the composition with one base kernel more, and theta with the new kernel's hyper-parameters.

        A term of its own has this logarithm of a scale; a factor leaves the scale of its term.
        """
        parts = self._parts(theta)
        if move.place is None:
            parts.append((np.array([scale]), [(move.base, own)]))
        else:
            kept, product = parts[move.place]
            parts[move.place] = (kept, [*product, (move.base, own)])
        return assembled(parts)

    def reduced(self, theta: np.ndarray) -> list[tuple["Composition", np.ndarray]]:
        """Return the compositions with one base kernel less, with the hyper-parameters of the others."""
        found = []
        for place, term in enumerate(self.terms):
            for number in range(len(term)):
                parts = self._parts(theta)
                scale, product = parts.pop(place)
                rest = product[:number] + product[number + 1 :]
                if rest and not all(base.name == "growth" for base, _ in rest):
                    parts.append((scale, rest))
                if parts and (not rest or len(parts) == len(self.terms)):
                    found.append(assembled(parts))
        return found

    def values(self, theta: np.ndarray) -> list[tuple[Base, np.ndarray]]:
        """Return all base kernels with their hyper-parameters."""
        return [factor for _, product in self._parts(theta) for factor in product]

    def with_values(self, theta: np.ndarray, values: Mapping[Base, np.ndarray]) -> np.ndarray:
        """Return theta with these hyper-parameters of base kernels; the others and the scales stay."""
        parts = [
            (scale, [(base, values.get(base, own)) for base, own in product]) for scale, product in self._parts(theta)
        ]
        return assembled(parts)[1]

    def _parts(self, theta: np.ndarray) -> list[Part]:
        """Return the terms with their scales and hyper-parameters."""
        return [(each[:1], factors(term, each)) for term, each in zip(self.terms, self.split(theta), strict=True)]

    def text(self, names: Sequence[str] = ()) -> str:
        """Return the composition as a formula, with the names of the columns where there are several."""
        shown = [" * ".join(_base_text(base, names) for base in term) for term in self.terms]
        return " + ".join(shown) or "nothing but noise"


def assembled(parts: Sequence[Part]) -> tuple[Composition, np.ndarray]:
    """Return the composition of these parts in the normal order, in which equal ones are equal, and its theta."""
    ordered = [(scale, sorted(product, key=lambda factor: factor[0])) for scale, product in parts]
    ordered.sort(key=lambda part: [base for base, _ in part[1]])
    theta = [piece for scale, product in ordered for piece in (scale, *[own for _, own in product])]
    terms = tuple(tuple(base for base, _ in product) for _, product in ordered)
    return Composition(terms), np.concatenate(theta) if theta else np.zeros(0)


def term_size(term: Term) -> int:
    """Return the number of hyper-parameters of a term."""
    return 1 + sum(base.num_hypers for base in term)


def factors(term: Term, theta: np.ndarray) -> list[tuple[Base, np.ndarray]]:
    """Return the factors of a term with their hyper-parameters."""
    places = np.cumsum([1, *[base.num_hypers for base in term]])
    return [(base, theta[low:high]) for base, low, high in zip(term, places, places[1:], strict=False)]


def evaluated_term(term: Term, rows: Rows, theta: np.ndarray) -> Evaluated:
    """Return the matrix of a term and how slopes are pulled back."""
    scale = np.exp(theta[0])
    parts = [base.evaluated(rows, own) for base, own in factors(term, theta)]
    matrices = [k for k, _ in parts]
    whole = scale * _product(matrices)

    def pull(slope: np.ndarray) -> np.ndarray:
        found = [np.array([np.vdot(slope, whole)])]
        for place, (_, pull_one) in enumerate(parts):
            others = matrices[:place] + matrices[place + 1 :]
            found.append(pull_one(scale * slope * _product(others) if others else scale * slope))
        return np.concatenate(found)

    return whole, pull


def kernel_of_term(term: Term, theta: np.ndarray, scale: np.ndarray, *, scaled: bool = True) -> Kernel:
    """Return a term as a kernel in the units of the data."""
    parts = []
    for base, own in factors(term, theta):
        kernel = base.kernel(own, scale)
        parts.append(kernel if len(scale) == 1 or len(base.columns) == len(scale) else kernel.on(*base.columns))
    product = parts[0]
    for part in parts[1:]:
        product = product * part
    return float(np.exp(theta[0])) * product if scaled else product


def _product(matrices: Sequence[np.ndarray]) -> np.ndarray:
    found = matrices[0]
    for matrix in matrices[1:]:
        found = found * matrix
    return found


def _may_stand_beside(base: Base, terms: Sequence[Term]) -> bool:
    """Return whether a term more is something new: a second line is not, a second period or lengthscale is."""
    return base.name != "linear" or (base,) not in terms


def _may_multiply(base: Base, term: Term) -> bool:
    """Return whether a factor more is something new."""
    same = [other.name for other in term if other.columns == base.columns]
    if base.name == "growth":  # 1 + w x x' would only add a line to a line
        return "growth" not in same and "linear" not in same
    if base.name == "linear":
        return same.count("linear") < 2 and "growth" not in same
    if base.name in STATIONARY:
        return not STATIONARY.intersection(same)
    return base.name not in same


def _base_text(base: Base, names: Sequence[str]) -> str:
    return f"{base.name}({', '.join(names[column] for column in base.columns)})" if len(names) > 1 else base.name
