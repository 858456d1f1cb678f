"""The evaluations of a function: the points that were asked for, and their values.

They are never changed. Every method returns new ones, so a call that raises an error leaves the loop as it was.
"""

import dataclasses
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metaprior.decisions.content import checked_count, checked_fields, checked_numbers
from metaprior.decisions.optimise.box import Box


@dataclass(frozen=True)
class Evaluations:
    """Points with their values in the order in which they were told, and pending points, oldest first.

    Parameters
    ----------
    X, y : ndarray of shape (n, n_dimensions), (n,)
        The points that were evaluated, and their values.
    pending : ndarray of shape (n_pending, n_dimensions)
        Points that were asked for and have no value yet.
    n_asked, n_designed : int
        How many points were asked for, and how many of these were in the initial design.
    """

    X: np.ndarray
    y: np.ndarray
    pending: np.ndarray
    n_asked: int = 0
    n_designed: int = 0

    @classmethod
    def none(cls, n_dimensions: int) -> "Evaluations":
        """Return the evaluations of a new loop."""
        return cls(np.empty((0, n_dimensions)), np.empty(0), np.empty((0, n_dimensions)))

    @classmethod
    def checked(cls, content: Any, box: Box) -> "Evaluations":
        """Return the evaluations that a file contains, or raise an error if they are not ones on the box."""
        fields = checked_fields("state", content, [field.name for field in dataclasses.fields(cls)])
        X, pending = (checked_numbers(name, fields[name], (None, box.n_dimensions)) for name in ("X", "pending"))
        n_asked = checked_count("n_asked", fields["n_asked"])
        # a point of the initial design is pending until it is told
        n_designed = checked_count("n_designed", fields["n_designed"], 0, min(n_asked, len(X) + len(pending)))
        return cls(
            box.checked(X, "X"),
            checked_numbers("y", fields["y"], (len(X),)),
            box.checked(pending, "pending"),
            n_asked,
            n_designed,
        )

    def with_questions(self, points: np.ndarray, n_designed: int) -> "Evaluations":
        """Return the evaluations with more pending points, `n_designed` of them in the initial design."""
        return replace(
            self,
            pending=np.vstack([self.pending, points]),
            n_asked=self.n_asked + len(points),
            n_designed=self.n_designed + n_designed,
        )

    def with_values(self, points: np.ndarray, values: np.ndarray, answered: np.ndarray) -> "Evaluations":
        """Return the evaluations with more values. `answered` marks the pending points among them."""
        return replace(
            self,
            X=np.vstack([self.X, points]),
            y=np.append(self.y, values),
            pending=self.pending[~answered],
        )
