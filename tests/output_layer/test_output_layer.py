"""The integrated output layer against dense Gaussians: its prior, its functions, its regimes and their bounds."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel as SklearnKernel

from metaprior.output_layer import Exact, FunctionGP, InducingRows, OutputLayer, PseudoObservations, base, blocks, exact
from metaprior.output_layer.base import Batch, ConditionedRows
from metaprior.output_layer.in_weights import ConditionedWeights
from metaprior.output_layer.independent_outputs import ObservedInBasis
from written import CASES, FIRST, JITTER, NEW, OLD, X_NEW, Setting, X, by_row, quickly

# Only rounding: condition numbers are below 1e6 (K_uu with its weight noise or at codes that lie apart; K + noise^2).
ROUNDING = {"rtol": 1e-9, "atol": 1e-9}
# A relative jitter of 1e-10 moves an eigenvalue by 1e-9 at most; its effect on a covariance, a density or a trace over
# the noise's variance is that times |K^-1 k|^2, |alpha|^2 or rows / noise^2, all below 1e3.
JITTERED = {"rtol": 0, "atol": 1e-6}

pytestmark = pytest.mark.usefixtures("double")
each_case = pytest.mark.parametrize("case", CASES)
# enough for what does not look inside the prior: with a mean and two outputs, without, and with an input kernel
each_of_three = pytest.mark.parametrize("case", list(CASES)[:3])
each_regime = pytest.mark.parametrize("name", ["exact", "inducing", "pseudo"])


@pytest.fixture(scope="module")
def settings():
    """Every case drawn once, when it is first asked for."""
    made: dict[str, Setting] = {}
    return lambda case: made[case] if case in made else made.setdefault(case, Setting.of(case))


def _assert_moments(found: tuple, mean: np.ndarray, covariance: np.ndarray, **tolerance: float) -> None:
    np.testing.assert_allclose(found[0], mean.reshape(-1, 3).T, **tolerance)
    np.testing.assert_allclose(found[1], by_row(covariance), **tolerance)


# --- the prior of the functions ---------------------------------------------------------------------------------------


@each_case
def test_mean_and_covariances_of_the_functions_are_those_of_all_output_weights_written_out(settings, case):
    setting = settings(case)
    (mean, covariance, own), dense = setting.prior, setting.dense
    np.testing.assert_allclose(np.ravel(mean), dense.mean_at(OLD), **ROUNDING)
    np.testing.assert_allclose(covariance, dense.block(NEW, OLD), **ROUNDING)
    np.testing.assert_allclose(own, by_row(dense.block(NEW, NEW)), **ROUNDING)
    assert (np.abs(dense.mean).max() > 0.1) == case.endswith("one GP")


@each_case
def test_covariance_of_the_functions_is_that_of_drawn_output_weights(settings, case):
    setting = settings(case)
    written, dense = setting.written, setting.dense
    f = written.push @ written.root @ np.random.default_rng(3).standard_normal((len(written.mean), 20_000))
    products = f[dense.at(NEW), None] * f[None, dense.at(OLD)]
    error = products.std(axis=-1) / np.sqrt(products.shape[-1])
    np.testing.assert_array_less(np.abs(products.mean(axis=-1) - setting.prior[1]), 4 * error)


# --- drawn functions --------------------------------------------------------------------------------------------------

NUM_FEATURES, NUM_FREQUENCIES = 4, 1000


def _assert_drawn(function: Any, gp: FunctionGP, before: int, size: int, mean: Any, covariance: np.ndarray) -> None:
    """Given its frequencies a function is an affine map of the other normals, which its value and its slope define.

    The value at 0 is the mean whatever the frequencies; the covariance is right on average over them.
    """
    kernel = gp.prior.kernel
    places = before + np.arange(0 if kernel is None else kernel.num_normals(2) * NUM_FEATURES)
    others = np.setdiff1d(np.arange(size), places)

    def of(frequencies):
        def values(own):
            return function(jnp.zeros(size).at[places].set(frequencies).at[others].set(own))

        return values(jnp.zeros(len(others))), jax.jacrev(values)(jnp.zeros(len(others)))

    frequencies = np.random.default_rng(4).standard_normal((NUM_FREQUENCIES if len(places) else 1, len(places)))
    at_zero, slope = (np.asarray(a) for a in quickly(lambda n: jax.lax.map(of, n, batch_size=50))(frequencies))
    np.testing.assert_allclose(at_zero, np.broadcast_to(mean, at_zero.shape), **JITTERED)
    given = slope @ np.swapaxes(slope, 1, 2)
    error = given.std(axis=0) / np.sqrt(len(given))
    assert error.max() < 0.1 * np.abs(covariance).max()
    np.testing.assert_array_less(np.abs(given.mean(axis=0) - covariance), 4 * error + JITTERED["atol"])


@each_case
def test_functions_drawn_from_the_prior_have_its_covariance(settings, case):
    gp, dense = settings(case).gp, settings(case).dense
    size = gp.prior.num_normals(NUM_FEATURES, 2)
    values = lambda n: gp.prior.function(n, NUM_FEATURES, 2)(gp.rows(X_NEW)).ravel()  # noqa: E731
    _assert_drawn(values, gp, 0, size, 0, dense.block(NEW, NEW))


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("one GP", "exact"),
        ("local output", "exact"),
        ("one GP", "inducing"),
        ("one GP", "pseudo"),
        ("local output", "inducing"),
        ("classes", "pseudo shared"),
    ],
)
def test_functions_drawn_from_the_posterior_have_its_mean_and_covariance(regimes, case, name, monkeypatch):
    monkeypatch.setattr(base, "NUM_FEATURES", NUM_FEATURES)
    given = regimes(case)
    posterior = given.answer(name).posterior
    values = lambda n: posterior.function(n)(jnp.asarray(X_NEW)).T.ravel()  # noqa: E731
    before = posterior.num_values if isinstance(posterior, ConditionedRows) else 0
    _assert_drawn(values, posterior.gp, before, posterior.num_normals(), *given.posterior(name))


# --- the regimes ------------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    bound: jax.Array
    kl: dict
    posterior: Any
    moments: tuple
    covariance: jax.Array


@quickly
def _answers(gp, regimes, likelihood, batch):
    none, new = jnp.zeros((len(batch.x), 0)), jnp.asarray(X_NEW)
    posteriors = {name: regime.with_rows(batch).conditioned(gp, likelihood) for name, regime in regimes.items()}
    rows = gp.rows(new)
    return {
        name: Answer(
            *regime.bound(gp, likelihood, batch, none),
            posteriors[name],
            posteriors[name].moments(new),
            posteriors[name].covariance_of(rows, rows),
        )
        for name, regime in regimes.items()
    }


class Given(NamedTuple):
    """What the regimes say of the padded rows; inducing rows are three or all, pseudo-observations any or the real."""

    setting: Setting
    regimes: dict[str, OutputLayer]
    made: dict[str, Answer]

    @property
    def evidence(self) -> float:
        return self.setting.evidence

    def answer(self, name: str) -> Answer:
        """Regimes of one kind are computed together, when one of them is first asked for."""
        if name not in self.made:
            alike = {other: regime for other, regime in self.regimes.items() if other.split()[0] == name.split()[0]}
            self.made.update(_answers(self.setting.gp, alike, self.setting.likelihood, self.setting.batch(padded=True)))
        return self.made[name]

    def posterior(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        y, noise, dense = self.setting.y, self.setting.noise, self.setting.dense
        if name == "inducing":
            return dense.induced(y, noise)
        if name == "pseudo shared":
            return dense.observed(y + 0.5, np.tile(_loose(X), len(y) // len(X)))
        return dense.observed(y + 0.5, _loose(y)) if name == "pseudo" else dense.observed(y, noise)


def _sharing(y: np.ndarray) -> PseudoObservations:
    """Pseudo-observations of which all outputs of a row have one precision."""
    return PseudoObservations(X, (y + 0.5).reshape(-1, len(X)).T, -2 * np.log(_loose(X))[:, None])


def _loose(y: np.ndarray) -> np.ndarray:
    """Noise of pseudo-observations that is none in particular."""
    return np.random.default_rng(5).uniform(0.5, 2.0, len(y))


@pytest.fixture(scope="module")
def regimes(settings):
    made: dict[str, Given] = {}

    def given(case: str) -> Given:
        if case not in made:
            setting = settings(case)
            columns = lambda values: values.reshape(-1, len(X)).T  # noqa: E731
            each = {
                "exact": Exact(),
                "inducing": InducingRows(X[FIRST], jitter=JITTER),
                "inducing all": InducingRows(X, jitter=JITTER),
                "pseudo": PseudoObservations(X, columns(setting.y + 0.5), columns(-2 * np.log(_loose(setting.y)))),
                "pseudo shared": _sharing(setting.y),
                "pseudo all": PseudoObservations(X, columns(setting.y), columns(-2 * np.log(setting.noise))),
            }
            made[case] = Given(setting, each, {})
        return made[case]

    return given


@each_of_three
@each_regime
def test_moments_of_the_posterior_are_the_dense_ones(regimes, case, name):
    _assert_moments(regimes(case).answer(name).moments, *regimes(case).posterior(name), **ROUNDING)


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("one GP", "exact"),
        ("local output", "exact"),
        ("one GP", "inducing"),
        ("local output", "pseudo"),
        ("classes", "pseudo shared"),
    ],
)
def test_covariance_of_the_posterior_between_rows_is_the_dense_one(regimes, case, name):
    np.testing.assert_allclose(regimes(case).answer(name).covariance, regimes(case).posterior(name)[1], **ROUNDING)


@pytest.mark.parametrize("case", ["one GP", "classes"])
def test_outputs_may_share_the_precision_of_a_row_and_come_apart_where_the_prior_is_separable(regimes, case):
    answer = regimes(case).answer("pseudo shared")
    assert isinstance(answer.posterior, ObservedInBasis) == (case == "classes")
    _assert_moments(answer.moments, *regimes(case).posterior("pseudo shared"), **ROUNDING)


@pytest.mark.parametrize(("case", "in_weights"), [("one GP", True), ("GP per layer", True), ("local output", False)])
def test_the_exact_regime_works_in_the_weights_where_no_input_kernel_makes_them_depend_on_the_row(
    regimes, case, in_weights
):
    assert isinstance(regimes(case).answer("exact").posterior, ConditionedWeights) == in_weights


@each_of_three
def test_exact_bound_is_scipys_log_density_whatever_stands_in_padded_rows(regimes, case):
    answer = regimes(case).answer("exact")
    assert answer.kl == {}
    np.testing.assert_allclose(answer.bound, regimes(case).evidence, **ROUNDING)


class _LookedUp(SklearnKernel):
    """A kernel over row numbers, from a matrix."""

    def __init__(self, matrix):
        self.matrix = matrix

    def __call__(self, a, b=None, eval_gradient=False):
        return self.matrix[np.ix_(a[:, 0].astype(int), (a if b is None else b)[:, 0].astype(int))]

    def diag(self, a):
        return np.diag(self(a))

    def is_stationary(self):
        return False


@each_of_three
def test_exact_posterior_is_that_of_scikit_learns_gp_regression(regimes, case):
    setting, dense = regimes(case).setting, regimes(case).setting.dense
    model = GaussianProcessRegressor(_LookedUp(dense.covariance), alpha=setting.noise**2, optimizer=None)
    model.fit(dense.at(OLD)[:, None], setting.y - dense.mean_at(OLD))
    mean, covariance = model.predict(dense.at(NEW)[:, None], return_cov=True)
    _assert_moments(regimes(case).answer("exact").moments, mean + dense.mean_at(NEW), covariance, rtol=0, atol=1e-6)


@each_of_three
def test_all_rows_as_inducing_rows_give_the_exact_evidence_and_posterior(regimes, case):
    answer = regimes(case).answer("inducing all")
    np.testing.assert_allclose(answer.bound, regimes(case).evidence, **JITTERED)
    _assert_moments(answer.moments, *regimes(case).posterior("exact"), **JITTERED)


@each_of_three
def test_fewer_inducing_rows_give_a_lower_bound_of_the_evidence(regimes, case):
    """The one of Titsias (2025): log N(y; m, Q + noise^2) - sum log(1 + (k - q) / noise^2) / 2."""
    setting, dense = regimes(case).setting, regimes(case).setting.dense
    explained = dense.block(OLD, FIRST) @ np.linalg.solve(dense.inducing_gram, dense.block(FIRST, OLD))
    value = stats.multivariate_normal(dense.mean_at(OLD), explained + np.diag(setting.noise**2)).logpdf(setting.y)
    value -= 0.5 * np.sum(np.log1p(np.diag(dense.block(OLD, OLD) - explained) / setting.noise**2))
    np.testing.assert_allclose(regimes(case).answer("inducing").bound, value, **ROUNDING)
    assert value < setting.evidence - 0.1


@each_of_three
def test_pseudo_observations_that_are_the_observations_give_the_exact_evidence_and_posterior(regimes, case):
    answer = regimes(case).answer("pseudo all")
    np.testing.assert_allclose(answer.bound - answer.kl["kl_f"], regimes(case).evidence, **ROUNDING)
    _assert_moments(answer.moments, *regimes(case).posterior("exact"), **ROUNDING)


@each_of_three
def test_other_pseudo_observations_give_a_lower_bound_of_the_evidence(regimes, case):
    answer = regimes(case).answer("pseudo")
    assert answer.bound - answer.kl["kl_f"] < regimes(case).evidence - 0.1


@each_of_three
def test_no_gaussian_q_of_the_output_weights_has_a_higher_bound_than_integrating_them(regimes, case):
    """E log p(y | f) - KL[q || p] for weights w = mean + root v, p(v) = N(0, I) and q(v) = N(m, S)."""
    setting, rng, evidence = regimes(case).setting, np.random.default_rng(6), float(regimes(case).answer("exact").bound)
    push = (setting.written.push @ setting.written.root)[setting.dense.at(OLD)]
    gap, noise, size = setting.y - setting.dense.mean_at(OLD), setting.noise, push.shape[1]

    def bound(m: np.ndarray, s: np.ndarray) -> float:
        log_prob = stats.norm(0, noise).logpdf(gap - push @ m) - 0.5 * np.diag(push @ s @ push.T) / noise**2
        return log_prob.sum() - 0.5 * (np.trace(s) + m @ m - size - np.linalg.slogdet(s)[1])

    best = np.linalg.inv(np.eye(size) + (push.T / noise**2) @ push)
    mean = best @ push.T @ (gap / noise**2)
    np.testing.assert_allclose(bound(mean, best), evidence, **ROUNDING)
    root = rng.standard_normal((size, size)) / np.sqrt(size)
    others = (0 * mean, np.eye(size)), (mean, root @ root.T), (mean + 0.3 * rng.standard_normal(size), best)
    assert max(bound(*other) for other in others) < evidence - 0.1


# --- derivatives ------------------------------------------------------------------------------------------------------


def _slopes(regime, setting: Setting, batch: Batch, *, kl: bool = False) -> list[np.ndarray]:
    """The bound and its derivatives in the noise, the inducing rows, and all that the draw below has left."""

    def value(learned):
        regime, gp, likelihood = learned
        bound, kls = regime.bound(gp, likelihood, batch, jnp.zeros((len(batch.x), 0)))
        return bound - kls["kl_f"] if kl else bound

    learned = jax.tree.map(jnp.asarray, (regime, setting.gp, setting.likelihood))
    return [np.asarray(leaf) for leaf in jax.tree.leaves(quickly(eqx.filter_value_and_grad(value))(learned))]


def _assert_same_slopes(found: list, expected: list) -> None:
    assert sum(np.abs(leaf).max() > 1e-3 for leaf in expected) >= 8  # the most of them matter
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def test_nonsense_in_padded_rows_stays_out_of_the_derivatives_of_the_exact_bound(settings):
    setting = settings("one GP")
    _assert_same_slopes(*(_slopes(Exact(), setting, setting.batch(padded)) for padded in (True, False)))


@pytest.mark.parametrize("case", ["one GP", "GP per layer"])
def test_weights_and_rows_give_the_same_exact_bound_and_derivatives_also_where_rows_weigh_more(
    settings, monkeypatch, case
):
    setting = settings(case)
    whole = setting.batch(padded=True)
    batch = Batch(whole.x, whole.y, whole.weight * jnp.linspace(0.5, 2, len(whole.x)))
    found = _slopes(Exact(), setting, batch)
    monkeypatch.setattr(exact, "_has_fewer_weights", lambda *_: False)
    _assert_same_slopes(*([_symmetric(leaf) for leaf in each] for each in (found, _slopes(Exact(), setting, batch))))


@each_of_three
@pytest.mark.parametrize("regime", [Exact(), InducingRows(X[FIRST], jitter=JITTER)])
def test_a_row_that_weighs_three_counts_as_three_rows(settings, case, regime):
    setting = settings(case)
    batch, often = setting.batch(padded=False), np.array([1, 3, 1, 2, 1, 1, 1])
    repeated = Batch(*(jnp.repeat(a, often, axis=0) for a in (batch.x, batch.y, batch.weight)))
    weighed = Batch(batch.x, batch.y, jnp.asarray(often, float))
    found, expected = (_answers(setting.gp, {"one": regime}, setting.likelihood, b)["one"] for b in (weighed, repeated))
    np.testing.assert_allclose(found.bound, expected.bound, rtol=1e-8)
    for a, b in zip(found.moments, expected.moments, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7)


def test_outputs_that_come_apart_give_the_bound_the_kl_and_the_derivatives_of_the_joint_matrix(settings):
    """The same precisions, written for every output, take the way of one matrix."""
    setting = settings("classes")
    shared = _sharing(setting.y)
    each = dataclasses.replace(shared, log_precision=np.repeat(shared.log_precision, 3, axis=1))
    found, expected = (_slopes(own, setting, setting.batch(padded=True), kl=True) for own in (shared, each))
    places = [place for place, leaf in enumerate(expected) if leaf.shape == each.log_precision.shape]
    expected[places[-1]] = np.sum(expected[places[-1]], axis=1, keepdims=True)
    _assert_same_slopes(*([_symmetric(leaf) for leaf in leaves] for leaves in (found, expected)))


def _symmetric(slope: np.ndarray) -> np.ndarray:
    """A covariance has no other part, so only this one of a slope in it has a meaning."""
    return slope + slope.T if slope.ndim == 2 and slope.shape[0] == slope.shape[1] else slope


@pytest.mark.parametrize("regime", [InducingRows(X[FIRST], jitter=JITTER), Exact()])
def test_blocks_of_rows_give_the_bound_and_the_derivatives_of_one(settings, monkeypatch, regime):
    """Nine rows, two of them padding with nonsense, in three blocks."""
    setting = settings("one GP")
    expected = _slopes(regime, setting, setting.batch(padded=False))
    monkeypatch.setattr(blocks, "BLOCK", 4)
    _assert_same_slopes(_slopes(regime, setting, setting.batch(padded=True)), expected)
