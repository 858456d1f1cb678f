"""Archives and data files of strangers: nothing small takes much memory, leaves its folder or raises anything odd.

Bombs are opened in processes of their own, whose time and peak of memory are measured.
"""

import gzip
import io
import lzma
import random
import struct
import tarfile
import zipfile
import zlib

import numpy as np
import pytest

import bombs
from metaprior.io.unpacking import DEFAULT_LIMIT
from metaprior_reproduction.datasets import DataError, archives, files
from metaprior_reproduction.datasets.handwriting import read_bitmap
from peak_memory import measured, needs_proc

#: Bombs take less than this, in megabytes and seconds.
MOST_MEMORY, MOST_SECONDS = 300, 20
UNPACK = """
from pathlib import Path
from metaprior_reproduction.datasets import unpack
archive = Path(sys.argv[1])
print("unpacked", len(list(unpack(archive, archive.parent / "inside").rglob("*"))))
"""
IDX = """
from pathlib import Path
from metaprior_reproduction.datasets.images import read_idx
print("read", read_idx(Path(sys.argv[1])).shape)
"""


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE, **more) -> bytes:
    """Return the header of a member as it stands in a tar archive."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for field, value in more.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def block(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def pax(*records: tuple[str, str], kind: bytes = tarfile.XHDTYPE) -> bytes:
    """Return a header of settings, for the next member or for all."""
    content = b""
    for name, value in records:
        rest = f" {name}={value}\n".encode()
        length = len(rest) + len(str(len(rest)))
        length = len(rest) + len(str(length))
        content += str(length).encode() + rest
    return header("settings", len(content), kind) + block(content)


FOLDER = header("d", 0, tarfile.DIRTYPE)
MEMBER, END = header("a", 3) + block(b"abc"), bytes(1024)
#: A setting of a gigabyte for the next member, and the same of many small settings.
LONG = header("settings", 2**30, tarfile.XHDTYPE) + b"1073741824 comment="
MANY = b"".join(f"12 k{k:05d}=v\n".encode() for k in range(87_000))
CHAIN = b"".join(pax((f"k{k}", "v" * 400)) for k in range(1000))
SETTINGS = b"".join(pax((f"k{k}", "v" * 400), kind=tarfile.XGLTYPE) + header(f"m{k}", 0) for k in range(1000))


#: Archives that unpack to more than the limit.
TOO_LARGE = {
    "a.zip": lambda: bombs.zip_member(b"", bytes(2**20), 2000),
    "many.zip": lambda: zip_of_overlapping(40_000, 2**20),
    "a.tar.gz": lambda: bombs.gzip_stream(header("a", 4 * 2**30), bytes(2**20), 2000),
    "a.tar.bz2": lambda: bombs.bzip2_streams(header("a", 4 * 2**30), bytes(2**20), 2000),
    "a.tar.xz": lambda: bombs.xz_streams(header("a", 4 * 2**30), bytes(2**20), 2000),
}
#: Archives that are refused for their headers, with words of the error.
REFUSED = {
    "one setting.tar.gz": (lambda: bombs.gzip_stream(LONG, b"v" * 2**20, 1023), "headers of more than 65,536 bytes"),
    "one setting.tar.xz": (lambda: bombs.xz_streams(LONG, b"v" * 2**20, 1023), "headers of more than 65,536 bytes"),
    "many settings.tar.gz": (
        lambda: bombs.gzip_stream(header("s", 1000 * len(MANY), tarfile.XHDTYPE), MANY, 1000),
        "headers of more than 65,536 bytes",
    ),
    "chain of settings.tar": (lambda: CHAIN + MEMBER + END, "headers of more than 65,536 bytes"),
    "settings for all.tar": (lambda: SETTINGS + END, "after more than 100 settings for all members"),
    "long name.tar.gz": (
        lambda: bombs.gzip_stream(header("n", 2**30, tarfile.GNUTYPE_LONGNAME), b"n" * 2**20, 1024),
        "headers of more than 65,536 bytes",
    ),
    "long link.tar.gz": (
        lambda: bombs.gzip_stream(header("n", 2**30, tarfile.GNUTYPE_LONGLINK), b"n" * 2**20, 1024),
        "headers of more than 65,536 bytes",
    ),
    "sparse.tar": (
        lambda: pax(("GNU.sparse.size", str(2**40)), ("GNU.sparse.map", "0,3")) + MEMBER + END,
        "neither a file nor a folder",
    ),
    "going back.tar": (lambda: pax(("size", "-1024")) + MEMBER + END, "neither a file nor a folder|before its header"),
    "crowd.tar.gz": (
        lambda: bombs.gzip_members(b"", header("d", 0, tarfile.DIRTYPE) * 2048, 100),
        "at most 50,000 members",
    ),
    "crowd.zip": (lambda: bombs.crowded_zip(100_000), "at most 50,000 members"),
    "larger crowd.zip": (lambda: bombs.crowded_zip(300_000), "directory has more than 8,388,608 bytes"),
    "small claim.zip": (lambda: bombs.zip_member(b"", bytes(2**20), 2000, claimed=100), "damaged"),
    "window.zip": (lambda: zip_by_lzma(), "compressed by method 14"),
    "window.tar.xz": (lambda: bombs.xz_with_window(31), "Memory usage limit"),
}
#: Files that are refused as IDX files, with words of the error. The first bytes are zero, zero, the kind and the rank.
IDX_FILES = {
    "zeros.gz": (lambda: idx_bomb(2**32 - 1), "at most 536,870,912 bytes unpacked"),
    "more.gz": (lambda: idx_bomb(4), "expected an IDX file"),
    "claim.gz": (lambda: gzip.compress(b"\0\0\x08\x01" + struct.pack(">I", 5 * 10**8)), "expected an IDX file"),
    "claims.gz": (lambda: gzip.compress(b"\0\0\x08\x04" + b"\xff" * 16), "at most 536,870,912 bytes unpacked"),
    "axes.gz": (lambda: gzip.compress(b"\0\0\x08\xff" + bytes(4 * 255)), "expected an IDX file"),
    "axes of one.gz": (lambda: gzip.compress(b"\0\0\x08\x50" + struct.pack(">I", 1) * 80 + b"x"), "expected an IDX"),
}


def idx_bomb(length: int) -> bytes:
    return bombs.gzip_stream(b"\0\0\x08\x01" + struct.pack(">I", length), bytes(2**20), 3500)


def zip_of_overlapping(num_members: int, size: int) -> bytes:
    """Return a zip file whose members all stand in the same place."""
    packed = bombs.repeated_deflate(b"", bytes(size), 1)
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 33, 0, len(packed), size, 1, 0) + b"a" + packed
    fields = (20, 20, 0, 8, 0, 33, 0, len(packed), size, 5, 0, 0, 0, 0, 0, 0)
    listed = [struct.pack("<4s6H3I5H2I", b"PK\x01\x02", *fields) + b"%05d" % k for k in range(num_members)]
    directory = b"".join(listed)
    return local + directory + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0, 0, len(directory), len(local), 0)


def zip_by_lzma() -> bytes:
    """Return a zip file that claims to need a window of 4 GiB."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", b"abc")
    return content.getvalue().replace(b"]\0\0\x80\0", b"]\xff\xff\xff\xff")


