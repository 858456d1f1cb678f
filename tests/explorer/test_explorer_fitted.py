"""What the page computes from the parameters of a fitted model is what the model says on the same normals."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from explorer_engine import FOLDER, answers, exporter, needs_node
from metaprior import MetaGPRegressor, kernels
from metaprior.compilation import as_float64
from metaprior.output_layer.base import FunctionGP
from metaprior.random import StandardNormals
from metaprior.weight_gp import OutputRows

pytestmark = needs_node

EXPORT = exporter()
AT = np.linspace(-4, 4, 21)
#: A factor of a covariance with a jitter of 1e-6 loses six digits of float64. Shipped parameters have seven digits, and
#: the inverse of a covariance with noise of 0.1 loses up to three of them.
FACTORED, SHIPPED_DIGITS = 1e-7, 1e-4


def quick(study):
    """Return the study's model after a few steps, and what the page gets of it."""
    x, y = study.rows()
    model = MetaGPRegressor(
        input_kernel=study.kernel,
        hidden_layer_sizes=study.hidden,
        activation=study.activation,
        uncertain_hypers=False,
        max_iter=5,
        random_state=0,
    ).fit(x[:, None], y)
    return model, EXPORT.parameters(study, model)


def same_draw(model, normals_seed):
    """Return the library's posterior of one draw, its normals, and those of them that the page needs."""
    own, rng = as_float64(model.model_), np.random.default_rng(normals_seed)
    sizes = own.sizes()
    latents, weights = rng.standard_normal(sizes.latents), rng.standard_normal(sizes.weights)
    normals = StandardNormals(*map(jnp.asarray, (latents, weights, np.zeros(sizes.spectral), np.zeros((0, 0)))))
    posterior = own.output.conditioned(FunctionGP.of(own.weights.prepared().draw(normals), own.network), own.likelihood)
    units = list(own.network.weight_layers[-1].inputs)
    of_units = latents.reshape(own.network.num_units, -1)[units]
    return posterior, np.concatenate([of_units.ravel(), weights])


def moments_of_page(parameters, normals, x, factor=1.0, function_normals=None):
    count = len(parameters["data"]["x"])
    kernel = parameters["kernel"]
    if function_normals is None:
        function_normals = np.zeros(count + 256 * 60 * (1 if kernel is None else 20))
    x_unit = (x - parameters["x_unit"][0]) / parameters["x_unit"][1]
    given = {"normals": normals, "at": x_unit, "factor": factor, "functionNormals": function_normals}
    return answers("fitted", model=parameters, **given)


@pytest.mark.usefixtures("double")
def test_a_fitted_model_and_its_changed_period_are_the_librarys(monkeypatch):
    study = dataclasses.replace(EXPORT.STUDIES[0], hidden=(6,), kernel=kernels.Periodic(period=1.7))
    model, shipped = quick(study)
    monkeypatch.setattr(EXPORT, "DIGITS", 17)
    parameters = EXPORT.parameters(study, model)
    assert "below" in parameters["hidden"][0]
    posterior, normals = same_draw(model, 0)
    count = len(parameters["data"]["x"])
    # the library pads its rows; the page has none of that
    own = np.random.default_rng(1).standard_normal(posterior.num_normals())
    of_page = np.concatenate([own[:count], own[posterior.num_values :]])
    x_unit = jnp.asarray((AT[:, None] - model.x_offset_) / model.x_scale_)
    found = moments_of_page(parameters, normals, AT, 1.0, of_page)
    same_moments(found, posterior.moments(x_unit), FACTORED)
    np.testing.assert_allclose(found["values"], posterior.function(jnp.asarray(own))(x_unit)[:, 0], atol=FACTORED)
    same_moments(moments_of_page(shipped, normals, AT), posterior.moments(x_unit), SHIPPED_DIGITS)
    # the phases of another period are those of other inputs
    rows = posterior.gp.rows(x_unit)
    changed = posterior.moments_of(OutputRows(rows.phi, rows.eps / 1.5))
    same_moments(moments_of_page(parameters, normals, AT, 1.5), changed, FACTORED)


def same_moments(found, expected, tolerance):
    mean, variance = expected
    np.testing.assert_allclose(found["mean"], mean[:, 0], atol=tolerance)
    np.testing.assert_allclose(found["variance"], variance[:, 0, 0], atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sinusoid-periodic", "steps-none"])
def test_a_shipped_model_is_the_one_that_the_script_fits(name):
    study = next(study for study in EXPORT.STUDIES if study.name == name)
    shipped = next(model for model in EXPORT.read(FOLDER / "models.js") if model["name"] == name)
    model = study.fitted()
    anew = EXPORT.parameters(study, model)
    x = np.linspace(min(shipped["data"]["x"]), max(shipped["data"]["x"]), 50)
    rng, size = np.random.default_rng(0), len(anew["latents"]["mean"]) + sum(len(h["mean"]) for h in anew["hidden"])
    draws = rng.standard_normal((16, size))
    pages = {
        key: mixture([moments_of_page(own, n, x) for n in draws], own) for key, own in (("s", shipped), ("a", anew))
    }
    # another machine rounds otherwise and ends elsewhere: a tenth of the predictive standard deviation
    mean, std = model.predict(x[:, None], return_std=True)
    for page_mean, page_std in pages.values():
        assert np.max(np.abs(page_mean - mean) / std) < 0.2
        assert np.max(np.abs(np.log(page_std / std))) < 0.2
    assert np.max(np.abs(pages["s"][0] - pages["a"][0]) / std) < 0.1


def mixture(parts, parameters):
    """Return the mean and the standard deviation of y, in the units of the data."""
    means, variances = (np.stack([part[name] for part in parts]) for name in ("mean", "variance"))
    spread = np.sqrt(np.mean(variances, axis=0) + np.var(means, axis=0) + parameters["noise"] ** 2)
    offset, scale = parameters["y_unit"]
    return offset + scale * np.mean(means, axis=0), scale * spread
