"""The sum of some of several kernels: many candidates that are one shape, and so share one compiled program.

Whether a term counts is a number that is not learned, so choosing others compiles nothing. Terms that do not count add
0 times a finite number: they change nothing, and their hyper-parameters have no gradient.
"""

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from operator import add
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels.base import Kernel
from metaprior.types import Fixed, Leaf


class ChosenSum(Kernel):
    """The sum of those terms whose `counts` is 1; it is 0 for the others."""

    terms: tuple[Kernel, ...]
    counts: Fixed

    @classmethod
    def of(cls, terms: Sequence[Kernel], chosen: Collection[int]) -> "ChosenSum":
        """Return the sum of the terms with these numbers."""
        return cls(tuple(terms), Fixed(np.array([float(number in chosen) for number in range(len(terms))])))

    @property
    def chosen(self) -> tuple[int, ...]:
        """The numbers of the terms that count; outside of compiled functions only."""
        return tuple(np.flatnonzero(np.asarray(self.counts.value)).tolist())

    def alone(self, chosen: Sequence[int]) -> Kernel:
        """Return the sum of these terms as an ordinary kernel."""
        return reduce(add, [self.terms[number] for number in chosen])

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return the sum of the terms that count."""
        return self._total([term(a, b) for term in self.terms])

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return the sum of the terms that count."""
        return self._total([term.diagonal(a) for term in self.terms])

    def num_normals(self, num_dims: int) -> int:
        """Return the sum of the counts of all terms."""
        return sum(term.num_normals(num_dims) for term in self.terms)

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return the sum of independent features of the terms that count."""
        stops = np.cumsum([term.num_normals(a.shape[1]) for term in self.terms])
        parts = jnp.split(jnp.asarray(normals), stops[:-1].tolist())
        return self._total([term.features(a, own) for term, own in zip(self.terms, parts, strict=True)])

    def cost_of_lengthscales(self) -> Float[Array, ""]:
        """Return the sum over the terms that count."""
        return self._total([term.cost_of_lengthscales() for term in self.terms])

    def children(self) -> dict[str, Kernel]:
        """Return the terms by their numbers."""
        return {str(number): term for number, term in enumerate(self.terms)}

    def release_times(self) -> "ChosenSum":
        """Return those of the terms; whether they count is never learned."""
        return ChosenSum(super().release_times().terms, self.counts.release_times())

    def _with_children(self, change: Callable[[Kernel], Kernel]) -> "ChosenSum":
        return ChosenSum(tuple(change(term) for term in self.terms), self.counts)

    def _total(self, values: Sequence[Array]) -> Array:
        counts: Any = jax.lax.stop_gradient(jnp.asarray(self.counts.value))
        return reduce(add, [counts[number] * value for number, value in enumerate(values)])

    def __repr__(self) -> str:
        """Show the terms, and which of them count."""
        return f"ChosenSum({list(self.terms)!r}, counts={self.counts.value!r})"
