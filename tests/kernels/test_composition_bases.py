"""Base kernels in NumPy against those of the library, and their gradients against finite differences."""

import numpy as np
import pytest

from kernel_zoo import matrix_at
from metaprior.kernels.composition.bases import FORMULAS, Base, Rows
from metaprior.kernels.composition.expression import assembled, kernel_of_term

X = np.random.default_rng(0).standard_normal((7, 2))
SCALE = np.array([3.0, 0.2])
SLOPE = np.random.default_rng(1).standard_normal((7, 7))
BASES = [Base(name, (1,)) for name in FORMULAS] + [Base("rbf", (0, 1))]
IDS = [f"{base.name}_{len(base.columns)}" for base in BASES]


def theta_of(base: Base) -> np.ndarray:
    return np.random.default_rng(2).normal(-0.1, 0.3, base.num_hypers)


@pytest.mark.parametrize("base", BASES, ids=IDS)
def test_matrix_is_that_of_the_kernel_in_the_units_of_the_data(base):
    theta = theta_of(base)
    data, columns = X * SCALE, list(base.columns)
    kernel = base.kernel(theta, SCALE)
    ours = base.evaluated(Rows(X), theta)[0]
    np.testing.assert_allclose(ours, matrix_at(kernel, data[:, columns], data[:, columns]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("base", BASES, ids=IDS)
def test_pulled_back_slope_is_the_gradient_by_finite_differences(base):
    theta, step = theta_of(base), 1e-5

    def total(theta):
        return np.sum(SLOPE * base.evaluated(Rows(X), theta)[0])

    moves = step * np.eye(len(theta))
    differences = [(total(theta + move) - total(theta - move)) / (2 * step) for move in moves]
    np.testing.assert_allclose(base.evaluated(Rows(X), theta)[1](SLOPE), differences, rtol=1e-7, atol=1e-8)


def sum_of_products():
    values = {base: theta_of(base) for base in BASES}
    return assembled(
        [
            (np.log([0.7]), [(BASES[5], values[BASES[5]]), (BASES[0], values[BASES[0]]), (BASES[7], values[BASES[7]])]),
            (np.log([2.0]), [(BASES[6], values[BASES[6]])]),
            (np.log([0.1]), [(BASES[8], values[BASES[8]])]),
        ]
    )


def test_sum_of_products_is_that_of_the_kernels_and_its_gradient_that_of_differences():
    composition, theta = sum_of_products()
    rows, step = Rows(X), 1e-5
    k, pull = composition.evaluated(rows, theta)
    pairs = zip(composition.terms, composition.split(theta), strict=True)
    slow = sum(matrix_at(kernel_of_term(term, own, SCALE), X * SCALE, X * SCALE) for term, own in pairs)
    np.testing.assert_allclose(k, slow, rtol=1e-10, atol=1e-12)

    def total(theta):
        return np.sum(SLOPE * composition.evaluated(rows, theta)[0])

    moves = step * np.eye(len(theta))
    differences = [(total(theta + move) - total(theta - move)) / (2 * step) for move in moves]
    np.testing.assert_allclose(pull(SLOPE), differences, rtol=1e-6, atol=1e-8)


def test_compositions_are_equal_in_any_order_and_moves_keep_the_other_hyper_parameters():
    composition, theta = sum_of_products()
    parts = composition.split(theta)
    for move in composition.moves(BASES[:7], [BASES[7]]):
        own = np.full(move.base.num_hypers, 0.123)
        larger, moved = composition.moved(theta, move, own, -1.5)
        assert larger.num_bases == composition.num_bases + 1
        assert len(moved) == larger.num_hypers == len(theta) + len(own) + (move.place is None)
        kept = np.sort(np.concatenate([*parts, own, [-1.5] if move.place is None else []]))
        np.testing.assert_array_equal(np.sort(moved), kept)


def test_a_line_more_or_a_second_lengthscale_in_a_product_are_no_moves():
    rbf, line, period, growth = BASES[0], BASES[6], BASES[5], BASES[7]
    composition, _ = assembled([(np.zeros(1), [(line, np.zeros(0))]), (np.zeros(1), [(rbf, np.zeros(1))])])
    moves = composition.moves([rbf, line, period], [growth])
    rbf_place = composition.terms.index((rbf,))
    assert (None, line) not in moves
    assert (None, rbf) in moves
    assert (rbf_place, rbf) not in moves
    assert (rbf_place, growth) in moves
    assert (1 - rbf_place, growth) not in moves