@needs_proc
@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_bomb_is_refused_with_the_limit_and_how_to_raise_it(name, tmp_path):
    path = bombs.written(tmp_path / name, TOO_LARGE[name]())
    assert path.stat().st_size < 4e6
    found = measured(UNPACK, path)
    assert found.said.startswith("DataError")
    assert f"expected at most {DEFAULT_LIMIT:,} bytes unpacked; it holds more" in found.said
    assert "METAPRIOR_MAX_UNPACKED to a larger number of bytes" in found.said
    assert found.megabytes < MOST_MEMORY
    assert found.seconds < MOST_SECONDS
    assert [path.name for path in tmp_path.iterdir()] == [name]


@needs_proc
@pytest.mark.parametrize("name", REFUSED)
def test_headers_that_claim_much_are_refused_before_they_take_memory(name, tmp_path):
    content, words = REFUSED[name]
    found = measured(UNPACK, bombs.written(tmp_path / name, content()))
    assert found.said.startswith("DataError")
    assert any(part in found.said for part in words.split("|")), found.said
    assert found.megabytes < MOST_MEMORY
    assert found.seconds < MOST_SECONDS
    assert [path.name for path in tmp_path.iterdir()] == [name]


@needs_proc
@pytest.mark.parametrize("name", IDX_FILES)
def test_an_idx_file_allocates_only_what_it_holds(name, tmp_path):
    content, words = IDX_FILES[name]
    found = measured(IDX, bombs.written(tmp_path / name, content()))
    assert found.said.startswith("DataError")
    assert words in found.said
    assert found.megabytes < MOST_MEMORY
    assert found.seconds < MOST_SECONDS


