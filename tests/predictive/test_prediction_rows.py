"""A row's prediction is its own: not its neighbours', not its place's, not its chunk's."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from metaprior import kernels
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.predictive import draws as prediction
from metaprior.predictive import reductions
from metaprior.predictive.draws import CHUNK_ROWS, NetworkDraws
from metaprior.predictive.mixture import DrawsPredictive
from metaprior.weight_gp import conditional_named
from metaprior.weights import MetaGPSpec, initial_metagp

NUM_DRAWS = 4
KEY = np.array([3, 0], np.uint32)
X = np.random.default_rng(1).standard_normal((CHUNK_ROWS + 40, 2))
Y = np.random.default_rng(2).standard_normal(len(X))
VARIANTS = [(name, local) for name in ("pathwise", "diag", "fitc", "full") for local in (False, True)]


def _model(conditional, local):
    rng = np.random.default_rng(0)
    network = Dense((2, 3, 1))
    spec = MetaGPSpec(
        n_inducing=5,
        input_kernel=kernels.RBF() if local else None,
        conditional=conditional_named(conditional),
        jitter=1e-6,
    )
    weights = initial_metagp(spec, network.weight_layers, rng.standard_normal((20, 2)), rng)
    return Model(weights, network, Gaussian(np.log([0.4])))


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda v: f"{v[0]}-{'local' if v[1] else 'global'}")
def model(request):
    return _model(*request.param)


def _at(model, x, key=KEY, **kwargs):
    return DrawsPredictive(NetworkDraws(model, key, NUM_DRAWS, x, **kwargs), np.ones(1), np.full(1, 2.0), flat=True)


@pytest.fixture(scope="module")
def whole(model):
    """Every answer at all rows, rows last: more than one chunk of them."""
    return _answers(model, X, Y)


def _answers(model, x, y):
    predictive = _at(model, x)
    return {
        "draws": predictive.draws(),
        "mean": predictive.mean,
        "variance": predictive.variance,
        "quantile": predictive.quantile(0.9),
        "log_prob": predictive.log_prob(y),
        "cdf": predictive.cdf(y),
        "crps": predictive.crps(y),
        "entropy": predictive.entropy,
    }


def _assert_rows(found, whole, rows):
    for name, answer in found.items():
        assert_allclose(answer, whole[name][..., rows], rtol=1e-9, err_msg=name)


def test_draws_differ_from_one_another_and_from_row_to_row(whole):
    assert np.all(np.std(whole["draws"], axis=0) > 1e-3)
    assert np.all(np.std(whole["draws"], axis=1) > 1e-3)


@pytest.mark.parametrize("row", [0, CHUNK_ROWS - 1, CHUNK_ROWS])
def test_row_predicted_alone_is_the_row_among_others(model, whole, row):
    _assert_rows(_answers(model, X[row : row + 1], Y[row : row + 1]), whole, slice(row, row + 1))


def test_permuted_rows_have_permuted_predictions(model, whole):
    order = np.random.default_rng(3).permutation(len(X))
    _assert_rows(_answers(model, X[order], Y[order]), whole, order)


def test_rows_cut_into_other_chunks_are_predicted_the_same(model, whole):
    rows = slice(17, 17 + CHUNK_ROWS + 5)
    _assert_rows(_answers(model, X[rows], Y[rows]), whole, rows)


def test_same_key_gives_the_same_bits_and_another_key_others(model, whole):
    assert_array_equal(_at(model, X).draws(), whole["draws"])
    assert not np.any(_at(model, X, key=np.array([4, 0], np.uint32)).draws() == whole["draws"])


def test_sign_of_a_zero_changes_nothing(model):
    zero = np.array([[0.0, 0.3]])
    assert_array_equal(_at(model, zero).draws(), _at(model, zero * [-1, 1]).draws())


def test_repeated_row_is_predicted_the_same(model):
    draws = _at(model, np.repeat(X[:1], 3, axis=0)).draws()
    assert_allclose(draws, np.repeat(draws[:, :1], 3, axis=1), rtol=1e-9)


@pytest.mark.parametrize("num_rows", [1, CHUNK_ROWS, CHUNK_ROWS + 1, 3 * CHUNK_ROWS + 7])
def test_no_more_rows_than_a_chunk_are_ever_drawn_or_reduced_at_once(monkeypatch, num_rows):
    """One compiled program serves every number of rows."""
    drawn, reduced = [], []

    def functions(model, key, x, num_draws, rowwise, stacked):
        drawn.append(x.shape)
        return np.zeros((num_draws, len(x), 1))

    def moments(likelihood, f):
        reduced.append(f.shape)
        return tuple(np.zeros((3, f.shape[1], 1)))

    monkeypatch.setattr(prediction, "_functions", functions)
    monkeypatch.setattr(reductions, "moments", moments)
    mean = _at(_model("pathwise", False), np.zeros((num_rows, 2))).mean
    assert mean.shape == (num_rows,)
    num_chunks = -(-num_rows // CHUNK_ROWS)
    assert drawn == [(CHUNK_ROWS, 2)] * num_chunks
    assert reduced == [(NUM_DRAWS, CHUNK_ROWS, 1)] * num_chunks


def test_model_with_leaves_in_float32_is_computed_in_float64():
    single = _leaves_as(_model("pathwise", True), np.float32)
    found = _at(single, X[:5]).draws()
    assert found.dtype == np.float64
    assert_array_equal(found, _at(_leaves_as(single, np.float64), X[:5]).draws())
    assert not np.any(found == found.astype(np.float32))


def _leaves_as(model, dtype):
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if isinstance(leaf, np.ndarray) else leaf, model)


def test_rows_drawn_jointly_are_coherent_and_one_by_one_are_not():
    """`full` with an input kernel: near rows have near draws when they are drawn together."""
    model = _model("full", True)
    pair = np.array([[0.3, -0.2], [0.3, -0.2 + 1e-3]])

    def step(joint):
        draws = _at(model, pair, joint=joint).draws()
        return np.mean(np.abs(draws[:, 0] - draws[:, 1]))

    assert step(joint=True) < 0.1 * step(joint=False)
