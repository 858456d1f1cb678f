"""The explorer's scripts give the library's numbers on the same normals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer_engine import answers, exporter, needs_node
from metaprior import kernels
from metaprior.likelihoods import Gaussian
from metaprior.networks import Dense, activation_named
from metaprior.numerics import jittered_cholesky
from metaprior.output_layer import Exact
from metaprior.output_layer.base import NUM_FEATURES, Batch, FunctionGP
from metaprior.weight_gp import OutputPrior
from metaprior.weight_gp.base import input_scales
from metaprior.weights.point import ExplicitDraw

pytestmark = [needs_node, pytest.mark.usefixtures("double")]

#: Products and sums of float64; a factor of a covariance with a jitter of 1e-6 loses six digits more.
EXACT, FACTORED = 1e-10, 1e-7
KERNELS = {
    "rbf": kernels.RBF(0.7),
    "matern12": kernels.Matern12(1.3),
    "matern32": kernels.Matern32(0.8),
    "matern52": kernels.Matern52(0.8),
    "periodic": kernels.Periodic(period=1.1, lengthscale=0.9),
    "linear+rbf": kernels.Linear(0.4) + kernels.RBF(0.5),
    "linear*periodic": kernels.Linear(0.4) * kernels.Periodic(period=0.6, lengthscale=1.2),
    "scaled+constant": 2.5 * kernels.Matern32(0.4) + 0.3,
}
POINTS = {"x": [-1.3, -0.9, 0.1, 0.8, 1.7, 2.6], "y": [0.3, -0.7, 1.1, 0.9, -1.4, 0.2]}
NOTHING = {"x": [], "y": []}


class Below(ExplicitDraw):
    """Given weights below an output layer whose input kernel sees the input itself."""

    def aux_inputs(self, x):
        return x


def normals_of(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def close(found, expected, tolerance):
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected.ravel(), rtol=tolerance, atol=tolerance * np.max(np.abs(expected)))


# --- kernels --------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_covariances_and_random_features_are_the_librarys(name):
    kernel, count = KERNELS[name].bound_to(1), 5
    a, b, normals = normals_of(0, 6, 1), normals_of(1, 4, 1), normals_of(2, kernel.num_normals(1), count)
    spec = exporter().kernel_of(kernel)
    found = answers("kernel", kernel=spec, a=a.ravel(), b=b.ravel(), normals=normals, count=count)
    close(found["gram"], kernel(a, b), EXACT)
    close(found["features"], kernel.features(a, normals), EXACT)
    assert found["numNormals"] == len(normals)


# --- the prior, and points that condition it ------------------------------------------

SIZES = {"one hidden layer": (1, 9, 1), "two hidden layers": (1, 7, 8, 1)}


def spec_of(sizes):
    scales = [[n**-0.5, 1.0] for n in sizes[:-1]]
    return {
        "sizes": sizes,
        "latentDim": 2,
        "lengthscale": [0.8, 1.1],
        "weightNoise": 0.2,
        "scales": scales,
        "jitter": 1e-6,
    }


def drawn_below(spec, normals):
    """Return the hidden weights and the last hidden units' latents, by the library's kernels and factors."""
    kernel = kernels.RBF(np.array(spec["lengthscale"])).bound_to(2)
    layers = Dense(spec["sizes"]).weight_layers
    num_units = Dense(spec["sizes"]).num_units
    z, rest = normals[: 2 * num_units].reshape(-1, 2), normals[2 * num_units :]
    weights = []
    for layer, scale in zip(layers[:-1], spec["scales"], strict=False):
        ends = z[np.array(layer.inputs)], z[np.array(layer.outputs)]
        root_in, root_out = (jittered_cholesky(kernel(e, e), jnp.asarray(spec["jitter"]))[0] for e in ends)
        size, shape = layer.num_weights, (len(ends[0]), len(ends[1]))
        grid, noise = rest[:size].reshape(shape), rest[size : 2 * size].reshape(shape)
        f = root_in @ grid @ root_out.T + spec["weightNoise"] * noise
        weights.append(input_scales(np.array(scale), shape[0])[:, None] * f)
        rest = rest[2 * size :]
    assert len(rest) == 0
    return weights, z[np.array(layers[-1].inputs)]


def process_of(spec, output, kernel, weights, z):
    gram = kernels.RBF(np.array(output["lengthscale"])).bound_to(2)(z, z)
    scale = input_scales(np.array(output["scale"]), len(z))
    std_in = jnp.full(len(z), output["weightNoise"])
    prior = OutputPrior(gram, jnp.ones((1, 1)), std_in, None, scale, kernel, None, output["jitter"])
    return FunctionGP(Below(weights), Dense(spec["sizes"], output["activation"]), prior)


def setting(sizes, kernel):
    spec = spec_of(sizes)
    own = None if kernel is None else kernel.bound_to(1)
    output = {
        "activation": "tanh",
        "lengthscale": [0.9, 1.2],
        "weightNoise": 0.1,
        "noise": 0.15,
        "scale": [sizes[-2] ** -0.5, 0.7],
        "kernel": None if own is None else exporter().kernel_of(own),
        "jitter": 1e-6,
    }
    count = 2 * Dense(sizes).num_units + 2 * sum(w.num_weights for w in Dense(sizes).weight_layers[:-1])
    normals = normals_of(3, count)
    return spec, output, normals, lambda normals: process_of(spec, output, own, *drawn_below(spec, normals))


def library_on(build, output, own, own_of_points):
    """Return what the library says of the prior and of the posterior at `AT`, as a function of the normals below."""
    x, y, at = np.array(POINTS["x"])[:, None], np.array(POINTS["y"])[:, None], jnp.asarray(AT[:, None])
    batch, likelihood = Batch(x, y, np.ones(len(x))), Gaussian(jnp.log(jnp.array([output["noise"]])))

    def told(normals):
        gp = build(normals)
        rows, posterior = gp.rows(at), Exact().with_rows(batch).conditioned(gp, likelihood)
        mean, variance = posterior.moments(at)
        prior = {
            "weights": gp.draw.values[-1],
            "variance": gp.prior.own_covariance(rows),
            "values": gp.prior.function(own, NUM_FEATURES, 1)(rows),
        }
        after = {
            "mean": mean,
            "variance": variance,
            "logEvidence": Exact().bound(gp, likelihood, batch, jnp.zeros((len(x), 0)))[0],
            "values": posterior.function(jnp.concatenate([own_of_points, own]))(at),
        }
        return prior, after

    return jax.jit(told)


AT = np.linspace(-3, 3, 15)
PAIRS = [
    ("one hidden layer", None),
    ("one hidden layer", "periodic"),
    ("two hidden layers", "linear+rbf"),
]


@pytest.mark.parametrize(("layers", "name"), PAIRS)
def test_the_prior_and_what_points_make_of_it_are_the_librarys(layers, name):
    spec, output, normals, build = setting(SIZES[layers], KERNELS.get(name))
    prior = jax.eval_shape(build, normals).prior
    own, own_of_points = normals_of(5, prior.num_normals(NUM_FEATURES, 1)), normals_of(4, len(POINTS["x"]))
    before, after = library_on(build, output, jnp.asarray(own), jnp.asarray(own_of_points))(normals)
    given = {"spec": spec, "output": output, "normals": normals, "at": AT}
    found = answers("prior", **given, points=NOTHING, functionNormals=own)
    assert (found["count"], found["functionCount"]) == (len(normals), len(own))
    assert not found["mean"].any()
    for part, expected in before.items():
        close(found[part], expected, FACTORED)
    found = answers("prior", **given, points=POINTS, functionNormals=np.concatenate([own_of_points, own]))
    assert found["functionCount"] == len(own_of_points) + len(own)
    for part, expected in after.items():
        close(found[part], expected, FACTORED)


@pytest.mark.parametrize("name", ["tanh", "relu", "logistic", "silu", "softplus", "identity"])
def test_activations_are_the_librarys(name):
    close(answers("activation", name=name, at=AT)["values"], activation_named(name)(jnp.asarray(AT)), EXACT)


def test_draws_are_mixed_by_their_evidence():
    mean, variance, logs = normals_of(0, 3, 4), normals_of(1, 3, 4) ** 2, np.array([-700.0, -701.0, -699.5])
    parts = [{"mean": m, "variance": v} for m, v in zip(mean, variance, strict=True)]
    found = answers("mixed", parts=parts, logs=logs, noise=0.3)
    weights = np.exp(logs + 700) / np.sum(np.exp(logs + 700))
    close(found["weights"], weights, EXACT)
    close(found["mean"], weights @ mean, EXACT)
    close(found["variance"], weights @ (variance + mean**2) - (weights @ mean) ** 2 + 0.09, EXACT)


def test_normals_of_a_seed_are_standard_and_those_of_another_seed_differ():
    count = 20_000
    first, again, other = (answers("normals", seed=seed, count=count)["normals"] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    for values in (first, other):
        # four standard errors of the mean, of the variance and of the fourth moment
        assert abs(np.mean(values)) < 4 / np.sqrt(count)
        assert abs(np.var(values) - 1) < 4 * np.sqrt(2 / count)
        assert abs(np.mean(values**4) - 3) < 4 * np.sqrt(96 / count)
    assert abs(np.corrcoef(first, other)[0, 1]) < 4 / np.sqrt(count)
