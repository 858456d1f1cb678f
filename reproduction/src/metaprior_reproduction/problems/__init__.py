"""Problems with a known truth, to test decisions on: functions to minimise, and mushrooms to eat or leave."""

from metaprior_reproduction.problems.functions import BRANIN, HARTMANN6, LEVY20, RIPPLES, Objective
from metaprior_reproduction.problems.mushrooms import Mushrooms

__all__ = ["BRANIN", "HARTMANN6", "LEVY20", "RIPPLES", "Mushrooms", "Objective"]
