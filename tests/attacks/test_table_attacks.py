"""Tables of strangers: a small file never takes much memory, and what is wrong with it is said in one error.

Bombs are opened in processes of their own, whose time and peak of memory are measured.
"""

import bz2
import gzip
import io
import lzma
import os
import random
import struct
import subprocess
import sys
import zipfile

import pytest

import bombs
from metaprior.io.unpacking import DEFAULT_LIMIT, TooLargeError, UnpackingError
from metaprior.tables import CSVForm, TableError, read_table
from peak_memory import measured, needs_proc

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

READ = "from metaprior.tables import read_table\nprint('rows', len(read_table(sys.argv[1])))"
HEAD, ROWS = b"x,y\n", b"0,0\n" * 2**18
NUMBER, TEXT = struct.pack("<d", 1.5), struct.pack("<I", 2**20) + b"a" * 2**20
#: Files that unpack to more than the limit, which the error names, with how to raise it.
TOO_LARGE = {
    "one stream.csv.gz": lambda: bombs.gzip_stream(HEAD, ROWS, 2300),
    "many members.csv.gz": lambda: bombs.gzip_members(HEAD, ROWS, 2300),
    "table.csv.bz2": lambda: bombs.bzip2_streams(HEAD, ROWS, 2300),
    "table.csv.xz": lambda: bombs.xz_streams(HEAD, ROWS, 2300),
    "table.zip": lambda: bombs.zip_member(HEAD, ROWS, 2300),
    "wrong name.csv": lambda: bombs.gzip_stream(HEAD, ROWS, 2300),
    "header.csv.gz": lambda: bombs.gzip_stream(b"", b"," * 2**20, 250),
    "one row.csv.gz": lambda: bombs.gzip_stream(HEAD + b"1,2\n", b"," * 2**20, 250),
    "one field.csv.gz": lambda: bombs.gzip_stream(HEAD + b'1,"', b"a" * 2**20, 2000),
    "empty lines.csv.gz": lambda: bombs.gzip_stream(HEAD, b"\n" * 2**20, 2000),
    "numbers.parquet": lambda: bombs.repeated_value(NUMBER, 5, 10**9),
    "numbers with few rows.parquet": lambda: bombs.repeated_value(NUMBER, 5, 10**9, claimed=10),
    "texts.parquet": lambda: bombs.repeated_value(TEXT, 6, 10**7, 2),
    "one page.parquet": lambda: bombs.one_large_page(1900),
}
#: Files that are refused for another reason, before they take memory.
REFUSED = {
    "window.csv.xz": (lambda: bombs.xz_with_window(31), "Memory usage limit"),
    "directory.zip": (lambda: bombs.crowded_zip(300_000), "directory has more than 8,388,608 bytes"),
    "members.zip": (lambda: bombs.crowded_zip(100_000), "a zip file of a single file; it holds 100000"),
    "small claim.zip": (lambda: bombs.zip_member(HEAD, ROWS, 2300, claimed=100), "damaged"),
    "header.csv": (lambda: b"a," * 2**24, "header of at most 4,194,304 bytes"),
    "columns.csv": (lambda: b",".join(b"%d" % k for k in range(200_000)) + b"\n1\n", "at most 100,000 columns"),
}
#: Bombs take less than this, in megabytes and seconds. Most of the first is what pandas and pyarrow need themselves.
MOST_MEMORY, MOST_SECONDS = 300, 15


@needs_proc
@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_bomb_is_refused_with_the_limit_and_how_to_raise_it(name, tmp_path):
    path = bombs.written(tmp_path / name, TOO_LARGE[name]())
    assert path.stat().st_size < 4e6
    found = measured(READ, path)
    assert found.said.startswith("TooLargeError")
    assert f"expected at most {DEFAULT_LIMIT:,} bytes unpacked; it holds more" in found.said
    assert f"METAPRIOR_MAX_UNPACKED to a larger number of bytes, such as {4 * DEFAULT_LIMIT}" in found.said
    assert found.megabytes < MOST_MEMORY
    assert found.seconds < MOST_SECONDS


