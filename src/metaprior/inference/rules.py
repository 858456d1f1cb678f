"""What a rule that may end a run early has to provide."""

from typing import Protocol, runtime_checkable

import numpy as np

from metaprior.model import Model

#: Every term of the ELBO, by name, as an array over steps; "elbo" is their sum.
History = dict[str, np.ndarray]


@runtime_checkable
class StopRule(Protocol):
    """Decides, after each block of steps, whether a run may end.

    Training asks only once the recipe has let everything in. The state of the rule is part of a run's snapshots:
    `resume` with what `progress` and `best_model` gave must bring a new rule to the same decisions. Its class and its
    attributes are part of the run's identity: two rules that decide differently must differ in them.
    """

    @property
    def best_model(self) -> Model | None:
        """The model that the run ends with; None stands for its last."""

    def should_stop(self, model: Model, history: History) -> bool:
        """Take the present model and the history so far; return whether the run ends here."""

    def progress(self) -> dict[str, float]:
        """Return the numbers that the next decision depends on."""

    def resume(self, progress: dict[str, float], best_model: Model | None) -> None:
        """Go on from what a rule like this one had seen."""
