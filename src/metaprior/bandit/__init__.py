"""Contextual bandits: choose an arm for every context, be told its reward, and lose little while learning."""

from metaprior.bandit.loop import Bandit, default_reward_model
from metaprior.bandit.policies import POLICIES
from metaprior.bandit.simulation import Problem, simulate

__all__ = ["POLICIES", "Bandit", "Problem", "default_reward_model", "simulate"]
