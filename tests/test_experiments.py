"""The frame of the experiments: runs are kept one by one, go on after any kill, never mix, and end on one page."""

import dataclasses
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import tosses
from metaprior import experiments
from metaprior.cli import main
from metaprior.datasets import DataError
from metaprior.experiments import Outcome, Run
from metaprior.experiments.progress import Call, Watch, duration
from metaprior.experiments.running import Session, make_study
from metaprior.experiments.store import ENDING, OtherConfigurationError, Store
from metaprior.report.numbers import number_text

FAIR, BENT = tosses.CHANCES
#: The fair coin has a metric that is infinite.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in subtract")
SCRIPT = Path(__file__).parent / "killed_reproduction.py"


def session(out, preset="smoke", seeds=None, jobs=1, **changes):
    """Return a session of the tosses, with changes to the item."""
    study = make_study("tosses", dataclasses.replace(tosses.ITEM, **changes), preset, Path(out), seeds)
    study.store.check()
    return Session([study], jobs)


def reproduced(out, **options):
    """Run the tosses to their end and return the result."""
    done = session(out, **options).run()
    assert done.failures == []
    return done.results[0]


def counting(begun, function=tosses.compute):
    """Return a compute that notes its calls."""

    def compute(config, method, seeds):
        begun.append((method, tuple(seeds)))
        return function(config, method, seeds)

    return compute


def run_files(out):
    return sorted((Path(out) / "tosses" / "runs").glob(f"*{ENDING}"))


def contents(out):
    return {path.name: path.read_bytes() for path in (Path(out) / "tosses").iterdir() if path.is_file()}