# --- bitmaps ------------------------------------------------------------------------------


def png(width: int, height: int, packed: bytes) -> bytes:
    size = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    parts = ((b"IHDR", size), (b"IDAT", packed), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I4s", len(c), kind) + c + bytes(4) for kind, c in parts)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (png(2**32 - 1, 2**32 - 1, zlib.compress(b"")), "at most 4096 by 4096 pixels; got 4294967295"),
        (png(2**32 - 1, 1, zlib.compress(bytes(10))), "at most 4096 by 4096"),
        (png(0, 0, zlib.compress(b"")), "at most 4096 by 4096 pixels; got 0"),
        (png(8, 8, zlib.compress(bytes(2**28))), "8 rows of 2 bytes; it has more or fewer"),
        (png(8, 8, zlib.compress(bytes(3))), "8 rows of 2 bytes; it has more or fewer"),
        (png(8, 8, b"no deflate"), "damaged"),
        (png(8, 8, zlib.compress(bytes(16)))[:20], "damaged|at most"),
        (b"", "at most 4096 by 4096"),
    ],
    ids=["large", "wide", "empty", "bomb", "short", "no deflate", "cut", "nothing"],
)
def test_a_bitmap_that_is_none_is_told(content, words):
    with pytest.raises(DataError, match=words):
        read_bitmap(content)


def test_a_bitmap_is_read():
    rows = np.array([[0, 0b10100000], [0, 0b01000000]], np.uint8)
    assert read_bitmap(png(3, 2, zlib.compress(rows.tobytes()))).tolist() == [[0, 1, 0], [1, 0, 1]]


# --- names, links, the limit, mutations ------------------------------------------------------

NAMES = ["../out", "/out", "a/../../out", "..\\out", "C:\\out", "n" * 300, "d/" * 600 + "f", "é" * 200, "x" * 3000]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["pax", "gnu", "zip"])
def test_a_name_that_leaves_the_folder_or_is_too_long_is_refused(name, form, tmp_path):
    path = tmp_path / "archive"
    if form == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(zipfile.ZipInfo(name), b"abc")
    else:
        kinds = {"pax": tarfile.PAX_FORMAT, "gnu": tarfile.GNU_FORMAT}
        with tarfile.open(path, "w", format=kinds[form]) as archive:
            info = tarfile.TarInfo(name)
            info.size = 3
            archive.addfile(info, io.BytesIO(b"abc"))
    with pytest.raises(DataError, match="does not stay inside the folder|has too long a name") as error:
        archives.unpack(path, tmp_path / "inside")
    assert len(str(error.value)) < 500
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


