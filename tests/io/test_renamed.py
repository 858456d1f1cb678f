"""Old names of parameters are accepted for one release, and are told."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import metaprior
from metaprior import MetaGPRegressor, baselines
from metaprior.io.renamed import PARAMETERS, present_fields
from metaprior.kernels import RBF, Constant, Linear, Periodic


@pytest.mark.parametrize(
    ("cls", "old", "given", "new", "kept"),
    [
        (MetaGPRegressor, "num_inducing", 7, "n_inducing", 7),
        (MetaGPRegressor, "mapping", "layer", "weight_gp", "per_layer"),
        (MetaGPRegressor, "input_units", "together", "input_scaling", "joint"),
        (baselines.EnsembleClassifier, "num_members", 3, "n_members", 3),
        (baselines.HMCRegressor, "num_chains", 1, "n_chains", 1),
    ],
)
def test_an_old_name_is_accepted_with_a_warning_by_the_constructor_and_by_set_params(cls, old, given, new, kept):
    with pytest.warns(DeprecationWarning, match=f"{old} is now called {new}"):
        made = cls(**{old: given})
    with pytest.warns(DeprecationWarning, match=f"{old} is now called {new}"):
        changed = cls().set_params(**{old: given})
    assert made.get_params()[new] == changed.get_params()[new] == kept
    assert old not in made.get_params()


def test_present_names_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MetaGPRegressor(n_inducing=7, weight_gp="shared", input_kernel=None).set_params(n_inducing=8)
    assert (model.n_inducing, model.weight_gp) == (8, "shared")


def test_a_name_that_never_was_is_an_error():
    with pytest.raises(TypeError, match="num_outducing"):
        MetaGPRegressor(num_outducing=3, input_kernel=None)


def test_no_old_name_is_a_present_name():
    assert not PARAMETERS.keys() & {renamed.name for renamed in PARAMETERS.values()}


@pytest.mark.parametrize(
    ("kernel", "given"),
    [
        (RBF(2.0), {"given": True}),
        (RBF(), {"given": False}),
        (Linear(), {"given": False}),
        (Periodic(2.0), {}),
        (Constant(2.0), {}),
    ],
)
def test_kernel_of_an_earlier_file_knows_what_was_not_given(kernel, given):
    now = {name: value for name, value in vars(kernel).items() if name != "unset"}
    assert present_fields(type(kernel).__name__, {**now, **given}) == {**now, "unset": kernel.unset}


EARLIER = Path(__file__).parents[1] / "files" / "earlier"
MEANS = json.loads((EARLIER / "means.json").read_text())


@pytest.mark.parametrize("name", MEANS["means"])
def test_a_file_with_the_names_of_an_earlier_version_predicts_what_it_did(name):
    """Written before modules, classes, parts and parameters were renamed; the numbers are what it predicted then."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = metaprior.load(EARLIER / f"{name}.metaprior")
    task = {"task": 3} if name == "mt" else {}
    predict = model.predict_proba if name == "cls" else model.predict
    np.testing.assert_allclose(predict(MEANS["inputs"], **task), MEANS["means"][name], rtol=1e-6)
