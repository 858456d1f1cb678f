"""Files of tables: what they hold is read as it was meant and written whole, or the mistake is named."""

import datetime
import decimal
import io
import os
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from metaprior.tables import CSVForm, TableError, learned_schema, read_table, write_table

pd = pytest.importorskip("pandas")


@pytest.fixture
def csv(tmp_path):
    """Write a CSV file and return its path."""

    def write(text, name="table.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return path

    return write


def test_numbers_are_read_with_all_their_digits(csv):
    values = np.random.default_rng(0).standard_normal(200) * 10.0 ** np.arange(-100, 100)
    path = csv("x\n" + "\n".join(map(repr, values.tolist())))
    assert np.array_equal(read_table(path)["x"].to_numpy(), values)


def test_columns_that_are_asked_for_are_kept_as_they_are_written(csv):
    frame = read_table(csv("id,x\n007,1.50\n008,2\n"), text=["id", "not there"])
    assert frame["id"].tolist() == ["007", "008"]
    assert frame["x"].tolist() == [1.5, 2.0]


def test_spaces_around_names_and_values_do_not_count(csv):
    frame = read_table(csv("a, b , c\n1, 2.5 , red \n3,4,red\n2,1,blue\n"))
    assert list(frame.columns) == ["a", "b", "c"]
    schema = learned_schema(frame.assign(y=[0.1, 0.2, 0.3]), "y")
    assert schema.columns[2].values == ("blue", "red")
    assert_allclose(schema.encoded(frame)[:, 1], [2.5, 4, 1])


@pytest.mark.parametrize("suffix", [".tsv", ".tab"])
def test_tabs_separate_the_fields_of_a_tsv_file(csv, suffix):
    assert read_table(csv("a\tb\n1\t2\n", f"t{suffix}")).to_dict("list") == {"a": [1], "b": [2]}


def test_form_of_a_csv_file_can_be_given(csv):
    path = csv("größe;y\n1,5;?\n2,25;x\n", encoding="cp1252")
    frame = read_table(path, CSVForm(";", ",", "cp1252", ("?",)))
    assert frame["größe"].tolist() == [1.5, 2.25]
    assert frame["y"].isna().tolist() == [True, False]


def test_a_byte_order_mark_is_no_part_of_a_name(csv):
    assert list(read_table(csv("\ufeffa,b\n1,2\n")).columns) == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty; expected a header and rows"),
        ("\n\n", "is empty; expected a header and rows"),
        ("a,b\n", "has a header but no rows"),
        ("a,b,a\n1,2,3\n", "more than one column called 'a'"),
        ("a, a\n1,2\n", "more than one column called 'a'"),
        ("a;b\n1;2\n", r"a single column, 'a;b'.*--separator ';'"),
        ("a\tb\n1\t2\n", "--separator tab"),
        ("a,b\n1,2,3\n4,5,6\n", "more fields than its header"),
        ("a,b\n1,2\n4,5,6\n", "Expected 2 fields in line 3, saw 3"),
        ('a,b\n1,"2\n', "cannot be read as CSV"),
        ("a,b\n1,é\n".encode("latin-1"), "not encoded in utf-8.*--encoding cp1252"),
        ("a,b\n1,2\n".encode("utf-16"), "not encoded in utf-8.*utf-16"),
        (b"PK\x03\x04rest of a workbook", "an Excel workbook; export the sheet as CSV"),
        (b"PAR1 and no more", "is not a Parquet file, or is incomplete"),
    ],
)
def test_a_file_that_is_not_as_it_must_be_is_told(csv, content, message):
    if isinstance(content, bytes) and content.startswith(b"PAR1"):
        pytest.importorskip("pyarrow")
    with pytest.raises(TableError, match=message):
        read_table(csv(content))


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file .*nowhere.csv"):
        read_table(tmp_path / "nowhere.csv")
    with pytest.raises(FileNotFoundError, match="is a folder"):
        read_table(tmp_path)


def test_a_column_without_a_name_is_ignored_and_that_is_said(csv):
    with pytest.warns(UserWarning, match="column 1 has no name and is ignored"):
        frame = read_table(csv(",a\n0,5\n1,6\n"))
    assert frame.to_dict("list") == {"a": [5, 6]}


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,x\n2,y\n")))
    assert read_table("-").to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.pq"])
def test_what_is_written_is_read_back(tmp_path, name):
    if name.endswith(("parquet", "pq")):
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"id": ["007", "a,b"], "x": [0.1, 1 / 3]})
    write_table(frame, tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name, text=["id"]), frame)
    assert os.listdir(tmp_path) == [name]


def test_no_table_is_overwritten_unasked(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match="exists"):
        write_table(pd.DataFrame({"x": [1]}), path)
    assert path.read_text() == "precious"
    write_table(pd.DataFrame({"x": [1]}), path, overwrite=True)
    assert path.read_text() == "x\n1\n"


def test_a_write_that_fails_leaves_the_old_table_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_table(pd.DataFrame({"x": [1]}), path, overwrite=True)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize(("package", "call"), [("pandas", "csv"), ("pyarrow", "read"), ("pyarrow", "write")])
def test_a_package_that_is_not_installed_is_named(csv, tmp_path, monkeypatch, package, call):
    pytest.importorskip(package)
    parquet = tmp_path / "t.parquet"
    if package == "pyarrow":
        pd.DataFrame({"a": [1]}).to_parquet(parquet)
    monkeypatch.setitem(sys.modules, package, None)
    calls = {
        "csv": lambda: read_table(csv("a\n1\n")),
        "read": lambda: read_table(parquet),
        "write": lambda: write_table(pd.DataFrame({"a": [1]}), tmp_path / "new.parquet"),
    }
    with pytest.raises(ImportError, match=rf"needs {package}, .* pip install .\.\[cli\]. in a clone"):
        calls[call]()


def test_types_of_a_parquet_file_say_what_a_column_is(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, 2, None], "Int64"),
            "flag": pd.array([True, None, False], "boolean"),
            "kind": pd.Categorical(["b", "a", "b"]),
            "moment": pd.to_datetime(["2024-01-02T00:00", "2024-01-01T12:00", "2024-01-04T00:00"]),
            "day": [datetime.date(2024, 1, 1), datetime.date(2024, 1, 3), datetime.date(2024, 1, 2)],
            "money": [decimal.Decimal("1.50"), decimal.Decimal("2.25"), decimal.Decimal("3.00")],
            "y": [0.1, 0.2, 0.3],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet")
    with pytest.warns(UserWarning, match="'day' is read as dates"):
        schema = learned_schema(read, "y", impute="mean")
    assert [type(c).__name__ for c in schema.columns] == ["Number", "Flag", "Category", "Date", "Date", "Number"]
    with pytest.warns(UserWarning, match="filled in: 1 in 'whole', 1 in 'flag'"):
        numbers = schema.encoded(read)
    expected = [[1, 1, 0, 1, 0.5, 0, 1.5], [2, 0, 1, 0, 0, 2, 2.25], [1.5, 0, 0, 1, 2.5, 1, 3]]
    assert_allclose(numbers, expected)


def test_a_named_index_of_a_parquet_file_is_a_column(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index([10, 20], name="t"))
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").to_dict("list") == {"t": [10, 20], "x": [1.0, 2.0]}
