"""The frame keeps runs one by one, never mixes configurations, and loses nothing to a method that fails."""

import dataclasses
import json
import os
import re
import shutil
import signal

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_array_equal

import tosses
from metaprior.cli import main
from metaprior_reproduction.frame.running import Session, make_study
from metaprior_reproduction.frame.store import ENDING, OtherConfigurationError, Store
from metaprior_reproduction.parts.item import Outcome, Run
from tossing import BENT, FAIR, contents, counting, failing, reproduced, run_files, session, without_times

#: The fair coin has a metric that is infinite.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in subtract")


def test_result_has_every_run_and_means_with_standard_errors(whole):
    result = json.loads((whole / "tosses" / "result.json").read_text())
    assert (result["id"], result["preset"]) == ("tosses", "smoke")
    assert result["config"] == {"seeds": 3, "num_tosses": 20, "sizes": [1, 2]}
    assert {"metaprior", "python", "jax", "numpy", "machine"} <= result["versions"].keys()
    assert [(run["method"], run["seed"]) for run in result["runs"]] == [(m, s) for m in (FAIR, BENT) for s in range(3)]
    for row, method in zip(result["rows"], (FAIR, BENT), strict=True):
        values = [tosses.tossed(result["config"], method, seed, 1).metrics["heads"] for seed in range(3)]
        assert [run["metrics"]["heads"] for run in result["runs"] if run["method"] == method] == values
        assert row["method"] == method
        assert row["metrics"]["heads"]["n"] == 3
        assert row["metrics"]["heads"]["mean"] == pytest.approx(sum(values) / 3, rel=1e-14)
        spread = np.sqrt(sum((value - sum(values) / 3) ** 2 for value in values) / 2)
        assert row["metrics"]["heads"]["se"] == pytest.approx(spread / np.sqrt(3), rel=1e-12)
    assert sum(run["seconds"] for run in result["runs"]) == pytest.approx(result["seconds"])
    assert result["rows"][0]["metrics"]["never"]["mean"] is None  # JSON has no infinity


def test_claim_paper_verdicts_and_figures_stand_with_the_numbers(whole):
    result = json.loads((whole / "tosses" / "result.json").read_text())
    item = tosses.ITEM
    assert (result["title"], result["claim"], result["notes"]) == (item.title, item.claim, item.notes)
    assert result["paper"] == item.paper
    assert [verdict["outcome"] for verdict in result["verdicts"]] == ["agrees", "worse"]
    assert result["figures"] == ["heads"]
    assert (whole / "tosses" / "heads.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (whole / "tosses" / "heads.svg").read_bytes()


def test_a_second_call_computes_nothing_and_writes_the_same_bytes(finished):
    before, begun = contents(finished), []
    reproduced(finished, compute=counting(begun))
    assert begun == []
    assert contents(finished) == before


def test_arrays_and_numbers_come_back_as_they_were(tmp_path):
    store = Store(tmp_path / "tosses", "tosses", "smoke", {"seeds": 1})
    arrays = {
        "alone": np.float32(0.1),
        "none": np.zeros((0, 3), np.int64),
        "turned": np.arange(6.0).reshape(2, 3).T,
        "flags": np.array([True, False]),
    }
    metrics = {"third": 1 / 3, "infinite": np.inf, "whole": np.int64(2)}
    store.save(Run("a", 0, Outcome(metrics, arrays), 1.5))
    run = store.load("a", 0).run
    assert run.outcome.metrics == metrics
    assert run.seconds == 1.5
    for name, array in arrays.items():
        assert run.outcome.arrays[name].dtype == array.dtype
        assert_array_equal(run.outcome.arrays[name], array, strict=True)


def test_texts_in_arrays_are_refused_in_words(tmp_path):
    store = Store(tmp_path / "tosses", "tosses", "smoke", {"seeds": 1})
    with pytest.raises(TypeError, match="array 'labels' of a run: expected numbers; got <U3"):
        store.save(Run("a", 0, Outcome({}, {"labels": np.array(["one"])}), 1.0))


def test_methods_with_names_that_are_alike_have_files_of_their_own(tmp_path):
    names = ["A [b]", "A-b", "a b", "A/b", "../a/b"]
    result = reproduced(
        tmp_path,
        seeds=1,
        methods=lambda config: names,
        compute=lambda config, method, seeds: [Outcome({"n": float(names.index(method))}) for _ in seeds],
        judge=lambda results: [],
        draw=lambda results: {},
    )
    assert [row["metrics"]["n"]["mean"] for row in result["rows"]] == [0, 1, 2, 3, 4]
    assert len(run_files(tmp_path)) == 5


def test_several_processes_find_what_one_finds(tmp_path, whole):
    result = reproduced(tmp_path, jobs=2)
    assert without_times(result) == without_times(json.loads((whole / "tosses" / "result.json").read_text()))


def test_figures_that_are_drawn_no_more_are_deleted(finished):
    draw = lambda results: {"other": tosses.draw(results)["heads"]}  # noqa: E731
    reproduced(finished, draw=draw)
    assert set(contents(finished)) == {"result.json", "other.png", "other.svg"}


def test_figures_are_drawn_and_written_in_the_style_of_the_plots(finished, monkeypatch):
    usual, seen = dict(matplotlib.rcParams), []

    def draw(results):
        seen.append(matplotlib.rcParams["axes.spines.top"])
        return tosses.draw(results)

    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: seen.append(matplotlib.rcParams["axes.spines.top"]))
    reproduced(finished, draw=draw)
    assert seen == [False, False, False]  # drawn once, written as PNG and as SVG
    assert dict(matplotlib.rcParams) == usual