@pytest.mark.parametrize("kind", [b"1", b"2", b"3", b"4", b"6", b"S", b"V", b"Z"])
def test_members_that_are_neither_files_nor_folders_are_refused(kind, tmp_path):
    path = bombs.written(tmp_path / "a.tar", header("door", 0, kind, linkname="/etc") + END)
    with pytest.raises(DataError, match="neither a file nor a folder|damaged"):
        archives.unpack(path, tmp_path / "inside")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def good_tar(mode: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode, format=tarfile.PAX_FORMAT) as archive:
        for number in range(5):
            info = tarfile.TarInfo(f"folder {number}/fil\u00e9 {'n' * 100}")
            info.size, info.mtime = 700, 1.5
            archive.addfile(info, io.BytesIO(bytes([number]) * 700))
    return content.getvalue()


def good_zip() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(5):
            archive.writestr(f"folder {number}/file", bytes([number]) * 700)
    return content.getvalue()


GOOD = {
    **{f"tar {form or 'plain'}": lambda form=form: good_tar(f"w:{form}") for form in ("", "gz", "bz2", "xz")},
    "zip": good_zip,
}


@pytest.mark.parametrize("name", GOOD)
def test_the_limit_can_be_raised_and_lowered(name, tmp_path, monkeypatch):
    path = bombs.written(tmp_path / "archive", GOOD[name]())
    monkeypatch.setenv("METAPRIOR_MAX_UNPACKED", "3000")
    with pytest.raises(DataError, match="at most 3,000 bytes unpacked; it holds more.*such as 12000"):
        archives.unpack(path, tmp_path / "inside")
    monkeypatch.setenv("METAPRIOR_MAX_UNPACKED", "40000")
    inside = archives.unpack(path, tmp_path / "inside")
    contents = sorted(path.read_bytes() for path in inside.rglob("*") if path.is_file())
    assert contents == [bytes([number]) * 700 for number in range(5)]


@pytest.mark.parametrize("name", GOOD)
def test_a_mutated_archive_is_read_or_refused_and_nothing_else(name, tmp_path):
    """100 mutated files of each of the 5 forms: 500 tried."""
    whole, errors, tried = GOOD[name](), [], 100
    for number in range(tried):
        rng, found = random.Random(number), bytearray(whole)
        for _ in range(rng.choice([1, 2, 5])):
            place = rng.randrange(len(found))
            found[place : place + 1] = rng.choice([b"\xff", b"\0", b"-", b"9999", bytes([found[place] ^ 1]), b""])
        try:
            list(archives.members(bombs.written(tmp_path / "archive", bytes(found))))
        except DataError as error:
            errors.append(str(error))
    assert len(errors) > tried // 10
    assert all(10 < len(error) < 600 for error in errors)


def test_two_layers_are_not_unpacked(tmp_path):
    path = bombs.written(tmp_path / "a.tar.gz.xz", lzma.compress(good_tar("w:gz")))
    with pytest.raises(DataError, match="expected a zip or tar archive; it is neither"):
        archives.unpack(path, tmp_path / "inside")


# --- the register and downloads ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../b", "C:\\x", "\\\\host\\x", "a\\..\\b", "", "a\0b"])
def test_the_register_names_only_files_in_the_folder_of_data(name):
    with pytest.raises(ValueError, match="the register: expected names that stay inside the folder of data; got"):
        files.DataFile(name, "0" * 64, 1, "CC0", "https://home.invalid", ())


def test_an_endless_download_is_stopped_at_the_size_of_the_file(tmp_path, monkeypatch):
    requests = pytest.importorskip("requests", reason="downloads need pooch, which brings requests")
    sent = []

    class Endless(io.RawIOBase):
        def read(self, size=-1):
            sent.append(size)
            assert len(sent) < 1000, "it is still read"
            return b"x" * (size if size > 0 else 2**16)

    def send(self, request, **_):
        response = requests.Response()
        response.status_code, response.url, response.request, response.raw = 200, request.url, request, Endless()
        return response

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send)
    file = files.DataFile("a", "0" * 64, 2**18, "CC0", "https://home.invalid", ("https://a.invalid/a",))
    with pytest.raises(DataError, match="is another file: expected 262,144 bytes, it has more"):
        files.download(file, tmp_path / "kept" / "a")
    assert list((tmp_path / "kept").iterdir()) == []