@needs_proc
@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_claims_much_is_refused_before_it_takes_memory(name, tmp_path):
    content, words = REFUSED[name]
    found = measured(READ, bombs.written(tmp_path / name, content()))
    assert found.said.startswith(("TableError", "UnpackingError"))
    assert words in found.said
    assert found.megabytes < MOST_MEMORY
    assert found.seconds < MOST_SECONDS


def test_an_endless_standard_input_is_refused(tmp_path):
    code = "from metaprior.cli import main; raise SystemExit(main())"
    with open("/dev/zero", "rb") as endless:
        done = subprocess.run(
            [sys.executable, "-c", code, "fit", "-", "--target", "y", "--out", str(tmp_path / "model")],
            stdin=endless,
            capture_output=True,
            text=True,
            env={**os.environ, "METAPRIOR_MAX_UNPACKED": "1000000"},
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert "the standard input: expected at most 1,000,000 bytes unpacked; it holds more" in done.stderr
    assert done.stderr.count("\n") == 1


# --- the limit ----------------------------------------------------------------------------


def frame_of(num_rows):
    return pd.DataFrame({"x": range(num_rows), "t": [f"text {k % 5}" for k in range(num_rows)]})


def packed(frame, form, path):
    """Write a table in a form and return the path."""
    content = frame.to_csv(index=False).encode()
    if form == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("table.csv", content)
    elif form == "parquet":
        frame.to_parquet(path)
    else:
        path.write_bytes({"gz": gzip, "bz2": bz2, "xz": lzma}[form].compress(content))
    return path


FORMS = ("gz", "bz2", "xz", "zip", "parquet")


@pytest.mark.parametrize("form", FORMS)
def test_the_limit_can_be_raised_and_lowered(form, tmp_path, monkeypatch):
    path = packed(frame_of(2000), form, tmp_path / f"table.{form}")
    monkeypatch.setenv("METAPRIOR_MAX_UNPACKED", "20000")
    with pytest.raises(TooLargeError, match="at most 20,000 bytes unpacked.*such as 80000"):
        read_table(path)
    monkeypatch.setenv("METAPRIOR_MAX_UNPACKED", "200000")
    pd.testing.assert_frame_equal(read_table(path), frame_of(2000), check_dtype=False)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1e9", "many", "1_000", "٣", "9" * 30, "inf"])
def test_a_limit_that_is_no_number_of_bytes_is_told(text, tmp_path, monkeypatch):
    monkeypatch.setenv("METAPRIOR_MAX_UNPACKED", text)
    with pytest.raises(ValueError, match="METAPRIOR_MAX_UNPACKED: expected a number of bytes, such as 536870912; got"):
        read_table(packed(frame_of(10), "gz", tmp_path / "table.csv.gz"))


def test_a_plain_file_has_no_limit_but_its_own_size(tmp_path, monkeypatch):
    monkeypatch.setenv("METAPRIOR_MAX_UNPACKED", "10")
    frame_of(100).to_csv(tmp_path / "table.csv", index=False)
    assert len(read_table(tmp_path / "table.csv")) == 100


# --- damaged and foreign files --------------------------------------------------------------


def tar_of(content):
    import tarfile

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo("table.csv")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


CSV = b"x,y\n" + b"1,2\n" * 100
FOREIGN = {
    "gzip twice": (gzip.compress(gzip.compress(CSV)), TableError, "holds an archive or a compressed file"),
    "zip in gzip": (gzip.compress(bombs.zip_member(HEAD, ROWS, 3)), TableError, "holds an archive or a compressed"),
    "tar in gzip": (gzip.compress(tar_of(CSV)), TableError, "holds an archive or a compressed file"),
    "parquet in xz": (lzma.compress(bombs.repeated_value(NUMBER, 5, 10)), TableError, "holds an archive or"),
    "zstandard": (b"\x28\xb5\x2f\xfd" + bytes(50), UnpackingError, "compressed with zstandard, which is not read"),
    "cut gzip": (gzip.compress(CSV)[:-12], UnpackingError, "damaged.*in the middle of the compressed data"),
    "cut bzip2": (bz2.compress(CSV)[:-12], UnpackingError, "damaged.*in the middle"),
    "cut xz": (lzma.compress(CSV)[:-12], UnpackingError, "damaged.*in the middle"),
    "wrong checksum": (gzip.compress(CSV)[:-8] + bytes(8), UnpackingError, "damaged.*incorrect data check"),
    "more after the end": (gzip.compress(CSV) + b"more", UnpackingError, "damaged.*incorrect header"),
    "more after bzip2": (bz2.compress(CSV) + b"more", UnpackingError, "damaged.*Invalid data stream"),
    "nothing in it": (gzip.compress(b""), TableError, "is empty; expected a header and rows"),
    "long name": (b"a" * 200_000 + b",b\n1,2\n", TableError, "header that cannot be read as CSV .field larger"),
    "lists of texts": (None, TableError, "column .* is one of lists or records; expected one text per row"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_or_damaged_file_is_told(name, tmp_path):
    content, kind, words = FOREIGN[name]
    path = tmp_path / "table.csv.gz"
    if content is None:
        pd.DataFrame({"x": [["a"], ["b", "c"]]}).to_parquet(path)
    else:
        path.write_bytes(content)
    with pytest.raises(kind, match=words):
        read_table(path)


@pytest.mark.parametrize("form", [gzip, bz2, lzma])
def test_what_two_files_in_one_hold_is_read(form, tmp_path):
    path = bombs.written(tmp_path / "table", form.compress(b"x\n1\n") + form.compress(b"2\n") + bytes(8))
    assert read_table(path).to_dict("list") == {"x": [1, 2]}


@pytest.mark.parametrize("separator", ["", ",,", "\\s+"])
def test_a_separator_is_one_character(separator, tmp_path):
    path = bombs.written(tmp_path / "table.csv", CSV)
    if separator:
        with pytest.raises(TableError, match="separator: expected one character"):
            read_table(path, CSVForm(separator))
    else:
        assert len(read_table(path, CSVForm(separator))) == 100


def test_an_encoding_that_is_none_of_text_is_told(tmp_path):
    with pytest.raises(TableError, match="encoding: expected one of text, such as utf-8"):
        read_table(bombs.written(tmp_path / "table.csv", CSV), CSVForm(encoding="zlib"))


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return a file with a few bits, bytes or runs of bytes changed, or with its end cut off."""
    found = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        place, way = rng.randrange(len(found)), rng.random()
        if way < 0.5:
            found[place] ^= 1 << rng.randrange(8)
        elif way < 0.8:
            found[place] = rng.choice([0, 1, 127, 128, 255])
        elif way < 0.95:
            found[place : place + 4] = b"\xff\xff\xff\x7f"
        else:
            found = found[: place + 1]
    return bytes(found)


@needs_proc
@pytest.mark.parametrize("form", FORMS)
def test_a_mutated_file_is_read_or_refused_and_nothing_else(form, tmp_path):
    """200 mutated files of each of the 5 forms: 1,000 tried."""
    whole = packed(frame_of(60), form, tmp_path / f"whole.{form}").read_bytes()
    for number in range(200):
        bombs.written(tmp_path / f"{number}.{form}", mutated(whole, random.Random(number)))
    code = """
import glob
from metaprior.tables import read_table
outcomes = []
for path in sorted(glob.glob(sys.argv[1])):
    try:
        read_table(path)
        outcomes.append("read")
    except (ValueError, OSError) as error:
        outcomes.append("refused")
        assert 10 < len(str(error)) < 1500, str(error)
print(outcomes.count("read"), outcomes.count("refused"))
"""
    found = measured(code, tmp_path / f"[0-9]*.{form}")
    num_read, num_refused = map(int, found.said.split())
    assert num_read + num_refused == 200
    assert num_refused > 20
    assert found.megabytes < MOST_MEMORY
