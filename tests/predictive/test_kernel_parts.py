"""The additive parts of a function: against the joint Gaussian of all parts at all rows, conditioned as a whole."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from built_models import KEY, NOISE, NUM_BELOW, X_NEW, X, Y, built
from dense import kernel_matrix
from metaprior.compilation import in_float64
from metaprior.kernels import RBF, Constant, Linear, Periodic, Product, Scaled, Sum
from metaprior.kernels.compose import ActiveDims, additive_parts
from metaprior.predictive.components import part_moments
from metaprior.predictive.integrated import posterior_of

SUM = RBF([1.2, 0.9]) + Periodic([2.5, 2.0], [1.1, 1.3])
CASES = {
    "a GP of its own": {"weight_gp": "per_layer", "local_layers": (-1,)},
    "noise that follows the kernel": {"weight_gp": "per_layer", "local_layers": (-1,), "local_noise": True},
    "the GP of the layers below": {},
}
ROWS = np.concatenate([X, X_NEW])
OLD, NEW = slice(0, len(X)), slice(len(X), len(ROWS))


def _dense(gp):
    """Mean and covariance of all parts at all rows, [parts, K, N] flat, before y is seen: u is known where it is."""
    prior, rows = gp.prior, gp.rows(ROWS)
    phi, eps = np.asarray(rows.phi), np.asarray(rows.eps)
    signal, white = phi @ np.asarray(prior.gram_in) @ phi.T, phi @ np.diag(np.asarray(prior.std_in) ** 2) @ phi.T
    levels = [kernel_matrix(kernel, eps, eps) for kernel in (prior.kernel.left, prior.kernel.right)]
    gram_out = np.asarray(prior.gram_out)
    own_noise = np.eye(2) if prior.std_out is None else np.diag(np.asarray(prior.std_out) ** 2)
    parts = [np.kron(gram_out, signal * level) for level in levels]
    if prior.local_noise:
        parts = [part + np.kron(own_noise, white * level) for part, level in zip(parts, levels, strict=True)]
    else:
        parts.append(np.kron(own_noise, white))
    size, total = len(parts[0]), len(parts) * len(parts[0])
    mean, covariance = np.zeros(total), np.zeros((total, total))
    for number, part in enumerate(parts):
        place = slice(number * size, (number + 1) * size)
        covariance[place, place] = part
    if prior.known is None:
        return mean, covariance, len(parts)
    known = prior.known
    cross = np.zeros((total, len(known.alpha)))
    for number, kernel in enumerate((prior.kernel.left, prior.kernel.right)):
        inner = phi @ np.asarray(known.cross_in) * kernel_matrix(kernel, eps, np.asarray(known.code_aux))
        columns = np.asarray(known.cross_out)[:, None, :] * inner
        cross[number * size : (number + 1) * size] = columns.reshape(size, -1)
    root = np.asarray(known.inverse_root)
    return cross @ np.asarray(known.alpha), covariance - cross @ root.T @ root @ cross.T, len(parts)


def _conditioned(gp):
    """Mean [parts, N, K] and variance of every part around its average over the old rows, given y, and the average."""
    mean, covariance, num_parts = _dense(gp)
    size = len(mean) // num_parts
    add = np.tile(np.eye(size), num_parts)  # all parts together
    seen = add.reshape(2, len(ROWS), -1)[:, OLD].reshape(-1, len(mean))
    noisy = seen @ covariance @ seen.T + np.diag(np.repeat(NOISE**2, len(X)))
    gain = covariance @ seen.T @ np.linalg.inv(noisy)
    mean, covariance = mean + gain @ (Y.T.ravel() - seen @ mean), covariance - gain @ seen @ covariance
    average = np.kron(np.eye(2 * num_parts), np.tile(np.arange(len(ROWS)) < len(X), (len(ROWS), 1)) / len(X))
    centring = np.eye(len(mean)) - average
    variance = np.diag(centring @ covariance @ centring.T)
    shaped = lambda values: np.swapaxes(values.reshape(num_parts, 2, len(ROWS)), 1, 2)  # noqa: E731
    return shaped(centring @ mean), shaped(variance), np.sum(shaped(average @ mean), axis=0)[0]


@pytest.mark.parametrize("case", CASES)
def test_parts_are_those_of_the_joint_gaussian_of_all_parts(case):
    model = built(input_kernel=SUM, **CASES[case])
    found = part_moments(model.draws(ROWS), X)
    with in_float64():
        posterior = posterior_of(model.model, KEY, NUM_BELOW)[0]
        draws = [_conditioned(posterior.one(number).gp) for number in range(NUM_BELOW)]
    means, variances, averages = (np.stack(column) for column in zip(*draws, strict=True))
    assert np.std(found.mean, axis=1).min() > 1e-2 or case == "the GP of the layers below"
    assert_allclose(found.mean, means.mean(axis=0), rtol=1e-6, atol=1e-7)
    assert_allclose(found.variance, variances.mean(axis=0) + means.var(axis=0), rtol=1e-6, atol=1e-7)
    assert_allclose(found.average, averages.mean(axis=0), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("case", CASES)
def test_parts_and_their_average_add_up_to_the_mean_of_the_whole(case):
    model = built(input_kernel=SUM, **CASES[case])
    found = part_moments(model.draws(X_NEW), X)
    whole = np.mean(next(iter(model.draws(X_NEW).gaussians())).mean, axis=0)
    assert_allclose(np.sum(found.mean, axis=0) + found.average, whole, rtol=1e-9, atol=1e-9)


def test_sums_are_taken_apart_through_products_scalings_and_columns():
    a, b, c = RBF(1.0), Linear(2.0), Constant(0.5)
    assert additive_parts(Sum(Sum(a, b), c)) == [a, b, c]
    assert additive_parts(Product(Sum(a, b), c)) == [Product(a, c), Product(b, c)]
    assert additive_parts(Scaled(Sum(a, b), 3.0)) == [Scaled(a, 3.0), Scaled(b, 3.0)]
    assert additive_parts(ActiveDims(Sum(a, b), (1,))) == [ActiveDims(a, (1,)), ActiveDims(b, (1,))]
    assert additive_parts(Product(a, b)) == [Product(a, b)]


def test_parts_of_a_kernel_add_up_to_it():
    kernel = (2.0 * (RBF(1.1) + Periodic(2.0, 0.9)) + Constant(0.3)) * RBF(0.7)
    with in_float64():
        parts = [np.asarray(part(X, X_NEW)) for part in additive_parts(kernel)]
        whole = np.asarray(kernel(X, X_NEW))
    assert len(parts) == 3
    assert_allclose(sum(parts), whole, rtol=1e-12)
