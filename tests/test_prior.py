"""The prior predictive: weights and functions before any data have the covariance that the formulas say."""

import numpy as np
import pytest

from metaprior import kernels, prior

X = np.array([[-1.0, 0.5], [0.0, 0.0], [0.3, -0.2], [2.0, 1.0]])
SIZES = (2, 2)
Z = prior.draw_latents(SIZES, latent_dim=2, random_state=1)


def rbf(a: np.ndarray, b: np.ndarray, lengthscale: float) -> np.ndarray:
    return np.exp(-0.5 * np.sum((a[:, None] - b[None, :]) ** 2, axis=-1) / lengthscale**2)


def with_bias(x: np.ndarray) -> np.ndarray:
    return np.column_stack([x, np.ones(len(x))])


def linear_covariance(lengthscale: float, weight_noise: float, k_aux: np.ndarray) -> np.ndarray:
    """cov(f_j(x), f_k(x')) = sum_ii' h_i h'_i' k(z_i, z_i') k(z_j, z_k) k_aux(x, x') + noise, as [N K, N K]."""
    k_in, k_out, h = rbf(Z[:3], Z[:3], lengthscale), rbf(Z[3:], Z[3:], lengthscale), with_bias(X)
    smooth = np.einsum("ni,ic,mc,nm,jk->njmk", h, k_in, h, k_aux, k_out)
    noise = weight_noise**2 * np.einsum("ni,mi,jk->njmk", h, h, np.eye(2))
    return (smooth + noise).reshape(8, 8)


def assert_within_five_standard_errors(draws: np.ndarray, covariance: np.ndarray) -> None:
    """Compare draws [S, d] of a zero-mean Gaussian with its covariance: var(f g) = c_ff c_gg + c_fg^2."""
    error = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / len(draws))
    assert np.all(np.abs(draws.T @ draws / len(draws) - covariance) < 5 * error)
    assert np.all(np.abs(draws.mean(axis=0)) < 5 * np.sqrt(np.diag(covariance) / len(draws)))


def test_latents_are_standard_normal_one_row_a_unit_and_follow_their_seed():
    z = prior.draw_latents((3, 500, 2), latent_dim=4, random_state=0)
    assert z.shape == (3 + 1 + 500 + 1 + 2, 4)
    assert abs(z.mean()) < 5 / np.sqrt(z.size)
    assert abs(z.var() - 1) < 5 * np.sqrt(2 / z.size)
    assert np.array_equal(z, prior.draw_latents((3, 500, 2), 4, 0))
    assert not np.array_equal(z, prior.draw_latents((3, 500, 2), 4, 1))


def test_weight_covariance_is_the_product_of_both_ends_kernels():
    sizes, noise = (2, 3, 1), 0.3
    z = prior.draw_latents(sizes, 2, 0)
    # units in order: 2 inputs and their bias, 3 hidden and their bias, 1 output
    pairs = [(i, j) for i in (0, 1, 2) for j in (3, 4, 5)] + [(i, 7) for i in (3, 4, 5, 6)]
    ends_in, ends_out = z[[i for i, _ in pairs]], z[[j for _, j in pairs]]
    expected = rbf(ends_in, ends_in, 0.8) * rbf(ends_out, ends_out, 0.8) + noise**2 * np.eye(len(pairs))
    found = prior.weight_covariance(sizes, z, kernels.RBF(0.8), noise)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_weights_of_units_with_equal_latents_are_equal():
    z = np.zeros((8, 2))
    np.testing.assert_allclose(prior.weight_covariance((2, 3, 1), z), np.ones((13, 13)), rtol=1e-12)


@pytest.mark.parametrize("weight_noise", [0.0, 0.5])
def test_functions_of_a_linear_network_have_the_closed_covariance(weight_noise):
    draws = prior.draw_functions(
        SIZES,
        X,
        Z,
        weight_kernel=kernels.RBF(1.3),
        activation="identity",
        num_functions=4000,
        weight_noise=weight_noise,
    )
    assert draws.shape == (4000, 4, 2)
    expected = linear_covariance(1.3, weight_noise, np.ones((4, 4)))
    assert_within_five_standard_errors(draws.reshape(4000, 8), expected)


def test_closed_covariance_follows_from_the_weight_covariance():
    """The two public answers agree: f = (x, 1) W, W by rows."""
    k_w = prior.weight_covariance(SIZES, Z, kernels.RBF(1.3), 0.5)
    design = np.kron(with_bias(X), np.eye(2))
    np.testing.assert_allclose(design @ k_w @ design.T, linear_covariance(1.3, 0.5, np.ones((4, 4))), atol=1e-12)


def test_local_functions_of_a_linear_network_have_the_closed_covariance():
    draws = prior.draw_functions(
        SIZES,
        X,
        Z,
        weight_kernel=kernels.RBF(1.3),
        input_kernel=kernels.RBF(0.9),
        activation="identity",
        num_functions=4000,
    )
    assert_within_five_standard_errors(draws.reshape(4000, 8), linear_covariance(1.3, 0.0, rbf(X, X, 0.9)))


