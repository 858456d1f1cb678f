"""What is drawn: the data of lines, bands and bars against what the model says."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, norm

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402

from metaprior import MetaGPRegressor, kernels, plots  # noqa: E402
from metaprior.baselines import ExactGPRegressor, MAPClassifier  # noqa: E402
from metaprior.estimators import kernel_components  # noqa: E402
from metaprior.plots.calibration import pit_shares  # noqa: E402
from metaprior.plots.style import COLOURS, style  # noqa: E402
from metaprior.predictive.from_sklearn import ClassProbabilities, GaussianMarginals  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 4, (20, 1))
Y = np.sin(3 * X[:, 0]) + 0.2 * X[:, 0] + 0.1 * RNG.standard_normal(20)
TABLE = pd.DataFrame(RNG.standard_normal((30, 3)), columns=["age", "size", "noise"])
TARGET = 5 * TABLE["age"].to_numpy() + TABLE["size"].to_numpy()
pytestmark = pytest.mark.filterwarnings("ignore:the median distance")


@pytest.fixture(scope="module")
def gp():
    return ExactGPRegressor(n_restarts=0, max_iter=10, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def wide():
    kernel = kernels.RBF([0.5, 2.0, 100.0], fixed=("lengthscale",))
    return ExactGPRegressor(kernel, n_restarts=0, max_iter=2).fit(TABLE, TARGET)


@pytest.fixture(scope="module")
def summed():
    kernel = kernels.Periodic(2.1) + kernels.RBF(3.0)
    return MetaGPRegressor((3,), input_kernel=kernel, max_iter=30, n_predict_draws=16, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def classes():
    return MAPClassifier((3,), max_iter=30, random_state=0).fit(X, np.where(X[:, 0] > 2, "late", "early"))


@pytest.fixture(autouse=True)
def closed():
    """Nothing stays open, and no setting of matplotlib changes."""
    before = dict(matplotlib.rcParams)
    yield
    plt.close("all")
    assert {name: value for name, value in matplotlib.rcParams.items() if before[name] != value} == {}


def line(axes, label):
    (found,) = [own for own in axes.get_lines() if own.get_label() == label]
    return np.asarray(found.get_xdata()), np.asarray(found.get_ydata())


def band(axes, label):
    """The lowest and the highest y of a band, at the x of its corners."""
    (found,) = [own for own in axes.collections if own.get_label() == label]
    corners = found.get_paths()[0].vertices
    return corners[:, 1].min(), corners[:, 1].max()


# --- fits -------------------------------------------------------------------------------------------------------------


def test_a_fit_has_the_mean_the_intervals_some_functions_and_the_data(gp):
    axes = plots.plot_fit(gp, X, Y, levels=(0.9,), n_draws=3, n_points=50, margin=0.5)
    x, mean = line(axes, "mean")
    assert_allclose([x[0], x[-1]], [X.min() - 0.5 * np.ptp(X), X.max() + 0.5 * np.ptp(X)])
    predicted = gp.predict_distribution(x[:, None])
    assert_array_equal(mean, predicted.mean)
    low, high = predicted.interval(0.9)
    assert_allclose(band(axes, "90 % of y"), (low.min(), high.max()))
    drawn = [own for own in axes.get_lines() if own.get_linewidth() < 1]
    assert_array_equal([own.get_ydata() for own in drawn], predicted.draws()[:3])
    assert_array_equal(line(axes, "data"), (X[:, 0], Y))
    assert axes.get_xlabel() == "x"
    assert axes.get_ylabel() == "y"


def test_a_fit_along_one_of_several_columns_keeps_the_others_at_their_medians(wide):
    axes = plots.plot_fit(wide, TABLE, TARGET, column="size", n_points=20)
    x, mean = line(axes, "mean")
    rows = pd.DataFrame({name: np.full(20, TABLE[name].median()) for name in TABLE}).assign(size=x)
    assert_array_equal(mean, wide.predict(rows))
    assert axes.get_xlabel() == "size"
    with pytest.raises(ValueError, match=r"plot_fit: .* X has 3: pass column=, one of \['age', 'size', 'noise'\]"):
        plots.plot_fit(wide, TABLE)
    with pytest.raises(ValueError, match="column: expected one of .* got 'weight'"):
        plots.plot_fit(wide, TABLE, column="weight")


def test_a_fit_of_two_classes_is_the_probability_of_the_second(classes):
    axes = plots.plot_fit(classes, X, classes.predict(X), n_points=15)
    x, p = line(axes, "p(late)")
    assert_array_equal(p, classes.predict_proba(x[:, None])[:, 1])
    assert_array_equal(np.sort(line(axes, "data, late")[0]), np.sort(X[classes.predict(X) == "late", 0]))


def test_a_plot_goes_into_the_axes_it_is_given(gp):
    axes = plt.figure().add_subplot()
    assert plots.plot_fit(gp, X, ax=axes) is axes
    assert len(plt.get_fignums()) == 1


def test_a_backend_that_the_first_figure_loads_goes_on_showing_figures_at_once():
    was, size = plt.isinteractive(), plt.rcParams["font.size"]
    try:
        plt.ioff()
        with style():
            assert plt.rcParams["font.size"] != size
        assert not plt.isinteractive()
        with style():
            plt.ion()  # as the backend of notebooks does
        assert plt.isinteractive()
        assert plt.rcParams["font.size"] == size
    finally:
        plt.interactive(was)


def test_the_legend_is_outside_of_the_axes(gp):
    axes = plots.plot_fit(gp, X, Y)
    axes.figure.canvas.draw()
    assert axes.get_legend().get_window_extent().y0 >= axes.get_window_extent().y1


# --- calibration ------------------------------------------------------------------------------------------------------


def test_coverage_is_the_share_of_targets_inside_with_the_binomial_band():
    y = RNG.standard_normal(40)
    axes = plots.plot_calibration(GaussianMarginals(np.zeros(40), np.full(40, 0.8)), y)
    levels, share = line(axes, "targets inside")
    inside = [np.mean(np.abs(y) <= 0.8 * norm.ppf((1 + level) / 2)) for level in levels]
    assert_allclose(share, inside, atol=1e-12)
    ends = binom.ppf([0.025, 0.975], 40, [0.01, 0.99]) / 40
    assert_allclose(band(axes, "what chance allows"), ends)


def test_shares_of_the_distribution_function_count_jumps_by_their_parts():
    assert_allclose(pit_shares(np.array([0.1, 0.6]), np.array([0.1, 0.6]), 2), [0.5, 0.5])
    assert_allclose(pit_shares(np.array([0.25]), np.array([0.75]), 4), [0, 0.5, 0.5, 0])
    assert_allclose(pit_shares(np.array([0.0, 0.9]), np.array([1.0, 1.0]), 5), [0.1, 0.1, 0.1, 0.1, 0.6])


def test_shares_of_the_distribution_function_are_a_histogram_where_there_are_no_jumps():
    at = RNG.uniform(size=60)
    assert_allclose(pit_shares(at, at, 7), np.histogram(at, 7, (0, 1))[0] / 60)
    axes = plots.plot_calibration(GaussianMarginals(np.zeros(60), np.ones(60)), RNG.standard_normal(60), kind="pit")
    assert np.sum(axes.patches[-1].get_data().values) == pytest.approx(10)


def test_reliability_is_the_share_of_right_classes_in_bins_of_confidence():
    p = np.array([[0.9, 0.1], [0.85, 0.15], [0.3, 0.7], [0.65, 0.35]])
    axes = plots.plot_calibration(ClassProbabilities(p, np.array(["a", "b"])), ["a", "b", "b", "a"], n_bins=5)
    (points,) = [own for own in axes.collections if "rows" in own.get_label()]
    assert_allclose(points.get_offsets(), [[0.675, 1.0], [0.875, 0.5]])


def test_a_calibration_that_does_not_fit_the_targets_is_refused():
    known = GaussianMarginals(np.zeros(3), np.ones(3))
    with pytest.raises(ValueError, match='expected "coverage" or "pit" for numbers; got \'reliability\''):
        plots.plot_calibration(known, np.zeros(3), kind="reliability")
    with pytest.raises(ValueError, match="expected one of auto, coverage"):
        plots.plot_calibration(known, np.zeros(3), kind="roc")


# --- predictions ------------------------------------------------------------------------------------------------------


def test_a_prediction_of_one_input_is_a_function_in_its_order(gp):
    predicted = gp.predict_distribution(X)
    x, mean = line(predicted.plot(Y), "mean")
    order = np.argsort(X[:, 0])
    assert_array_equal((x, mean), (X[order, 0], predicted.mean[order]))


def test_a_prediction_of_several_inputs_is_its_calibration_or_its_intervals(wide):
    predicted = wide.predict_distribution(TABLE)
    assert predicted.plot(TARGET).get_xlabel() == "level of the central interval"
    axes = predicted.plot()
    assert_array_equal(line(axes, "mean")[1], np.sort(predicted.mean))
    assert predicted.plot(TARGET, kind="intervals").get_ylabel() == "y"
    assert predicted.plot(x=TABLE["age"]).get_xlabel() == "x"
    for options, told in (
        ({"kind": "function"}, "one input column for kind='function'"),
        ({"kind": "calibration"}, "expected the targets y"),
        ({"kind": "pie"}, "expected one of auto, function"),
        ({"x": [1.0]}, "x: expected 30 numbers"),
    ):
        with pytest.raises(ValueError, match=told):
            predicted.plot(**options)


def test_targets_outside_of_their_interval_are_marked():
    predicted = GaussianMarginals(np.array([2.0, 0.0, 1.0]), np.ones(3))
    axes = plots.plot_intervals(predicted, np.array([2.0, 5.0, 1.0]), level=0.95)
    assert_array_equal(line(axes, "data outside"), ([0], [5.0]))
    assert_array_equal(line(axes, "data")[1], [1.0, 2.0])
    many = plots.plot_intervals(GaussianMarginals(np.arange(50.0), np.ones(50)), most=10)
    assert len(line(many, "mean")[0]) == 10
    assert many.get_xlabel().endswith("10 of 50")


def test_classes_in_the_order_of_their_probability_have_wrong_ones_marked(classes):
    predicted = classes.predict_distribution(X)
    wrong = np.where(classes.predict(X) == "late", "early", "late")
    axes = plots.plot_intervals(predicted, wrong)
    assert_array_equal(line(axes, "wrong class")[1], np.sort(predicted.probabilities.max(axis=1)))


# --- components, training, relevance ----------------------------------------------------------------------------------


def test_components_are_the_parts_along_the_column(summed):
    axes = plots.plot_components(summed, X, n_points=30)
    found = kernel_components(summed, line(axes, _labels(axes)[0])[0][:, None], around=X)
    assert _labels(axes)[:2] == found.names[:2]
    for number, name in enumerate(_labels(axes)):
        assert_allclose(line(axes, name)[1], found.mean[number])
    assert found.names[0].startswith("Periodic(period=")
    whole = summed.predict(line(axes, found.names[0])[0][:, None])
    assert_allclose(np.sum(found.mean, axis=0) + found.average, whole, rtol=1e-8)


def _labels(axes):
    return axes.get_legend_handles_labels()[1]


def test_components_need_an_input_kernel(gp):
    with pytest.raises(ValueError, match="expected a fitted estimator with an input kernel; ExactGPRegressor has none"):
        plots.plot_components(gp, X)


def test_the_bound_is_drawn_with_its_terms(summed):
    axes = plots.plot_elbo(summed)
    assert_array_equal(line(axes, "ELBO")[1], summed.elbo_history_)
    assert_array_equal(line(axes, "log likelihood")[1], summed.elbo_terms_["log_likelihood"])
    assert_array_equal(line(axes, "−KL of the latents")[1], -summed.elbo_terms_["kl_z"])
    assert len(plots.plot_elbo(summed, terms=False).get_lines()) == 1
    with pytest.raises(ValueError, match="elbo_history_.*ExactGPRegressor has none"):
        plots.plot_elbo(ExactGPRegressor())


def test_relevance_is_the_deviation_of_a_column_over_its_lengthscale(wide):
    axes = plots.plot_relevance(wide)
    widths = [bar.get_width() for bar in axes.patches]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["age", "size", "noise"]
    assert_allclose(widths, TABLE.std(ddof=0) / [0.5, 2.0, 100.0], rtol=1e-6)
    with pytest.raises(ValueError, match="an input kernel; MAPClassifier has none"):
        plots.plot_relevance(MAPClassifier())


# --- matplotlib -------------------------------------------------------------------------------------------------------


def test_without_matplotlib_the_extra_is_named(gp, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'metaprior.plots needs matplotlib.* pip install "\.\[plot\]"'):
        plots.plot_fit(gp, X)


def test_a_picture_is_dark_on_white_also_where_the_session_is_white_on_dark(gp):
    with plt.style.context("dark_background"):
        axes = plots.plot_fit(gp, X, Y)
        axes.figure.canvas.draw()
    grounds = [axes.figure.get_facecolor(), axes.get_facecolor()]
    texts = [axes.xaxis.label, axes.get_xticklabels()[0], *axes.get_legend().get_texts()]
    assert [to_hex(colour) for colour in grounds] == ["#ffffff"] * 2
    assert {to_hex(own.get_color()) for own in texts} == {"#303030"}


def test_functions_lie_over_the_mean_so_that_they_are_seen(gp):
    lines = plots.plot_fit(gp, X, n_draws=2).get_lines()
    assert [own.get_label() for own in lines[:2]] == ["mean", "functions drawn"]
    assert all(own.get_linewidth() < lines[0].get_linewidth() / 2 for own in lines[1:3])


def test_one_legend_below_stands_for_those_of_all_panels(gp):
    figure, (left, right) = plt.subplots(1, 2, layout="constrained")
    plots.plot_fit(gp, X, Y, n_draws=0, ax=left)
    plots.plot_fit(gp, X, ax=right)
    plots.legend_below(figure)
    figure.canvas.draw()
    (legend,) = figure.legends
    assert [left.get_legend(), right.get_legend()] == [None, None]
    assert [own.get_text() for own in legend.get_texts()] == [
        "95 % of y",
        "50 % of y",
        "mean",
        "data",
        "functions drawn",
    ]
    assert legend.get_window_extent().y1 <= min(own.get_window_extent().y0 for own in (left, right))


def test_colours_are_those_of_okabe_and_ito_in_the_style_as_well():
    with plots.style():
        cycle = [colour.upper() for colour in matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]]
    assert [f"#{colour.lstrip('#')}" for colour in cycle] == list(COLOURS)
