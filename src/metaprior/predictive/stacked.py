"""Several posteriors of one shape as one: what differs between them along a leading axis, what does not only once."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from metaprior.output_layer import ConditionedGP
from metaprior.types import Leaf


class StackedPosteriors(eqx.Module):
    """The posteriors given every draw of the layers below.

    An input kernel that is a point estimate is the same for all of them: what is computed from it alone, the covariance
    of the inputs, is then computed once in a program, and not once for each.
    """

    own: ConditionedGP
    common: ConditionedGP
    count: int = eqx.field(static=True)

    @classmethod
    def of(cls, stacked: ConditionedGP) -> "StackedPosteriors":
        """Take posteriors along a leading axis of all their numbers."""
        leaves = jax.tree.leaves(stacked)
        differs = jax.tree.map(lambda leaf: bool(np.any(np.asarray(leaf) != np.asarray(leaf)[:1])), stacked)
        own, common = eqx.partition(stacked, differs)
        return cls(own, jax.tree.map(lambda leaf: leaf[0], common), leaves[0].shape[0])

    def one(self, index: Leaf | int) -> ConditionedGP:
        """Return one of the posteriors."""
        return eqx.combine(jax.tree.map(lambda leaf: leaf[index], self.own), self.common)

    def each(self, function: Callable[[ConditionedGP], Any]) -> Any:
        """Return a function of every posterior, one after the other, along a leading axis."""
        return jax.lax.map(lambda index: function(self.one(index)), jnp.arange(self.count))

    def each_with(self, function: Callable[[ConditionedGP, Array], Any], parts: Array) -> Any:
        """Return a function of every posterior and its own part."""
        return jax.lax.map(lambda own: function(self.one(own[0]), own[1]), (jnp.arange(self.count), parts))
