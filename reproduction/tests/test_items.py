"""Every item of the folder, at its smoke preset, through the frame: numbers for all methods, figures and verdicts."""

import json
import math
import os
from pathlib import Path

import pytest

from metaprior_reproduction import items
from metaprior_reproduction.datasets import files
from metaprior_reproduction.frame.running import make_study, reproduce

#: Items whose smoke preset takes longer than a daily test should.
LONG = frozenset(
    {
        "active-toy",
        "active-uci",
        "approx-classification",
        "approx-regression",
        "architectures",
        "bandit",
        "data-regimes",
        "default-tables",
        "faithfulness",
        "fnp-1d",
        "gap-splits",
        "four-class",
        "misspecified",
        "mnist-ood",
        "mnist-predictive",
        "multitask",
        "optimisation",
        "period-sweep",
        "prior-local",
        "weight-covariance",
        "scaling",
        "series-forecasts",
        "uci-regression",
        "versus-gp",
    }
)
ITEMS = [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in items.names()]


@pytest.fixture
def no_downloads(monkeypatch):
    """Skip what needs files that are not on this machine, where no folder of data is named."""

    def skip(file, target):
        pytest.skip(f"needs the data file {file.name}: METAPRIOR_DATA names no folder that has it")

    if not os.environ.get("METAPRIOR_DATA"):
        monkeypatch.setattr(files, "download", skip)


@pytest.mark.parametrize("name", ITEMS)
def test_smoke_preset_gives_numbers_figures_and_verdicts(name, tmp_path, no_downloads):
    done = reproduce([name], "smoke", tmp_path)
    assert done.failures == []
    item, result = items.item_named(name), json.loads((tmp_path / name / "result.json").read_text())
    methods = list(dict.fromkeys(item.methods(item.presets["smoke"])))
    assert [row["method"] for row in result["rows"]] == methods
    assert len(result["runs"]) == len(methods) * result["config"]["seeds"]
    for run in result["runs"]:
        for metric, value in run["metrics"].items():
            assert value is not None, (run["method"], run["seed"], metric)
            assert math.isfinite(value)
    assert any(run["metrics"] for run in result["runs"])
    assert result["figures"]
    for figure in result["figures"]:
        assert (tmp_path / name / f"{figure}.png").stat().st_size > 1000
        assert (tmp_path / name / f"{figure}.svg").stat().st_size > 1000
    assert result["verdicts"]
    assert all(verdict["claim"] and verdict["evidence"] for verdict in result["verdicts"])


@pytest.mark.parametrize("name", items.names())
def test_every_item_has_a_title_a_claim_and_both_presets(name):
    item = items.item_named(name)
    assert item.title
    assert item.claim
    assert {"smoke", "paper"} <= set(item.presets)
    for preset in item.presets:
        study = make_study(name, item, preset, Path("nowhere"))
        assert study.store.config["seeds"] >= 1
        assert study.methods
        assert json.loads(json.dumps(study.store.identity)) == study.store.identity


def test_an_unknown_item_is_told_with_those_there_are():
    with pytest.raises(ValueError, match=r"unknown item 'figure-9'; expected one of .*prior-global"):
        items.item_named("figure-9")
