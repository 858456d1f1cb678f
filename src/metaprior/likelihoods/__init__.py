"""Likelihoods: p(y | f), one per file."""

from metaprior.likelihoods.base import Likelihood, OutputLikelihood
from metaprior.likelihoods.bernoulli import Bernoulli
from metaprior.likelihoods.categorical import Categorical
from metaprior.likelihoods.gaussian import Gaussian
from metaprior.likelihoods.heteroscedastic import Heteroscedastic
from metaprior.likelihoods.invert import invert
from metaprior.likelihoods.poisson import Poisson
from metaprior.likelihoods.student_t import StudentT

__all__ = [
    "Bernoulli",
    "Categorical",
    "Gaussian",
    "Heteroscedastic",
    "Likelihood",
    "OutputLikelihood",
    "Poisson",
    "StudentT",
    "invert",
]
