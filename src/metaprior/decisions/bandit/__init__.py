"""Contextual bandits: choose an arm for every context, learn from its reward, and lose little while learning."""

from metaprior.decisions.bandit.environment import Environment
from metaprior.decisions.bandit.loop import Bandit, PendingRounds, default_reward_model
from metaprior.decisions.bandit.policies import POLICIES

__all__ = ["POLICIES", "Bandit", "Environment", "PendingRounds", "default_reward_model"]
