"""What a diagnosis says, and how it is read: findings, the report, the table."""

import pytest

from metaprior.diagnosis import Diagnosis, Finding, LeftOut

FINE = Finding("signal", "ok", "The function explains 97% of the variance.", "", {"explained_share": 0.97})
NOTED = Finding("hidden_units", "note", "Only 2 of the 50 units are at work.", "A smaller network would do.")
WRONG = Finding(
    "convergence", "warning", "Training took all its 20 steps.", "Raise max_iter (20 now).", {"n_iter": 20.0}
)
MISSING = LeftOut("pareto_k", "the model keeps no training rows.")


def test_a_diagnosis_is_in_order_unless_a_finding_is_a_warning():
    assert Diagnosis("A model", (FINE, NOTED)).ok
    diagnosis = Diagnosis("A model", (FINE, WRONG, NOTED))
    assert not diagnosis.ok
    assert diagnosis.warnings == (WRONG,)
    assert list(diagnosis) == [FINE, WRONG, NOTED]


def test_a_finding_is_looked_up_by_its_name():
    diagnosis = Diagnosis("A model", (FINE, WRONG), (MISSING,))
    assert diagnosis["convergence"].numbers["n_iter"] == 20
    with pytest.raises(KeyError, match="expected one of .*signal.*left out: the model keeps no training rows"):
        diagnosis["pareto_k"]


def test_the_report_begins_with_what_is_wrong_and_says_what_to_do():
    report = str(Diagnosis("A model on 40 held-out rows", (FINE, WRONG, NOTED), (MISSING,)))
    lines = report.splitlines()
    assert lines[:2] == ["A model on 40 held-out rows", "1 warning and 1 note in 3 checks."]
    order = [report.index(found.name) for found in (WRONG, NOTED, FINE, MISSING)]
    assert order == sorted(order)
    assert "What to do: Raise max_iter (20 now)." in report
    assert max(map(len, lines)) <= 100
    assert repr(Diagnosis("A model", (FINE,))) == str(Diagnosis("A model", (FINE,)))


def test_a_report_without_warnings_says_that_nothing_needs_to_be_changed():
    assert "Nothing needs to be changed: 1 check is in order, with 1 note." in str(Diagnosis("A model", (FINE, NOTED)))


def test_the_table_has_a_row_for_each_finding():
    table = Diagnosis("A model", (FINE, WRONG)).to_frame()
    assert list(table.columns) == ["name", "severity", "sentence", "advice", "numbers"]
    assert table["name"].tolist() == ["signal", "convergence"]
    assert table["numbers"][1] == {"n_iter": 20.0}


def test_a_finding_has_a_known_severity_and_a_warning_has_advice():
    with pytest.raises(ValueError, match="severity: expected one of .*got 'bad'"):
        Finding("signal", "bad", "A sentence.")
    with pytest.raises(ValueError, match="signal: expected a warning to say what to do"):
        Finding("signal", "warning", "A sentence.")
