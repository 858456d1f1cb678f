"""Hostile tables: each is read right or refused in one line with its place, and nothing is written."""

import contextlib
import io
import json
import os

import pytest

from commands import FIT, ROWS, TABLE, Run, assert_one_line
from metaprior.cli import main
from metaprior.tables import TableError, learned_schema

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table and a model that was fitted to it."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "t.csv").write_text(TABLE, encoding="utf-8")
    with contextlib.chdir(folder):
        assert main([*FIT, "--ignore", "id", "--quiet"]) == 0
    return folder


@pytest.fixture
def run(place, capfd, monkeypatch):
    def call(*words):
        monkeypatch.chdir(place)
        capfd.readouterr()
        code = main([os.fspath(word) for word in words])
        captured = capfd.readouterr()
        return Run(code, captured.out.encode(), captured.err)

    return call


# --- tables that cannot be fitted -------------------------------------------------------------------------------------

NUMBERS = b"".join(b"%d,%f\n" % (number, number * number / 7) for number in range(ROWS))
BROKEN = {
    "no bytes": (b"", "is empty; expected a header and rows"),
    "blank lines": (b"\n\n\n", "is empty"),
    "a header": (b"x,y\n", "has a header but no rows"),
    "a header without an end": (b"x,y", "has a header but no rows"),
    "no target": (b"x,z\n1,2\n3,4\n", "no column 'y'; it has 'x', 'z'"),
    "no names": (b",\n1,2\n3,4\n", "no column 'y'; it has no column with a name"),
    "only the target": (b"y\n1\n2.5\n3\n", "no column is left to predict 'y' from"),
    "a name twice": (b"x,x,y\n1,2,3\n4,5,6\n", "more than one column called 'x'"),
    "the target twice": (b"y,x,y\n1,2,3\n4,5,6\n", "more than one column called 'y'"),
    "a name twice but for spaces": (b"x, x ,y\n1,2,3\n4,5,6\n", "more than one column called 'x'"),
    "a row too long": (b"x,y\n1,2\n4,5,6\n", "Expected 2 fields in line 3, saw 3"),
    "a row too short": (b"x,y\n1,2\n3\n", "row 2, column 'y': the value to predict is missing"),
    "an open quote": (b'x,y\n1,2\n"3,4\n', "EOF inside string"),
    "a NUL in a number": (b"x,y\n1\0,2\n" + NUMBERS, r"row 1, column 'x': expected a finite number; got '1\x00'"),
    "NULs": (bytes(1000), "has a header but no rows"),
    "lines of NULs": (b"\0\n\0\n\0\n", r"no column 'y'; it has '\x00'"),
    "every byte": (bytes(range(256)) * 50, "is not encoded in utf-8"),
    "UTF-16": ("x,y\n1,2\n3,4.5\n".encode("utf-16"), "is not encoded in utf-8"),
    "latin-1": (b"x\xe9,y\n1,2\n3,4.5\n", "--encoding cp1252"),
    "a zip archive": (b"PK\x03\x04" + bytes(100), "a zip archive or an Excel workbook"),
    "half a Parquet file": (b"PAR1" + bytes(100) + b"PAR1", "is not a Parquet file, or is incomplete"),
    "the start of a Parquet file": (b"PAR1", "is not a Parquet file, or is incomplete"),
    "a page": (b"<!doctype html>\n<html>\n</html>\n", "no column 'y'"),
    "a text among numbers": (b"x,y\n1,2\nabc,3\n4,5\n7,8\n", "row 2, column 'x': expected a finite number; got 'abc'"),
    "1e400": (b"x,y\n1e400,2\n3,4\n5,6.5\n", "row 1, column 'x': expected a finite number; got 'inf'"),
    "-1e400": (b"x,y\n-1e400,2\n3,4\n5,6.5\n", "row 1, column 'x': expected a finite number; got '-inf'"),
    "inf": (b"x,y\n1,2\ninf,4\n5,6.5\n", "row 2, column 'x': expected a finite number"),
    "nan": (b"x,y\n1,2\nnan,4\n5,6.5\n", "row 2, column 'x': the value is missing"),
    "400 digits": (b"x,y\n" + b"9" * 400 + b",1\n3,4\n5,6.5\n", "row 1, column 'x': expected a finite number"),
    "a million digits": (b"x,y\n" + b"9" * 1_000_000 + b",1\n3,4\n5,6.5\n", "characters left out"),
    "1e400 to predict": (b"x,y\n1,1e400\n3,4\n5,6.5\n", "row 1, column 'y': expected a finite number; got 'inf'"),
    "nan to predict": (b"x,y\n1,nan\n3,4\n5,6.5\n", "row 1, column 'y': the value to predict is missing"),
    "400 digits to predict": (b"x,y\n1," + b"9" * 400 + b"\n3,4\n5,6.5\n", "row 1, column 'y': most values"),
    "a text among numbers to predict": (b"x,y\n1,2.5\n3,n.a.\n5,6.5\n", "'y': most values to predict are numbers"),
    "19 digits to predict": (b"x,y\n1,9223372036854775808\n3,7\n", "numbers of more than 15 digits are not exact"),
    "30 February": (b"d,y\n2024-02-30,1\n2024-01-01,2.5\n2024-01-02,3\n", "row 1, column 'd': expected a date"),
    "day 0": (b"d,y\n2024-01-01,1\n0000-00-00,2.5\n2024-01-02,3\n", "row 2, column 'd': expected a date"),
    "25 o'clock": (b"d,y\n2024-01-01 25:00,1\n2024-01-01 12:00,2.5\n", "row 1, column 'd': expected a date"),
    "a zone of 99 hours": (b"d,y\n2024-02-20T00:00+99:99,1\n2024-01-01,2.5\n", "row 1, column 'd': expected a date"),
    "one row": (b"x,y\n1,2\n", "every value to predict is 2.0"),
    "one value": (b"x,y\n1,2\n1,3\n", "no column is left to predict 'y' from"),
    "many names": (b"id,y\n" + b"".join(b"n%d,%f\n" % (i, i / 7) for i in range(60)), "has 60 different texts"),
    "commands for a terminal": (b"x,\x1b]0;z\x07\n1,2\n3,4\n", r"no column 'y'; it has 'x', '\x1b]0;z\x07'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_table_that_cannot_be_fitted_is_one_line(run, tmp_path, name):
    content, part = BROKEN[name]
    (tmp_path / "t.csv").write_bytes(content)
    for command in ("fit", "compare"):
        ran = run(command, tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "new", "--quiet")
        assert_one_line(ran, 1, part)
        assert len(ran.err) < 3000
        assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize(("form", "part"), [("%d%d", "redefinition"), ("%", "stray %"), ("%Q", "bad directive")])
def test_a_format_that_describes_no_date_is_one_line(run, tmp_path, form, part):
    (tmp_path / "t.csv").write_text("d,y\n01.02.2024,1\n02.02.2024,2.5\n")
    words = ["--target", "y", "--out", tmp_path / "new", "--date", f"d:{form}"]
    assert_one_line(run("fit", tmp_path / "t.csv", *words), 1, f"column 'd': '{form}' is not a format of dates", part)


@pytest.mark.slow
def test_100_000_columns_are_one_line(run, tmp_path):
    row = ",".join(f"c{number}" for number in range(100_000))
    (tmp_path / "t.csv").write_text(f"{row}\n{'1,' * 99_999}1\n{'2,' * 99_999}2\n")
    ran = run("fit", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "new")
    assert_one_line(ran, 1, "the table has no column 'y'; it has 'c0', 'c1'", "(100000 in all)")


def test_texts_that_are_numbers_need_a_task():
    """Nothing decides silently that numbers with another decimal separator are the names of classes."""
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": ["0.5", "1.5", "2.5"]})
    with pytest.raises(TableError, match="row 1, column 'y': most values to predict are numbers, but this one was"):
        learned_schema(frame, "y")
    for task in ("regression", "classification"):
        assert learned_schema(frame, "y", task=task).target.task == task
    assert learned_schema(frame.assign(y=["1", "2", "3"]), "y").target.task == "classification"


# --- tables that are written in unusual ways --------------------------------------------------------------------------

PLAIN = TABLE.encode()
SAME = {
    "a byte-order mark": b"\xef\xbb\xbf" + PLAIN,
    "CRLF": PLAIN.replace(b"\n", b"\r\n"),
    "CR": PLAIN.replace(b"\n", b"\r"),
    "no last line end": PLAIN.removesuffix(b"\n"),
    "blank lines": PLAIN.replace(b"\n", b"\n\n"),
    "quotes": "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in TABLE.splitlines()).encode(),
    "spaces": PLAIN.replace(b",", b", "),
    "columns turned round": "\n".join(",".join(line.split(",")[::-1]) for line in TABLE.splitlines()).encode(),
}


@pytest.mark.parametrize("name", SAME)
def test_a_table_written_in_another_way_is_the_same_table(run, tmp_path, name):
    (tmp_path / "t.csv").write_bytes(SAME[name])
    usual = run("predict", "m.metaprior", "t.csv", "--quiet")
    assert run("predict", "m.metaprior", tmp_path / "t.csv", "--quiet") == usual
    assert usual.code == 0


CELLS = ["a\nb", "a\0b", 'say "no"', "a,b", " a", "\ta", "'a", "007", "1e5", "True", "青\u202e", "\x1b[31m"]


def test_copied_cells_read_back_the_same(run, tmp_path):
    """One row per cell, in order, however a cell is written."""
    frame = pd.DataFrame({"größe": 1.0, "färbe": "rot", "id": CELLS})
    frame.to_csv(tmp_path / "t.csv", index=False, quoting=1)
    words = ["predict", "m.metaprior", tmp_path / "t.csv", "--id", "id", "--out", tmp_path / "p.csv"]
    assert run(*words).code == 0
    back = pd.read_csv(tmp_path / "p.csv", dtype={"id": str}, keep_default_na=False)
    given = [cell.lstrip(" ") for cell in CELLS]  # spaces after a separator are not part of a cell
    assert back["id"].tolist() in (CELLS, given)


def test_a_carriage_return_in_a_cell_is_not_written_to_csv(run, tmp_path):
    """It would end the row, and every later prediction would stand beside another name."""
    pd.DataFrame({"größe": 1.0, "färbe": "rot", "id": ["a", "b\rc"]}).to_csv(tmp_path / "t.csv", index=False, quoting=1)
    words = ["predict", "m.metaprior", tmp_path / "t.csv", "--id", "id"]
    assert_one_line(run(*words), 1, "row 2, column 'id': a carriage return", "--out FILE.parquet")
    assert run(*words, "--out", tmp_path / "p.parquet").code == 0
    assert pd.read_parquet(tmp_path / "p.parquet")["id"].tolist() == ["a", "b\rc"]


# --- formulas ---------------------------------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "=cmd|' /C calc'!A0", '=HYPERLINK("x","y")', "＝1", "+49 30 1"]
HARMLESS = ["-7", "+1.5", "-1e-3", "a=b", "'=1", "", "plain", "青"]


@pytest.fixture
def with_formulas(tmp_path):
    cells = FORMULAS + HARMLESS
    pd.DataFrame({"größe": 1.0, "färbe": "rot", "id": cells}).to_csv(tmp_path / "f.csv", index=False)
    return tmp_path / "f.csv"


def test_formulas_are_written_as_they_came_with_a_note(run, with_formulas, tmp_path):
    ran = run("predict", "m.metaprior", with_formulas, "--id", "id", "--out", tmp_path / "p.csv")
    assert ran.code == 0
    assert ran.err.count("note: a spreadsheet would run texts of 'id' as formulas") == 1
    back = pd.read_csv(tmp_path / "p.csv", dtype={"id": str}, keep_default_na=False)
    assert back["id"].tolist() == FORMULAS + HARMLESS


def test_formulas_can_be_escaped_and_numbers_stay_numbers(run, with_formulas):
    ran = run("predict", "m.metaprior", with_formulas, "--id", "id", "--escape-formulas")
    assert (ran.code, "spreadsheet" in ran.err) == (0, False)
    back = pd.read_csv(io.BytesIO(ran.out), dtype={"id": str}, keep_default_na=False)
    assert back["id"].tolist() == [f"'{cell}" for cell in FORMULAS] + HARMLESS
    assert back["mean"].dtype == float


def test_a_table_without_formulas_needs_no_note(run):
    assert "spreadsheet" not in run("predict", "m.metaprior", "t.csv").err
    json_only = run("predict", "m.metaprior", "t.csv", "--id", "id", "--json")
    assert "spreadsheet" not in json_only.err
    assert json.loads(json_only.out)["predictions"][0]["id"] == "=1+1"


def test_dates_of_a_parquet_file_are_copied_to_json(run, tmp_path):
    when = pd.to_datetime(["2024-01-31", None])
    pd.DataFrame({"größe": 1.0, "färbe": "rot", "id": when}).to_parquet(tmp_path / "t.parquet")
    ran = run("predict", "m.metaprior", tmp_path / "t.parquet", "--id", "id", "--json")
    assert [row["id"] for row in json.loads(ran.out)["predictions"]] == ["2024-01-31T00:00:00", None]