def without_times(result):
    runs = [{name: value for name, value in run.items() if name != "seconds"} for run in result["runs"]]
    return {**{name: value for name, value in result.items() if name != "seconds"}, "runs": runs}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder in which the tosses were reproduced at once."""
    out = tmp_path_factory.mktemp("whole")
    reproduced(out)
    return out


@pytest.fixture
def finished(whole, tmp_path):
    """A copy of that folder."""
    return shutil.copytree(whole, tmp_path / "finished")


@pytest.fixture
def only_tosses(tmp_path, monkeypatch):
    """Let the tosses be the only item there is."""
    (tmp_path / "items").mkdir()
    (tmp_path / "items" / "tosses.py").write_text("from tosses import ITEM\n")
    monkeypatch.setattr(experiments, "__path__", [str(tmp_path / "items")])
    yield tosses.ITEM
    sys.modules.pop("metaprior.experiments.tosses", None)


# --- results ------------------------------------------------------------------------------


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


# --- going on -----------------------------------------------------------------------------


def killed(out, log, event, number, together=1):
    """Run the tosses in a process that kills itself, and return how it ended."""
    words = [out, log, together, event, number]
    done = subprocess.run([sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-3000:]
    return done.returncode


def test_killed_within_and_between_runs_it_goes_on_and_loses_only_the_run_under_way(tmp_path, whole):
    out, log = tmp_path / "out", tmp_path / "log"
    for (event, number), num_kept in {("computing", 2): 1, ("unnamed", 1): 1, ("renamed", 2): 3}.items():
        assert killed(out, log, event, number) == -signal.SIGKILL
        assert len(run_files(out)) == num_kept
        assert not (out / "tosses" / "result.json").exists()
    assert killed(out, log, "none", 0) == 0
    begun = log.read_text().splitlines()
    assert len(begun) == 6 + 2  # two kills came in the middle of a run, one between two
    assert len(set(begun)) == 6
    found, expected = (json.loads((path / "tosses" / "result.json").read_text()) for path in (out, whole))
    assert without_times(found) == without_times(expected)
    assert contents(out)["heads.svg"] == contents(whole)["heads.svg"]
    assert contents(out)["heads.png"] == contents(whole)["heads.png"]


@pytest.mark.slow
@pytest.mark.parametrize("event", ["computing", "before", "written", "unnamed", "renamed"])
@pytest.mark.parametrize("number", [2, 5])
@pytest.mark.parametrize("together", [1, 2])
def test_killed_at_any_moment_it_ends_with_the_same_numbers(tmp_path, event, number, together):
    out, log = tmp_path / "out", tmp_path / "log"
    killed(out, log, event, number, together)
    assert len(log.read_text().splitlines()) - len(run_files(out)) <= together
    assert killed(out, log, "none", 0, together) == 0
    found, expected = json.loads((out / "tosses" / "result.json").read_text()), reproduced(tmp_path, together=together)
    assert without_times(found) == without_times(expected)


def test_a_call_that_was_cut_short_is_made_again_in_the_same_company(tmp_path):
    first, begun = reproduced(tmp_path, together=2), []
    alone = tosses.tossed(first["config"], FAIR, 0, 1).metrics["heads"]
    assert first["runs"][0]["metrics"]["heads"] != alone  # company shows in the numbers
    session(tmp_path).studies["tosses"].store.path(FAIR, 0).unlink()
    again = reproduced(tmp_path, together=2, compute=counting(begun))
    assert begun == [(FAIR, (0, 1))]
    assert without_times(again) == without_times(first)


def test_seeds_come_at_most_so_many_together(tmp_path):
    begun = []
    reproduced(tmp_path, seeds=5, together=2, compute=counting(begun))
    assert begun == [(method, seeds) for method in (FAIR, BENT) for seeds in ((0, 1), (2, 3), (4,))]


def test_a_truncated_run_is_computed_again(finished):
    before, begun = contents(finished), []
    path = session(finished).studies["tosses"].store.path(BENT, 1)
    path.write_bytes(path.read_bytes()[:-7])
    result = reproduced(finished, compute=counting(begun))
    assert begun == [(BENT, (1,))]
    assert without_times(result) == without_times(json.loads(before["result.json"]))


def test_more_seeds_are_added_to_those_that_are_there(finished):
    begun = []
    result = reproduced(finished, seeds=4, compute=counting(begun))
    assert begun == [(FAIR, (3,)), (BENT, (3,))]
    assert result["config"]["seeds"] == result["rows"][0]["metrics"]["heads"]["n"] == 4


def test_fewer_seeds_do_not_replace_a_result_of_more(finished):
    with pytest.raises(OtherConfigurationError, match=r"has 3 seeds, more than the 2 asked for; .*another --out"):
        session(finished, seeds=2)


# --- what does not belong together ----------------------------------------------------------


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
    with pytest.raises(ValueError, match=r"result.json is no result .*'config'.*delete it"):
        session(finished)


# --- what fails ---------------------------------------------------------------------------


def failing(config, method, seeds):
    if method == FAIR:
        raise ArithmeticError("the coin stands on its edge")
    return tosses.compute(config, method, seeds)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_method_that_raises_takes_nothing_else_with_it(tmp_path, jobs):
    done = session(tmp_path, compute=failing, jobs=jobs).run()
    assert done.results == []
    assert sorted(failure.what for failure in done.failures) == [f"tosses, fair, seed {seed}" for seed in range(3)]
    assert re.match(r"ArithmeticError: the coin stands on its edge \(test_exp.*, line \d+\)", done.failures[0].error)
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
    assert "expected 2 outcomes, one a seed; got 1" in done.failures[0].error


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


# --- the command --------------------------------------------------------------------------


@pytest.fixture
def run(capsys):
    """Run a command and return its exit code, stdout and stderr."""

    def call(*words):
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


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
    assert "4 runs to do, 0 kept from before. Now: tosses, fair, seed 0." in err
    assert re.search(r"\[2/4\] tosses, fair, seed 1: .* s\. Now: tosses, Coin \[0\.8\] & <bent>, seed 0\. About", err)
    assert "All runs are done." in err
    code, out, _ = run("report", "reproduced-smoke", "--json")
    assert json.loads(out) == {
        "page": str(Path("reproduced-smoke") / "report.html"),
        "items": ["tosses"],
        "verdicts": {"agrees": 1, "better": 0, "worse": 1},
    }
    assert (tmp_path / "reproduced-smoke" / "report.html").exists()


def test_quiet_says_nothing_and_json_is_one_object(run, only_tosses, tmp_path):
    code, out, err = run("reproduce", "tosses", "--out", tmp_path, "--quiet", "--json")
    assert (code, err) == (0, "")
    (item,) = json.loads(out)["items"]
    assert item["id"] == "tosses"
    assert item["rows"][0]["metrics"]["never"] == {"mean": None, "se": None, "n": 3}


def test_failures_give_a_non_zero_exit_and_are_named(run, only_tosses, tmp_path, monkeypatch):
    module = importlib.import_module("metaprior.experiments.tosses")
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

    module = importlib.import_module("metaprior.experiments.tosses")
    monkeypatch.setattr(module, "ITEM", dataclasses.replace(only_tosses, compute=without_data))
    code, _, err = run("reproduce", "tosses", "--out", tmp_path, "--seeds", "2")
    assert code == 1
    assert "Traceback" not in err
    log, listed = err.split("metaprior: 4 failed")
    assert log.count("coins.csv") == 4
    runs = "; ".join(f"tosses, {method}, seed {seed}" for method in tosses.CHANCES for seed in range(2))
    assert listed.endswith(f"  {runs}: coins.csv: cannot be downloaded; check the network.\n")


def test_an_interrupt_keeps_what_is_done_and_says_so(run, only_tosses, tmp_path, monkeypatch):
    def interrupted(config, method, seeds):
        if method == BENT:
            raise KeyboardInterrupt
        return tosses.compute(config, method, seeds)

    module = importlib.import_module("metaprior.experiments.tosses")
    monkeypatch.setattr(module, "ITEM", dataclasses.replace(only_tosses, compute=interrupted))
    code, _, err = run("reproduce", "tosses", "--out", tmp_path)
    assert code == 130
    assert "the same command goes on" in err
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


# --- pages ----------------------------------------------------------------------------------


class Links(HTMLParser):
    """What a page refers to, its text, and whether its elements are closed."""

    def __init__(self):
        super().__init__()
        self.links, self.text, self.open = [], "", []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset", "data", "action", "poster")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def page(finished, run):
    """The HTML page of the tosses, made where there are no files of runs."""
    shutil.rmtree(finished / "tosses" / "runs")
    assert run("report", finished)[0] == 0
    return (finished / "report.html").read_text()


def test_the_page_says_everything(page, whole):
    parsed = Links()
    parsed.feed(page)
    assert parsed.open == []
    result = json.loads((whole / "tosses" / "result.json").read_text())
    expected = [
        tosses.ITEM.title,
        tosses.ITEM.claim,
        tosses.ITEM.notes,
        "Third coin",
        "(0.4375)",
        "(0.125)",
        "num_tosses",
    ]
    for row in result["rows"]:
        expected += [row["method"], *[number_text(value["mean"], value["se"]) for value in row["metrics"].values()]]
    expected += [text for verdict in result["verdicts"] for text in (verdict["claim"], verdict["evidence"])]
    expected += [
        "Agrees.",
        "Worse.",
        "Computed in",
        *[f"{name} {number}" for name, number in result["versions"].items()],
    ]
    for text in expected:
        assert text in parsed.text, text


def test_the_page_needs_nothing_beside_itself(page):
    parsed = Links()
    parsed.feed(page)
    images = [link for link in parsed.links if link.startswith("data:image/svg+xml;base64,")]
    assert len(images) == 1
    assert all(link.startswith(("data:", "#")) for link in parsed.links)
    outside = re.sub(r"data:[^\"]*", "", page)
    assert "http" not in outside
    assert "@import" not in outside
    assert "url(" not in outside
    assert "<script" not in outside
    assert "prefers-color-scheme: dark" in outside


def test_a_large_svg_gives_way_to_its_png(finished, run):
    svg = finished / "tosses" / "heads.svg"
    svg.write_bytes(svg.read_bytes() + b" " * 500_000)
    assert run("report", finished)[0] == 0
    assert "data:image/png;base64," in (finished / "report.html").read_text()


def test_a_page_is_not_overwritten_unasked(page, finished, run):
    code, _, err = run("report", finished)
    assert code == 1
    assert "report.html exists; give another name, or --force" in err
    assert run("report", finished, "--force")[0] == 0


def test_markdown_links_lead_to_the_figures(finished, run, tmp_path):
    (tmp_path / "docs").mkdir()
    target = tmp_path / "docs" / "reproduction.md"
    assert run("report", finished, "--markdown", target)[0] == 0
    text = target.read_text()
    (link,) = re.findall(r"!\[.*\]\((.*)\)", text)
    assert (target.parent / link).resolve() == (finished / "tosses" / "heads.png").resolve()
    assert "## tosses" in text
    assert "- **Worse.** The fair coin never falls on heads. Found: share of heads" in text
    assert "| Coin \\[0.8\\] & \\<bent\\> |" in text
    assert "(0.4375)" in text
    assert "Coins are simulated \\| not tossed." in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in tables} == {5, 9}  # 4 columns of numbers, 8 of the overview


def test_many_metrics_go_down_the_page(tmp_path, run):
    def compute(config, method, seeds):
        return [Outcome({f"rmse_{k}": float(k + seed) for k in range(30)}) for seed in seeds]

    reproduced(tmp_path, compute=compute, judge=lambda results: [], draw=lambda results: {})
    assert run("report", tmp_path)[0] == 0
    text = (tmp_path / "report.html").read_text()
    assert "<th>rmse_29</th>" in text
    assert "30.00 ± 0.58" in text
    assert "<details><summary>31 metrics</summary>" in text  # the paper's one is another


def test_a_folder_without_results_is_told(tmp_path, run):
    code, _, err = run("report", tmp_path)
    assert code == 1
    assert "expected results as 'metaprior reproduce ITEM --out" in err


def test_a_figure_that_is_gone_is_told(finished, run):
    (finished / "tosses" / "heads.svg").unlink()
    assert run("report", finished)[0] == 0  # the PNG serves
    (finished / "tosses" / "heads.png").unlink()
    code, _, err = run("report", finished, "--force")
    assert code == 1
    assert "expected the figure heads.png or heads.svg beside result.json" in err


@pytest.mark.parametrize(
    ("mean", "se", "text"),
    [
        (0.10543, 0.00212, "0.1054 ± 0.0021"),
        (-0.8312, 0.0249, "-0.831 ± 0.025"),
        (88.12, 31.4, "88 ± 31"),
        (0.10543, None, "0.1054"),
        (2.0, 0.0, "2"),
        (None, None, "not finite"),
        (1.234567e7, 2.5e5, "1.235e+07 ± 2.5e+05"),
    ],
)
def test_numbers_are_told_to_the_second_digit_of_their_error(mean, se, text):
    assert number_text(mean, se) == text


# --- the items of the folder --------------------------------------------------------------


@pytest.mark.parametrize("name", experiments.names())
def test_every_item_has_a_title_a_claim_and_both_presets(name):
    item = experiments.item_named(name)
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
        experiments.item_named("figure-9")
