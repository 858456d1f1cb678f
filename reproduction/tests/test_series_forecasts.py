"""The item series-forecasts: how series are prepared, forecasters without a kernel, and the judge."""

import numpy as np
import pytest

from metaprior.datasets import Split
from metaprior_reproduction.datasets import SERIES
from metaprior_reproduction.items import series_forecasts
from metaprior_reproduction.items.series_forecasts import AUTO, ETS, GP, NAIVE, RECIPES
from metaprior_reproduction.parts import forecasters
from metaprior_reproduction.parts.forecasters import SeasonalNaive, StatsForecast
from metaprior_reproduction.parts.item import Outcome, Results, Run

X = np.arange(60.0)[:, None]
WAVE = 10 + np.sin(2 * np.pi * X[:, 0] / 12)


def test_every_series_is_forecast():
    assert set(RECIPES) == set(SERIES)


def test_rows_are_means_of_rows_and_the_last_ones_are_used(monkeypatch):
    monkeypatch.setattr(series_forecasts, "series", lambda name: (np.arange(10.0)[:, None], 10 * np.arange(10.0)))
    found = series_forecasts.prepared("sunspots-monthly", 2)  # three rows at a time, from the end
    assert RECIPES["sunspots-monthly"].every == 3
    assert found.X[:, 0].tolist() == [5.0, 8.0]
    assert found.y.tolist() == [50.0, 80.0]


def test_the_last_season_comes_again_and_its_spread_grows():
    y = np.tile([1.0, 2.0, 3.0], 5)
    y[12:] += 1  # the last season differs from the one before by 1
    predicted = SeasonalNaive(3).fit(None, y).predict_distribution(np.zeros((7, 1)))
    assert predicted.mean.tolist() == [2, 3, 4, 2, 3, 4, 2]
    step = np.sqrt(3 / 12)
    np.testing.assert_allclose(predicted.std, step * np.sqrt([1, 1, 1, 2, 2, 2, 3]))


def test_a_series_of_one_season_is_refused():
    with pytest.raises(ValueError, match="more than one season of 12 rows; got 12"):
        SeasonalNaive(12).fit(None, np.ones(12))


@pytest.mark.parametrize("model", ["AutoETS", "AutoARIMA"])
def test_ets_and_arima_see_a_season(model):
    pytest.importorskip("statsforecast")
    rng = np.random.default_rng(0)
    y = WAVE + 0.05 * rng.standard_normal(60)
    predicted = StatsForecast(model, 12).fit(X[:48], y[:48]).predict_distribution(X[48:])
    assert np.sqrt(np.mean((predicted.mean - WAVE[48:]) ** 2)) < 0.2
    assert np.all((predicted.std > 0.01) & (predicted.std < 1))


def test_ets_and_arima_are_left_out_where_their_package_is_absent(monkeypatch):
    config = series_forecasts.PRESETS["paper"]
    monkeypatch.setattr(forecasters.importlib.util, "find_spec", lambda name: None)
    assert not any(ETS in method for method in series_forecasts.methods(config))
    verdicts = series_forecasts.judge(results({AUTO: 1.0, GP: 1.0}))
    assert "not installed, and left out: AutoETS, AutoARIMA" in verdicts[0].evidence


def results(levels, names=("nile", "airline")):
    config = {**series_forecasts.PRESETS["paper"], "series": list(names), "methods": list(levels)}
    runs = [
        Run(f"{name} {method}", seed, Outcome({"rmse": level + seed, "nll": level + seed}), 1.0)
        for name in names
        for method, level in levels.items()
        for seed in range(3)
    ]
    return Results(config, runs)


@pytest.mark.parametrize(("ours", "outcome"), [(1.0, "agrees"), (0.5, "agrees"), (1.5, "worse")])
def test_the_network_is_compared_with_the_gp_and_with_the_best(ours, outcome):
    verdicts = series_forecasts.judge(results({AUTO: ours, GP: 1.0, NAIVE: 2.0}))
    assert [verdict.outcome for verdict in verdicts] == [outcome] * 4
    assert {verdict.whose for verdict in verdicts} == {"ours"}


def test_the_gp_has_the_kernel_of_the_network(monkeypatch):
    waves = Split(X / 12, WAVE + 0.05 * np.random.default_rng(1).standard_normal(60))
    monkeypatch.setattr(series_forecasts, "prepared", lambda name, most_rows: waves)
    config = {**series_forecasts.PRESETS["smoke"], "series": ["airline"]}
    config["settings"] = {"hidden_layer_sizes": [5], "max_iter": 20, "input_kernel": "periodic"}
    (found,) = series_forecasts.compute(config, f"airline {GP}", [0])
    assert found.metrics["rmse"] < 0.2  # a kernel without a period would not get there
    assert found.arrays["known_y"].shape == (48,)
    assert found.arrays["mean"].shape == (12,)
