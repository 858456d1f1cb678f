"""The recipe for a new kernel in CONTRIBUTING.md, tried as it is written."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

from kernel_zoo import A, matrix_at
from metaprior import MetaGPRegressor, metrics

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
X = np.linspace(0, 6, 24)[:, None]
Y = np.sin(2 * X[:, 0])


@pytest.fixture(scope="module")
def cauchy():
    (code,) = [part.split("```")[0] for part in PAGE.read_text().split("```python\n") if "class Cauchy" in part]
    found = {}
    exec(code, found)
    return found["Cauchy"]


def test_its_constructor_parameters_and_text_follow_from_the_declaration(cauchy):
    kernel = cauchy([0.7, 1.9], fixed=("lengthscale",), bounds={"lengthscale": (0.1, 3.0)})
    assert kernel.get_params()["lengthscale"] == [0.7, 1.9]
    assert eval(repr(kernel), {"Cauchy": cauchy}) == kernel == clone(kernel)
    assert kernel.set_params(lengthscale=2.0).get_params()["lengthscale"] == 2.0


def test_its_features_have_the_kernel_as_their_second_moment(cauchy):
    kernel, count = cauchy([0.7, 1.9]), 200_000
    normals = np.random.default_rng(0).standard_normal((kernel.num_normals(2), count))
    with jax.enable_x64(True):
        psi = np.asarray(kernel.features(jnp.asarray(A), jnp.asarray(normals)))
    products = psi[:, None] * psi[None]
    error = products.std(axis=-1) / np.sqrt(count)
    assert np.all(np.abs(products.mean(axis=-1) - matrix_at(kernel, A, A)) < 5 * error)


@pytest.mark.parametrize(
    "settings", [{}, {"output_layer": "drawn", "conditional": "pathwise"}], ids=["default", "drawn"]
)
def test_an_estimator_can_be_fitted_with_it(cauchy, settings):
    model = MetaGPRegressor((5,), input_kernel=cauchy() + 0.5, max_iter=300, random_state=0, **settings).fit(X, Y)
    assert metrics.rmse(model.predict(X), Y) < 0.5 * Y.std()
    learned = model.input_kernel_.left.get_params()["lengthscale"]
    assert learned != [1.0]
    assert model.set_params(input_kernel__left__lengthscale=learned).input_kernel.left == cauchy(learned)
