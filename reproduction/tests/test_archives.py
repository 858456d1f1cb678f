"""Archives: no member leaves the folder it is unpacked in, none is a link, and a refused archive leaves nothing."""

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from metaprior_reproduction.datasets import DataError, archives

ESCAPES = ["../out", "a/../../out", "/out", "..\\out", "C:\\out", "C:out", "\\\\host\\share\\out", "a/..", "//out"]


def made_zip(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


def made_tar(path: Path, mode: str = "w", kind: bytes = tarfile.REGTYPE, link: str = "", **members: bytes) -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def refuses(archive: Path, words: str) -> None:
    """Assert that an archive is refused and that no file is left anywhere."""
    before = sorted(archive.parent.rglob("*"))
    with pytest.raises(DataError, match=words):
        archives.unpack(archive, archive.parent / "refused")
    assert sorted(archive.parent.rglob("*")) == before


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize("make", [made_zip, made_tar])
def test_a_member_that_leaves_the_folder_is_refused_and_nothing_is_written(make, name, tmp_path):
    (tmp_path / "here").mkdir()
    refuses(make(tmp_path / "here" / "hostile", **{"good": b"1", name: b"2"}), "does not stay inside the folder")
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused(kind, tmp_path):
    refuses(made_tar(tmp_path / "a.tar", kind=kind, link="/etc", door=b""), "'door' is neither a file nor a folder")


def test_a_link_in_a_zip_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        info = zipfile.ZipInfo("door")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc")
    refuses(tmp_path / "a.zip", "'door' is neither a file nor a folder")


def test_a_member_in_the_way_of_another_is_refused(tmp_path):
    refuses(made_zip(tmp_path / "a.zip", **{"a": b"1", "./a": b"2"}), "clashes with another member")
    refuses(made_zip(tmp_path / "b.zip", **{"a": b"1", "a/b": b"2"}), "clashes with another member")


def test_the_folder_itself_may_be_a_member_but_not_as_a_file(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, kind in (("./", tarfile.DIRTYPE), ("./a", tarfile.REGTYPE)):
            info = tarfile.TarInfo(name)
            info.type = kind
            archive.addfile(info)
    assert [path.name for path in archives.unpack(tmp_path / "a.tar", tmp_path / "inside").iterdir()] == ["a"]
    refuses(made_tar(tmp_path / "b.tar", **{".": b"x"}), "clashes with another member")


@pytest.mark.parametrize("make", [made_zip, made_tar])
def test_an_archive_that_holds_too_much_is_refused_before_it_is_read(make, tmp_path, monkeypatch):
    monkeypatch.setenv("METAPRIOR_MAX_UNPACKED", "10000")
    words = "at most 10,000 bytes unpacked; it holds more.*raise the limit: set .* METAPRIOR_MAX_UNPACKED .*40000"
    refuses(make(tmp_path / "bomb", a=bytes(6000), b=bytes(6000)), words)


@pytest.mark.parametrize("damage", [b"no archive at all", b""])
def test_what_is_no_archive_is_refused(damage, tmp_path):
    (tmp_path / "a.zip").write_bytes(damage)
    refuses(tmp_path / "a.zip", "expected a zip or tar archive|damaged")


def test_a_damaged_archive_is_refused(tmp_path):
    noise = np.random.default_rng(0).bytes(5000)
    whole_zip = made_zip(tmp_path / "a.zip", a=noise)
    content = bytearray(whole_zip.read_bytes())
    content[2000] ^= 255
    whole_zip.write_bytes(content)
    refuses(whole_zip, "damaged")
    cut = made_tar(tmp_path / "a.tar.gz", "w:gz", a=noise)
    cut.write_bytes(cut.read_bytes()[:3000])
    refuses(cut, "damaged")


@pytest.mark.parametrize(
    "make", [made_zip, made_tar, lambda path, **m: made_tar(path, "w:gz", **m), lambda p, **m: made_tar(p, "w:xz", **m)]
)
def test_a_good_archive_is_unpacked_whole_into_a_new_folder_only(make, tmp_path):
    contents = {"a/b.txt": b"one", "./a/c.txt": b"two", "d": b""}
    target = archives.unpack(make(tmp_path / "good", **contents), tmp_path / "inside")
    found = {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}
    assert found == {"a/b.txt": b"one", "a/c.txt": b"two", "d": b""}
    with pytest.raises(FileExistsError, match="inside exists; give another folder"):
        archives.unpack(tmp_path / "good", target)
