"""What the page computes from the parameters of a fitted model is what the model says on the same normals."""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer_engine import FOLDER, answers, exporter, needs_node
from metaprior import kernels
from metaprior.estimators.fit import prepare_fit
from metaprior.output_layer.base import Batch, FunctionGP
from metaprior.predictive.integrated import FUNCTIONS_PER_DRAW
from metaprior.random import StandardNormals, draw_shared_normals
from metaprior.weight_gp import OutputRows

pytestmark = needs_node

EXPORT = exporter()
AT = np.linspace(-4, 4, 21)
#: A factor of a covariance with a jitter of 1e-6 loses six digits of float64. Shipped parameters have seven digits, and
#: the inverse of a covariance with noise of 0.1 loses up to three of them.
FACTORED, SHIPPED_DIGITS = 1e-7, 1e-4


def untrained(study):
    """Return the study's model as if it had been fitted: all that is learned is somewhere, and it knows its rows."""
    x, y = study.rows()
    prepared = prepare_fit(study.estimator(), x[:, None], y)
    problem, rng = prepared.problem, np.random.default_rng(0)
    model = prepared.method.initial_model(problem, seed=0)
    model = jax.tree.map(lambda leaf: leaf + 0.1 * rng.standard_normal(np.shape(leaf)), model)
    batch = Batch(problem.x_unit, problem.targets, np.ones(len(x)))
    attributes = {**prepared.scaling.attributes(), **problem.kind.attributes()}
    return SimpleNamespace(model_=dataclasses.replace(model, output=model.output.with_rows(batch)), **attributes)


def same_normals(model, seed):
    """Return the normals of a draw below the output layer, and those of them that the page needs."""
    rng, sizes = np.random.default_rng(seed), model.sizes()
    latents, weights = rng.standard_normal(sizes.latents), rng.standard_normal(sizes.weights)
    normals = StandardNormals(*map(jnp.asarray, (latents, weights, np.zeros(sizes.spectral), np.zeros((0, 0)))))
    units = list(model.network.weight_layers[-1].inputs)
    of_units = latents.reshape(model.network.num_units, -1)[units]
    return normals, np.concatenate([of_units.ravel(), weights])


def posterior_of(model, normals):
    gp = FunctionGP.of(model.weights.prepared().draw(normals), model.network)
    return model.output.conditioned(gp, model.likelihood)


def moments_of_page(parameters, normals, x, factor=1.0, function_normals=None):
    count = len(parameters["data"]["x"])
    kernel = parameters["kernel"]
    if function_normals is None:
        function_normals = np.zeros(count + 256 * 60 * (1 if kernel is None else 20))
    x_unit = (x - parameters["x_unit"][0]) / parameters["x_unit"][1]
    given = {"normals": normals, "at": x_unit, "factor": factor, "functionNormals": function_normals}
    return answers("fitted", model=parameters, **given)


@pytest.mark.usefixtures("double")
def test_a_model_and_its_changed_period_are_the_librarys(monkeypatch):
    # a layer whose q(u) is diagonal, and one where it is full
    study = dataclasses.replace(EXPORT.STUDIES[0], hidden=(33, 1), kernel=kernels.Periodic(period=1.7))
    fitted = untrained(study)
    shipped = EXPORT.parameters(study, fitted)
    monkeypatch.setattr(EXPORT, "DIGITS", 17)
    parameters = EXPORT.parameters(study, fitted)
    assert ["below" in layer for layer in parameters["hidden"]] == [False, True]
    normals, of_page = same_normals(fitted.model_, 0)
    own = normals_for_function(fitted.model_, normals)
    x_unit = jnp.asarray((AT[:, None] - fitted.x_offset_) / fitted.x_scale_)

    @jax.jit
    def library(model):
        posterior = posterior_of(model, normals)
        rows = posterior.gp.rows(x_unit)
        # the phases of another period are those of other inputs
        changed = posterior.moments_of(OutputRows(rows.phi, rows.eps / 1.5))
        return posterior.moments(x_unit), changed, posterior.function(jnp.asarray(own))(x_unit)[:, 0]

    moments, changed, values = library(fitted.model_)
    found = moments_of_page(parameters, of_page, AT, 1.0, own)
    same_moments(found, moments, FACTORED)
    np.testing.assert_allclose(found["values"], values, atol=FACTORED)
    same_moments(moments_of_page(shipped, of_page, AT), moments, SHIPPED_DIGITS)
    same_moments(moments_of_page(parameters, of_page, AT, 1.5), changed, FACTORED)


def normals_for_function(model, normals):
    count = jax.eval_shape(lambda model: posterior_of(model, normals), model).num_normals()
    return np.random.default_rng(1).standard_normal(count)


def same_moments(found, expected, tolerance):
    mean, variance = expected
    np.testing.assert_allclose(found["mean"], mean[:, 0], atol=tolerance)
    np.testing.assert_allclose(found["variance"], variance[:, 0, 0], atol=tolerance)


@pytest.mark.slow
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", ["sinusoid-periodic", "steps-none"])
def test_a_shipped_model_is_the_one_that_the_script_fits(name):
    study = next(study for study in EXPORT.STUDIES if study.name == name)
    shipped = next(model for model in EXPORT.read(FOLDER / "models.js") if model["name"] == name)
    model = study.fitted()
    anew = EXPORT.parameters(study, model)
    x = np.linspace(min(shipped["data"]["x"]), max(shipped["data"]["x"]), 50)
    draws = normals_of_predictions(model)
    mean, std = model.predict(x[:, None], return_std=True)
    page_mean, page_std = mixture(anew, draws, x)
    np.testing.assert_allclose(page_mean, mean, atol=SHIPPED_DIGITS * np.max(std))
    np.testing.assert_allclose(page_std, std, rtol=SHIPPED_DIGITS)
    # another machine rounds otherwise and ends elsewhere: a tenth of the predictive standard deviation
    page_mean, page_std = mixture(shipped, draws, x)
    assert np.max(np.abs(page_mean - mean) / std) < 0.1
    assert np.max(np.abs(np.log(page_std / std))) < 0.1


def normals_of_predictions(model):
    """Return the normals of the draws that the model's predictions mix: those that the page needs."""
    own, key = model.model_, jax.random.wrap_key_data(jnp.asarray(model.draw_key_), impl="threefry2x32")
    normals = draw_shared_normals(key, own.sizes(), model.n_predict_draws // FUNCTIONS_PER_DRAW, jnp.float64)
    units = np.array(own.network.weight_layers[-1].inputs)
    of_units = normals.latents.reshape(len(normals.latents), own.network.num_units, -1)[:, units]
    return np.concatenate([of_units.reshape(len(of_units), -1), normals.weights], axis=1)


def mixture(parameters, draws, x):
    """Return the page's mean and standard deviation of y, in the units of the data."""
    x_unit = (x - parameters["x_unit"][0]) / parameters["x_unit"][1]
    found, (offset, scale) = answers("mixture", model=parameters, draws=draws, at=x_unit), parameters["y_unit"]
    return offset + scale * found["mean"], scale * np.sqrt(found["variance"])