def test_scales_multiply_their_layers():
    plain = prior.draw_functions(SIZES, X, Z, activation="identity", num_functions=3)
    tripled = prior.draw_functions(SIZES, X, Z, activation="identity", num_functions=3, scales=[3.0])
    np.testing.assert_allclose(tripled, 3 * plain, rtol=1e-12)


def test_a_constant_input_kernel_gives_the_global_function():
    """All inputs share the weights, so the linear network is linear: f(a) - 2 f(b) + f(c) = 0 for b between a and c."""
    line = np.array([[-1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])
    draws = prior.draw_functions(
        SIZES, line, Z, input_kernel=kernels.Constant(), activation="identity", num_functions=20
    )
    bend = draws[:, 0] - 2 * draws[:, 1] + draws[:, 2]
    # rows of equal weights are told apart by the jitter, 1e-10 of their variance
    assert np.abs(bend).max() < 5 * np.sqrt(1e-10) * 20
    assert np.abs(draws).max() > 0.1


def test_weights_repeat_with_the_period():
    """f(x) = w(x) x + b(x): with w and b of period p, f(x) - 2 f(x + p) + f(x + 2 p) = 0; no other step does."""
    z = prior.draw_latents((1, 1), 2, 0)
    start = np.linspace(-1, 1, 5)

    def bend(step: float) -> np.ndarray:
        x = np.concatenate([start, start + step, start + 2 * step])
        f = prior.draw_functions(
            (1, 1), x, z, input_kernel=kernels.Periodic(1.7), activation="identity", num_functions=50
        )[..., 0]
        return f[:, :5] - 2 * f[:, 5:10] + f[:, 10:]

    assert np.abs(bend(1.7)).max() < 5 * np.sqrt(1e-10) * 20
    assert np.abs(bend(1.0)).max() > 0.1


def test_longer_lengthscales_give_larger_functions_for_the_same_latents():
    """Figure 2: the more the weights of a layer agree, the more their sum varies; in every one of the z drawn."""
    sizes, x = (1, 50, 1), np.linspace(-2, 2, 9)
    variances = []
    for lengthscale in (0.3, 1.0, 3.0):
        kernel = kernels.RBF(lengthscale)
        draws = [
            prior.draw_functions(sizes, x, prior.draw_latents(sizes, 2, seed), weight_kernel=kernel, num_functions=200)
            for seed in range(3)
        ]
        variances.append([d.var(axis=0).mean() for d in draws])
    short, middle, long = np.mean(variances, axis=1)
    assert short < middle < long
    assert np.all(np.array(variances[0]) < np.array(variances[2]))


def test_functions_follow_their_seed():
    first = prior.draw_functions(SIZES, X, Z, num_functions=2, random_state=3)
    assert np.array_equal(first, prior.draw_functions(SIZES, X, Z, num_functions=2, random_state=3))
    assert not np.array_equal(first, prior.draw_functions(SIZES, X, Z, num_functions=2, random_state=4))


def test_a_vector_of_inputs_is_one_column():
    z = prior.draw_latents((1, 3, 1))
    x = np.linspace(-1, 1, 4)
    flat, column = (prior.draw_functions((1, 3, 1), v, z, num_functions=2) for v in (x, x[:, None]))
    assert flat.shape == (2, 4, 1)
    assert np.array_equal(flat, column)


def test_kernels_may_be_named():
    named = prior.draw_functions(SIZES, X, Z, weight_kernel="rbf", input_kernel="rbf", num_functions=2)
    given = prior.draw_functions(SIZES, X, Z, weight_kernel=kernels.RBF(), input_kernel=kernels.RBF(), num_functions=2)
    assert np.array_equal(named, given)


@pytest.mark.parametrize("shape", [(4, 2), (5,), (6, 2)])
def test_latents_of_other_units_are_refused(shape):
    message = r"latents: expected one row for each of the 5 units.*network \(2, 2\); got shape .*draw_latents"
    with pytest.raises(ValueError, match=message):
        prior.draw_functions(SIZES, X, np.zeros(shape))
    with pytest.raises(ValueError, match=message):
        prior.weight_covariance(SIZES, np.zeros(shape))


def test_inputs_of_another_width_are_refused():
    with pytest.raises(ValueError, match="x: expected 2 columns, the size of the input layer; got 3"):
        prior.draw_functions(SIZES, np.zeros((4, 3)), Z)


def test_unknown_kernels_and_activations_are_refused():
    with pytest.raises(ValueError, match="weight_kernel: expected a kernel such as .*; got 'gauss'"):
        prior.draw_functions(SIZES, X, Z, weight_kernel="gauss")
    with pytest.raises(ValueError, match="input_kernel: expected a kernel such as .*; got 'gauss'"):
        prior.draw_functions(SIZES, X, Z, input_kernel="gauss")
    with pytest.raises(ValueError, match="activation: expected a function or one of .*; got 'sine'"):
        prior.draw_functions(SIZES, X, Z, activation="sine")


def test_scales_of_another_number_of_layers_are_refused():
    with pytest.raises(ValueError, match="scales: expected 1 .*; got 2"):
        prior.draw_functions(SIZES, X, Z, scales=[1.0, 1.0])
