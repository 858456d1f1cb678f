"""Huge, tiny, nearly equal or far numbers: answers are finite and scale with the data, or an error says why.

What is refused is refused before anything is trained, so it is tried with every estimator.
"""

import time
import warnings

import numpy as np
import pytest
from scipy.special import pdtr

from every_estimator import CLASSIFIERS, METAGP, REGRESSORS, TRAINED
from metaprior import MetaGPClassifier, MetaGPRegressor, baselines
from metaprior.estimators.checks import FARTHEST, LARGEST, LEAST_SPREAD, standard_units
from metaprior.multitask import MultiTaskClassifier, MultiTaskRegressor

RNG = np.random.default_rng(0)
ROWS = 12
X = RNG.uniform(-2, 2, (ROWS, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
LABELS = np.arange(ROWS) % 2
COUNTS = np.floor(10 * np.exp(Y))
STEPS = np.arange(ROWS, dtype=float)

RELU = {"activation": "relu"}
LIKELIHOODS = {
    "relu": lambda: MetaGPRegressor(**METAGP, **RELU, input_kernel=None),
    "relu, drawn": lambda: MetaGPRegressor(**METAGP, **RELU, output_layer="drawn"),
    "relu, heteroscedastic": lambda: MetaGPRegressor(**METAGP, **RELU, likelihood="heteroscedastic", input_kernel=None),
    "relu, student_t": lambda: MetaGPRegressor(**METAGP, **RELU, likelihood="student_t", input_kernel=None),
    "relu, map": lambda: baselines.MAPRegressor(**TRAINED, **RELU),
}
COUNTED = {
    "poisson": lambda: MetaGPRegressor(**METAGP, likelihood="poisson", input_kernel=None),
    "relu, poisson": lambda: MetaGPRegressor(**METAGP, **RELU, likelihood="poisson", input_kernel=None),
    "linear, poisson": lambda: MetaGPRegressor(**METAGP, input_kernel="linear", likelihood="poisson"),
}
NUMBERS = REGRESSORS | LIKELIHOODS
EVERY = NUMBERS | COUNTED | {f"{name}, classes": make for name, make in CLASSIFIERS.items()}
#: Estimators with which the fast tests train; the slow ones do so with all.
QUICK = ("local", "relu", "global, classes")

pytestmark = [
    pytest.mark.filterwarnings("ignore:the chains mix poorly", "ignore:the median distance", "ignore:training turned"),
    # the last is scikit-learn's, which adds all numbers to see whether they are finite
    pytest.mark.filterwarnings("ignore:a Cholesky factor needed", "ignore:invalid value encountered in reduce"),
]


def each(names):
    return [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in names]


def targets_of(name: str) -> np.ndarray:
    return LABELS if "classes" in name else COUNTS if "poisson" in name else Y


# --- what is refused --------------------------------------------------------------------------------------------------

TOO_LARGE, TOO_CLOSE = "numbers of at most 1e\\+100 in size; divide", "differ by more than 1e-100.*; multiply"
#: Columns that are refused, as inputs and as targets.
REFUSED_COLUMNS = {
    "1e300": (1e300 * Y, TOO_LARGE),
    "one number of 1e300": (np.where(STEPS == 3, 1e300, Y), TOO_LARGE),
    "one number of -1e300": (np.where(STEPS == 3, -1e300, Y), TOO_LARGE),
    "the largest and the least float": (np.where(STEPS % 2 == 0, 1, -1) * np.finfo(float).max, TOO_LARGE),
    "a constant of 1e308": (np.full(ROWS, 1e308), TOO_LARGE),
    "1e155, whose squares overflow": (1e155 * Y, TOO_LARGE),
    "just above the largest": (np.where(STEPS == 3, np.nextafter(LARGEST, np.inf), Y), TOO_LARGE),
    "1e-300": (1e-300 * Y, TOO_CLOSE),
    "1e-155, whose squares vanish": (1e-155 * Y, TOO_CLOSE),
    "zeros and the least float above them": (np.where(STEPS == 3, 5e-324, 0), TOO_CLOSE),
    "subnormal numbers": (5e-324 * STEPS, TOO_CLOSE),
    "just too close": (0.9 * LEAST_SPREAD * STEPS / STEPS.max(), TOO_CLOSE),
    "whole numbers that are one float": (2**60 + np.arange(ROWS), "still different as float64.*Subtract a constant"),
    "unsigned ones": (np.uint64(2**63) + np.arange(ROWS, dtype=np.uint64), "still different as float64.*Subtract"),
}


def test_the_number_of_cases():
    """Of refused data: 14 columns as inputs of 36 estimators and as targets of 24. docs/reliability.md says so."""
    assert (len(REFUSED_COLUMNS), len(EVERY), len(NUMBERS)) == (14, 36, 24)


@pytest.mark.parametrize("numbers", REFUSED_COLUMNS)
def test_inputs_that_float64_cannot_square_are_refused_before_training(numbers):
    column, reason = REFUSED_COLUMNS[numbers]
    x = np.column_stack([column, column]) if column.dtype.kind in "iu" else np.column_stack([X[:, 0], column])
    for name, make in EVERY.items():
        with pytest.raises(ValueError, match=f"^X: expected .*{reason}"):
            make().fit(x, targets_of(name))


@pytest.mark.parametrize("numbers", REFUSED_COLUMNS)
def test_targets_that_float64_cannot_square_are_refused_before_training(numbers):
    column, reason = REFUSED_COLUMNS[numbers]
    for make in NUMBERS.values():
        with pytest.raises(ValueError, match=f"^y: expected .*{reason}"):
            make().fit(X, column)


@pytest.mark.parametrize("several", [False, True])
def test_the_error_names_the_column(several):
    y = np.column_stack([Y, 1e300 * Y]) if several else 1e300 * Y
    with pytest.raises(ValueError, match=f"^y: .*column {int(several)} has .*e\\+300"):
        MetaGPRegressor(**METAGP, input_kernel=None).fit(X, y)


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("count", [2.0**53 + 2, 1e30, 1e300, np.finfo(float).max])
def test_counts_that_float64_does_not_have_one_by_one_are_refused(name, count):
    with pytest.raises(ValueError, match=r"expected counts of at most 2\*\*53.*Take likelihood='gaussian'"):
        COUNTED[name]().fit(X, np.where(STEPS == 3, count, COUNTS))


@pytest.mark.parametrize("noise", [1e-300, 1e-17, 1e17, 1e300, [1e300]])
@pytest.mark.parametrize("name", ["local", "student_t", "map", "exact gp"])
def test_a_noise_that_has_nothing_to_do_with_the_targets_is_refused(name, noise):
    with pytest.raises(ValueError, match="^noise: expected a number within a factor of 1e\\+16"):
        NUMBERS[name]().set_params(noise=noise).fit(X, Y)


@pytest.mark.parametrize("make", [MultiTaskRegressor, MultiTaskClassifier])
@pytest.mark.parametrize("numbers", ["1e300", "1e-300", "a constant of 1e308", "whole numbers that are one float"])
def test_a_task_with_hostile_numbers_is_refused(make, numbers):
    column, reason = REFUSED_COLUMNS[numbers]
    y = LABELS if make is MultiTaskClassifier else Y
    with pytest.raises(ValueError, match=reason):
        make((3,), max_iter=5).fit({"good": (X, y), "bad": (np.column_stack([column, column]), y)})


# --- what is taken ----------------------------------------------------------------------------------------------------

#: Powers of two, by which numbers are multiplied without rounding.
FACTORS = [2.0**-300, 2.0**-60, 2.0**60, 2.0**300]


def all_answers(model, x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return every usual answer; NumPy must not meet an overflow on the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        told = model.predict_distribution(x)
        if told.is_classification:
            found = {"mean": told.probabilities, "entropy": told.entropy, "draws": model.sample_y(x, 2)}
            return found | {"log_prob": told.log_prob(np.resize(y, len(x)))}
        y = np.resize(y, len(x))
        found = {"mean": told.mean, "std": told.std, "variance": told.variance, "quantile": told.quantile(0.9)}
        found |= {"entropy": told.entropy, "information": told.mutual_information, "sample": told.sample(0)}
        found |= {"log_prob": told.log_prob(y), "cdf": told.cdf(y), "crps": told.crps(y), "draws": model.sample_y(x, 2)}
        return found


def assert_finite(answers: dict[str, np.ndarray]) -> None:
    assert [name for name, values in answers.items() if not np.isfinite(values).all()] == []


@pytest.mark.parametrize("name", each(NUMBERS))
def test_targets_times_a_factor_give_predictions_times_the_factor(name):
    usual = all_answers(NUMBERS[name]().fit(X, Y), X + 0.5, Y)
    for factor in FACTORS:
        found = all_answers(NUMBERS[name]().fit(X, factor * Y), X + 0.5, factor * Y)
        assert_finite(found)
        for answer in ("mean", "std", "quantile", "crps", "draws"):
            np.testing.assert_array_equal(found[answer] / factor, usual[answer])
        np.testing.assert_array_equal(found["cdf"], usual["cdf"])
        np.testing.assert_allclose(found["entropy"] - np.log(factor), usual["entropy"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", each(EVERY))
def test_inputs_times_a_factor_change_no_prediction(name):
    y = targets_of(name)
    usual = all_answers(EVERY[name]().fit(X, y), X + 0.5, y)
    # a period is found in the units of the data, by sums that round differently there
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if "periodic" in name else {"rtol": 0, "atol": 0}
    for factor in FACTORS:
        found = all_answers(EVERY[name]().fit(factor * X, y), factor * (X + 0.5), y)
        assert_finite(found)
        np.testing.assert_allclose(found["mean"], usual["mean"], **tolerance)


#: Columns that are taken: the same as inputs and as targets.
TAKEN_COLUMNS = {
    "the largest": np.where(STEPS == 3, LARGEST, -LARGEST),
    "mixed signs": 1e99 * Y,
    "the closest": 2 * LEAST_SPREAD * STEPS,
    "a constant of 1e99": np.full(ROWS, 1e99),
    "a constant of 1e-300": np.full(ROWS, 1e-300),
    "a subnormal constant": np.full(ROWS, 5e-324),
    "a constant of -0.0": np.full(ROWS, -0.0),
    "1e16 and small steps": 1e16 + 2 * STEPS,
    "1e16 and steps that vanish": 1e16 + STEPS / 100,
    "1e9 and steps of a millionth": 1e9 + 1e-6 * STEPS,
    "one outlier of 1e99": np.where(STEPS == 3, 1e99, Y),
    "rounding of a constant": np.where(STEPS % 2 == 0, 0.1 + 0.2, 0.3),
    "float32": Y.astype(np.float32),
    "float16": Y.astype(np.float16),
    "float32 near its largest": (1e38 * Y).astype(np.float32),
    "subnormal float32": (1e-40 * STEPS).astype(np.float32),
    "nanoseconds": 1_700_000_000_000_000_000 + 10**9 * np.arange(ROWS),
    "whole numbers beyond 2**53": 2**62 + 2**40 * np.arange(ROWS),
    "unsigned whole numbers": np.uint64(2**63) + np.uint64(2**50) * np.arange(ROWS, dtype=np.uint64),
    "bytes": np.arange(ROWS, dtype=np.uint8),
    "truths": STEPS > 5,
}


@pytest.mark.parametrize("numbers", TAKEN_COLUMNS)
@pytest.mark.parametrize("name", each(EVERY))
def test_hostile_inputs_that_are_taken_have_finite_answers(name, numbers):
    x = np.column_stack([TAKEN_COLUMNS[numbers], TAKEN_COLUMNS[numbers]])
    y = targets_of(name)
    assert_finite(all_answers(EVERY[name]().fit(x, y), x, y))


@pytest.mark.parametrize("numbers", [n for n in TAKEN_COLUMNS if n != "truths"])
@pytest.mark.parametrize("name", each(NUMBERS))
def test_hostile_targets_that_are_taken_have_finite_answers_of_their_size(name, numbers):
    y = TAKEN_COLUMNS[numbers]
    model = NUMBERS[name]().fit(X, y)
    floats = y.astype(float)
    answers = all_answers(model, X, floats)
    assert_finite(answers)
    _, (unit,) = standard_units(floats[:, None])
    assert np.abs(answers["mean"] - floats.mean()).max() < 100 * unit
    assert np.all(answers["std"] > 0)
    assert np.all(answers["std"] < 100 * unit)


def test_steps_of_a_millionth_beside_1e9_are_seen():
    """The whole column differs in its last four digits; a model that took it for constant would predict a constant."""
    x = np.column_stack([1e9 + 1e-6 * STEPS, np.zeros(ROWS)])
    mean = baselines.ExactGPRegressor(n_restarts=0).fit(x, STEPS).predict(x)
    np.testing.assert_allclose(mean, STEPS, atol=1.0)


@pytest.mark.parametrize("num_rows", [2, 1000, 100_003])
@pytest.mark.parametrize("constant", [0.1, 1 / 3, 1e9 + 0.1, -7e99])
def test_a_constant_does_not_vary_however_many_rows_there_are(num_rows, constant):
    columns = np.column_stack([np.full(num_rows, constant), np.arange(num_rows)])
    offset, scale = standard_units(columns)
    assert offset[0] == constant
    assert scale[0] == max(1.0, 4 * np.finfo(float).eps * abs(constant))


# --- rows that are far away -------------------------------------------------------------------------------------------

DISTANCES = [1e3, 1e8, 1e12, 1e15]
FAR = np.concatenate([[[s * d, 1.0], [1.0, s * d], [s * d, -d], [d, d + 1]] for d in DISTANCES for s in (1, -1)])


@pytest.mark.parametrize("name", each(EVERY))
def test_far_rows_have_finite_answers(name):
    y = targets_of(name)
    assert_finite(all_answers(EVERY[name]().fit(X, y), FAR, y))


@pytest.mark.parametrize("name", each(EVERY))
def test_rows_that_cannot_tell_the_data_apart_are_refused(name):
    model = EVERY[name]().fit(X, targets_of(name))
    for value in (10 * FARTHEST, -10 * FARTHEST, 1e155, 1e300, -1e300, np.finfo(float).max):
        rows = np.array([[0.0, 1.0], [1.0, value]])
        for question in (model.predict, model.predict_distribution, model.sample_y):
            with pytest.raises(ValueError, match="^X: expected numbers within 1e\\+16 .*row 1, column 1"):
                question(rows)


@pytest.mark.parametrize("factor", [1e20, 1e200, -1e300])
def test_a_warm_start_refuses_data_that_are_far_from_the_last(factor):
    model = MetaGPRegressor(**METAGP, warm_start=True, input_kernel=None).fit(X, Y)
    before = model.predict(X)
    for x, y, name in ((factor * X, Y, "X"), (X, factor * Y, "y")):
        with pytest.raises(ValueError, match=f"^{name}: expected numbers within"):
            model.fit(x, y)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.slow
def test_tasks_of_any_units_are_fitted_and_far_ones_refused():
    tasks = {"small": (X, 2.0**-300 * Y), "large": (X, 2.0**300 * Y)}
    model = MultiTaskRegressor((3,), max_iter=20, adapt_iter=5, random_state=0).fit(tasks)
    usual = model.predict(X, task="small") * 2.0**300
    np.testing.assert_allclose(model.predict(X, task="large") * 2.0**-300, usual, atol=1.0)
    model.adapt("new", X, 1e90 * Y)
    assert np.isfinite(model.predict(X, task="new")).all()
    with pytest.raises(ValueError, match="^X: expected numbers within"):
        model.adapt("far", 1e20 * X, Y)
    with pytest.raises(ValueError, match="^X: expected numbers within"):
        model.predict(1e300 * X, task="small")


def test_labels_may_be_any_whole_numbers():
    labels = np.where(LABELS, 2**62, -(2**62))
    model = MetaGPClassifier(**METAGP, input_kernel=None).fit(X, labels)
    assert set(model.predict(X)) <= set(labels.tolist())


# --- counts -----------------------------------------------------------------------------------------------------------

RATES = [1.0, 1e3, 1e6, 1e12, 1e15]
#: Seconds that any answer may take. Those of 30 rows of counts near 1e12 took minutes when their cost grew with counts.
PATIENCE = 20


@pytest.fixture(scope="module")
def counted():
    """Fitted models of counts about a rate, their rates in every draw, and the seconds that the fits took."""
    x = np.linspace(-2, 2, 30)[:, None]
    found = {}
    for rate in RATES:
        y = np.random.default_rng(1).poisson(rate * (1.5 + np.sin(2 * x[:, 0]))).astype(float)
        begun = time.perf_counter()
        model = MetaGPRegressor(
            (3,), likelihood="poisson", max_iter=200, n_predict_draws=16, random_state=0, input_kernel=None
        ).fit(x, y)
        told = model.predict_distribution(x)
        rates = np.concatenate([np.exp(f[..., 0]) for _, f in told._draws.chunks()], axis=1)
        found[rate] = told, rates, y, time.perf_counter() - begun
    return found


def mixture_cdf(rates: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.mean(np.where(y < 0, 0, pdtr(np.maximum(y, 0), rates)), axis=0)


@pytest.mark.parametrize("rate", RATES)
def test_answers_about_counts_of_any_size_are_right_and_take_bounded_time(counted, rate):
    told, rates, y, seconds = counted[rate]
    begun = time.perf_counter()
    # SciPy's own function is right to 1e-5: it leaves its expansion 4.5 standard deviations from the rate
    np.testing.assert_allclose(told.cdf(y), mixture_cdf(rates, y), atol=1e-5)
    for level in (0.001, 0.1, 0.5, 0.9, 0.999):
        quantile = told.quantile(level)
        assert np.array_equal(quantile, np.floor(quantile))
        assert np.all(mixture_cdf(rates, quantile) >= level - 1e-5)
        assert np.all(mixture_cdf(rates, quantile - 1) <= level + 1e-5)
    assert np.isfinite(told.entropy).all()
    assert np.isfinite(told.crps(y)).all()
    assert np.isfinite(told.log_prob(y)).all()
    sample = told.sample(0)
    assert np.array_equal(sample, np.floor(sample))
    means = told.draws()  # of the same functions
    assert np.all(np.abs(sample - means) < 12 * np.sqrt(means) + 30)
    assert time.perf_counter() - begun + seconds < PATIENCE
