"""Every shape in an annotation is checked while the tests run.

The estimators are left out: scikit-learn wants them to take any value and complain in `fit`, in their own words.
"""

import jax
import pytest
from jaxtyping import install_import_hook

CHECKED = [
    "kernels",
    "latents",
    "inputs",
    "networks",
    "random",
    "numerics",
    "weight_gp",
    "weights",
    "likelihoods",
    "model",
]
CHECKED += ["inference", "prior", "output_layer"]
CHECKED += [f"predictive.{name}" for name in ("components", "draws", "reductions", "mixture", "integrated")]

with install_import_hook([f"metaprior.{name}" for name in CHECKED], "beartype.beartype"):
    import metaprior.estimators
    import metaprior.prior  # noqa: F401

from metaprior.compilation import drop_programs_when_many  # noqa: E402  (after the hook)


@pytest.fixture(autouse=True)
def no_more_programs_than_the_machine_allows():
    """A process of a thousand tests compiles more programs than Linux lets it map."""
    drop_programs_when_many(0.4)


@pytest.fixture
def double():
    """Numbers are float64 in the test."""
    with jax.enable_x64(True):
        yield
