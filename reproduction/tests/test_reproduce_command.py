"""`metaprior reproduce`: what it lists, makes, says of failures, and how long it thinks it will take."""

import dataclasses
import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

import tosses
from metaprior_reproduction.datasets import DataError
from metaprior_reproduction.frame.progress import Call, Watch, duration
from tossing import BENT, failing, run_files

#: The fair coin has a metric that is infinite.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in subtract")


def test_the_list_has_ids_titles_and_claims(run, only_tosses):
    code, out, _ = run("reproduce", "--list")
    assert code == 0
    assert out == f"tosses: {only_tosses.title}\n  {only_tosses.claim}\n"
    code, out, _ = run("reproduce", "--list", "--json")
    assert json.loads(out) == {"items": [{"id": "tosses", "title": only_tosses.title, "claim": only_tosses.claim}]}


def test_the_command_makes_results_and_a_page(run, only_tosses, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("reproduce", "all", "--seeds", "2")
    assert code == 0
    assert "tosses (smoke, 2 seeds" in out
    assert "  worse   The fair coin never falls on heads." in out
    assert out.count("whose method: baseline") == 1
    assert "whose method: ours" not in out
    assert "4 runs to do, 0 kept from before. Now: tosses, fair, seed 0." in err
    assert re.search(r"\[2/4\] tosses, Coin \[0\.8\] & <bent>, seed 0: .* s\. Now: tosses, fair, seed 1\. About", err)
    assert "All runs are done." in err
    code, out, _ = run("report", "reproduced-smoke", "--json")
    assert json.loads(out) == {
        "page": str(Path("reproduced-smoke") / "report.html"),
        "items": ["tosses"],
        "verdicts": {
            "ours": {"agrees": 1, "better": 0, "worse": 0},
            "as published": {"agrees": 0, "better": 0, "worse": 0},
            "baseline": {"agrees": 0, "better": 0, "worse": 1},
        },
    }
    assert (tmp_path / "reproduced-smoke" / "report.html").exists()


def test_quiet_says_nothing_and_json_is_one_object(run, only_tosses, tmp_path):
    code, out, err = run("reproduce", "tosses", "--out", tmp_path, "--quiet", "--json")
    assert (code, err) == (0, "")
    (item,) = json.loads(out)["items"]
    assert item["id"] == "tosses"
    assert item["rows"][0]["metrics"]["never"] == {"mean": None, "se": None, "n": 3}


def test_failures_give_a_non_zero_exit_and_are_named(run, only_tosses, tmp_path, monkeypatch):
    module = importlib.import_module("metaprior_reproduction.items.tosses")
    monkeypatch.setattr(module, "ITEM", dataclasses.replace(only_tosses, compute=failing))
    code, out, err = run("reproduce", "tosses", "--out", tmp_path)
    assert (code, out) == (1, "")
    assert "metaprior: 3 failed; all other runs are kept" in err
    assert "tosses, fair, seed 0; tosses, fair, seed 1; tosses, fair, seed 2: ArithmeticError: the coin stands" in err
    code, out, _ = run("reproduce", "tosses", "--out", tmp_path, "--json")
    assert code == 1
    error = json.loads(out)["error"]
    assert len(error["failures"]) == 3
    assert error["failures"][0]["item"] == "tosses"


def test_data_that_are_missing_are_told_in_words_and_once_in_the_list(run, only_tosses, tmp_path, monkeypatch):
    def without_data(config, method, seeds):
        raise DataError("coins.csv: cannot be downloaded; check the network.")

    module = importlib.import_module("metaprior_reproduction.items.tosses")
    monkeypatch.setattr(module, "ITEM", dataclasses.replace(only_tosses, compute=without_data))
    code, _, err = run("reproduce", "tosses", "--out", tmp_path, "--seeds", "2")
    assert code == 1
    assert "Traceback" not in err
    log, listed = err.split("metaprior: 4 failed")
    assert log.count("coins.csv") == 4
    runs = "; ".join(f"tosses, {method}, seed {seed}" for seed in range(2) for method in tosses.CHANCES)
    assert listed.endswith(f"  {runs}: coins.csv: cannot be downloaded; check the network.\n")


def test_an_interrupt_keeps_what_is_done_and_says_so(run, only_tosses, tmp_path, monkeypatch):
    def interrupted(config, method, seeds):
        if (method, *seeds) == (BENT, 1):
            raise KeyboardInterrupt
        return tosses.compute(config, method, seeds)

    module = importlib.import_module("metaprior_reproduction.items.tosses")
    monkeypatch.setattr(module, "ITEM", dataclasses.replace(only_tosses, compute=interrupted))
    code, _, err = run("reproduce", "tosses", "--out", tmp_path)
    assert code == 130
    assert "the same command resumes from here" in err
    assert len(run_files(tmp_path)) == 3


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ([], "expected the id of an item, or all"),
        (["coins"], "there is no item 'coins'; expected all, or some of tosses"),
        (["tosses", "--seeds", "0"], "expected a whole number, at least 1; got '0'"),
        (["tosses", "--preset", "large"], "invalid choice: 'large'"),
    ],
)
def test_a_command_that_is_not_understood_is_told(run, only_tosses, words, match):
    code, _, err = run("reproduce", *words)
    assert code == 2
    assert match in err


def test_time_left_is_that_of_runs_like_those_that_are_left():
    calls = [Call("a", "slow", (0, 1)), Call("a", "new", (0,)), Call("b", "other", (0, 1, 2))]
    watch = Watch(calls, 1, {("a", "slow"): [10.0, 20.0], ("a", "fast"): [0.0]}, quiet=True)
    # two runs like those before, one like those of its item, three like all
    assert watch.seconds_left() == pytest.approx(2 * 15 + 1 * 10 + 3 * 10)
    watch.ended(calls[0], 4.0, None)
    assert watch.seconds_left() == pytest.approx(4 * np.mean([10, 20, 2, 2, 0]))
    assert Watch(calls, 1, {}, quiet=True).seconds_left() is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.96, "10 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3599.7, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words