@pytest.mark.parametrize("left", ["runs", "result"])
def test_another_configuration_is_refused_whatever_is_left_of_it(finished, left):
    if left == "result":
        shutil.rmtree(finished / "tosses" / "runs")
    else:
        (finished / "tosses" / "result.json").unlink()
    changed = {"smoke": {"seeds": 3, "num_tosses": 21, "extra": [1]}}
    words = "num_tosses 21, extra .1., no sizes; it has num_tosses 20, no extra, sizes .1, 2.. Give another --out, or "
    with pytest.raises(OtherConfigurationError, match=f"expected {words}--force to start tosses anew"):
        session(finished, presets=changed)


def test_another_preset_of_the_same_configuration_is_refused(finished):
    same = {"paper": tosses.ITEM.presets["smoke"]}
    with pytest.raises(OtherConfigurationError, match='expected preset "paper"; it has preset "smoke"'):
        session(finished, preset="paper", presets=same)


def test_force_starts_anew_and_leaves_the_files_of_others(finished, only_tosses, capsys):
    (finished / "tosses" / "notes.txt").write_text("mine")
    half = finished / "tosses" / "runs" / f".fair.0{ENDING}.half"
    half.write_text("half a run")
    words = ["reproduce", "tosses", "--preset", "paper", "--out", str(finished)]
    assert main(words) == 1
    assert "is of another configuration" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0
    assert json.loads((finished / "tosses" / "result.json").read_text())["preset"] == "paper"
    assert (finished / "tosses" / "notes.txt").read_text() == "mine"
    assert not half.exists()
    assert len(run_files(finished)) == 10


def test_a_result_that_is_no_result_is_told(finished):
    (finished / "tosses" / "result.json").write_text('{"id": "tosses"}')
    with pytest.raises(ValueError, match=r"result.json: expected a complete result .*'config'.*Delete the file"):
        session(finished)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_method_that_raises_takes_nothing_else_with_it(tmp_path, jobs):
    done = session(tmp_path, compute=failing, jobs=jobs).run()
    assert done.results == []
    assert sorted(failure.what for failure in done.failures) == [f"tosses, fair, seed {seed}" for seed in range(3)]
    assert re.match(r"ArithmeticError: the coin stands on its edge \(tossing.py, line \d+\)", done.failures[0].error)
    assert len(run_files(tmp_path)) == 3
    begun = []
    reproduced(tmp_path, compute=counting(begun))
    assert begun == [(FAIR, (seed,)) for seed in range(3)]


def test_an_item_that_fails_leaves_the_other_items_alone(tmp_path):
    broken = make_study("broken", dataclasses.replace(tosses.ITEM, compute=failing), "smoke", tmp_path)
    done = Session([broken, make_study("tosses", tosses.ITEM, "smoke", tmp_path)]).run()
    assert [result["id"] for result in done.results] == ["tosses"]
    assert {failure.id for failure in done.failures} == {"broken"}


def test_an_item_that_cannot_be_judged_keeps_its_runs(tmp_path):
    done = session(tmp_path, judge=lambda results: [][0]).run()
    assert [failure.what for failure in done.failures] == ["tosses, verdicts and figures"]
    assert len(run_files(tmp_path)) == 6
    begun = []
    reproduced(tmp_path, compute=counting(begun))
    assert begun == []


def test_too_few_outcomes_are_told(tmp_path):
    done = session(tmp_path, seeds=2, together=2, compute=lambda *a: tosses.compute(*a)[:1]).run()
    assert "expected 2 outcomes, one per seed; got 1" in done.failures[0].error


def ending(config, method, seeds):
    if method == BENT:
        os.kill(os.getpid(), signal.SIGKILL)
    return tosses.compute(config, method, seeds)


@pytest.mark.slow
def test_a_process_that_dies_is_told_and_what_was_done_is_kept(tmp_path):
    done = session(tmp_path, compute=ending, jobs=2).run()
    assert {failure.what for failure in done.failures} >= {f"tosses, {BENT}, seed {seed}" for seed in range(3)}
    assert "fewer --jobs" in done.failures[0].error
    begun = []
    reproduced(tmp_path, compute=counting(begun))
    assert len(begun) <= len(done.failures)
