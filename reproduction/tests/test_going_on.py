"""A reproduction that was stopped or killed at any moment goes on and ends with the same numbers."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tosses
from metaprior_reproduction.frame.store import OtherConfigurationError
from tossing import BENT, FAIR, contents, counting, reproduced, run_files, session, without_times

#: The fair coin has a metric that is infinite.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in subtract")
SCRIPT = Path(__file__).parent / "killed_reproduction.py"


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
    assert begun == [(method, seeds) for seeds in ((0, 1), (2, 3), (4,)) for method in (FAIR, BENT)]


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
