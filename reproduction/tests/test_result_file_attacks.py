"""Results of strangers: no path in them leads out of their folder, for reading, writing or deleting."""

import json
import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from hostile_results import good_result, markdown_structure, outcome, png, write_result
from metaprior_reproduction.frame.store import ENDING, Store
from metaprior_reproduction.report import html, markdown, read_entries
from tossing import FAIR, counting, reproduced, run_files

#: The fair coin has a metric that is infinite.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in subtract")
PAGES = {"html": html.page, "markdown": lambda entries: markdown.page(entries, Path())}

# --- figures -------------------------------------------------------------------------------

NAMES = ["../../secret", "../secret", "/secret", "a/b", "..", ".", "", "x.png", "a\0b", "a b", "C:secret", "é", 1]


@pytest.mark.parametrize("name", NAMES, ids=repr)
@pytest.mark.parametrize("kind", PAGES)
def test_a_figure_has_a_plain_name(name, kind, tmp_path):
    (tmp_path / "secret.png").write_bytes(png())
    result = good_result()
    result["figures"] = [name]
    assert re.search(r"figures\[0\]: expected a name of", outcome(tmp_path / "results", result, PAGES[kind])[1])


def drawing(inner: str = "", attributes: str = "", before: str = "") -> bytes:
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<?xml version="1.0"?>{before}<svg {names} {attributes}><g>{inner}</g></svg>'.encode()


DRAWINGS = {
    "script": drawing("<script>alert(1)</script>"),
    "script of html": drawing('<script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script>'),
    "handler": drawing(attributes='onload="alert(1)"'),
    "handler of a part": drawing('<path OnClick="alert(1)"/>'),
    "foreign object": drawing("<foreignObject><b/></foreignObject>"),
    "animation": drawing('<set attributeName="href" to="javascript:alert(1)"/>'),
    "link": drawing('<a xlink:href="javascript:alert(1)"><path/></a>'),
    "use of another file": drawing('<use xlink:href="https://evil.example/x.svg#a"/>'),
    "plain href": drawing('<use href="data:text/html,x"/>'),
    "image of another file": drawing('<image href="file:///etc/passwd"/>'),
    "drawing in it": drawing('<image href="data:image/svg+xml;base64,PHN2Zy8+"/>'),
    "style": drawing("<style>@import 'https://evil.example/x'</style>"),
    "address in a style": drawing('<path style="fill: url(https://evil.example/x)"/>'),
    "entity": drawing(before='<!DOCTYPE svg [<!ENTITY a "<script/>">]>'),
    "laughs": drawing("&b;", before='<!DOCTYPE svg [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'),
    "outer entity": drawing("&a;", before='<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]>'),
    "style sheet": drawing(before='<?xml-stylesheet href="https://evil.example/x"?>'),
    "script in utf-16": drawing("<script>1</script>").decode().encode("utf-16"),
    "html": b"<!doctype html><script>alert(1)</script>",
    "no xml": b"\x89PNG",
    "other namespace": b'<svg xmlns="http://evil.example"/>',
    "no namespace": b"<svg><script/></svg>",
    "empty": b"",
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_that_is_more_than_a_drawing_is_refused(name, tmp_path):
    own = write_result(tmp_path, good_result())
    (figure,) = good_result()["figures"]
    (own / f"{figure}.svg").write_bytes(DRAWINGS[name])
    with pytest.raises(ValueError, match="svg: expected a figure as 'metaprior reproduce' writes it; it (has|is)"):
        html.page(read_entries(tmp_path))
    (own / f"{figure}.png").unlink()
    with pytest.raises(ValueError, match="svg: expected a figure as"):
        markdown.page(read_entries(tmp_path), tmp_path)


def test_a_drawing_is_shown_as_an_image(tmp_path):
    own = write_result(tmp_path, good_result())
    (figure,) = good_result()["figures"]
    (own / f"{figure}.svg").write_bytes(drawing('<use xlink:href="#a"/><path id="a" style="clip-path: url(#a)"/>'))
    assert 'src="data:image/svg+xml;base64,' in html.page(read_entries(tmp_path))


@pytest.mark.parametrize("kind", ["link out", "link to a folder", "fifo", "folder", "no png", "too large"])
def test_only_regular_files_inside_the_folder_are_embedded(kind, tmp_path):
    secret = tmp_path / "secret.png"
    secret.write_bytes(png() + b"secret")
    own = write_result(tmp_path / "results", good_result())
    path = own / f"{good_result()['figures'][0]}.png"
    path.unlink()
    make = {
        "link out": lambda: path.symlink_to(secret),
        "link to a folder": lambda: path.symlink_to(tmp_path),
        "fifo": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "no png": lambda: path.write_bytes(b"<script>alert(1)</script>"),
        "too large": lambda: path.write_bytes(png() + bytes(2**24)),
    }
    make[kind]()
    with pytest.raises(ValueError, match="expected a (file inside|figure)"):
        html.page(read_entries(tmp_path / "results"))
    with pytest.raises(ValueError, match="expected a (file inside|figure)"):
        markdown.page(read_entries(tmp_path / "results"), tmp_path)


@pytest.mark.parametrize("kind", ["file", "folder", "fifo"])
def test_a_result_is_a_file_inside_the_folder(kind, tmp_path):
    own = write_result(tmp_path / "elsewhere", good_result())
    results = tmp_path / "results"
    results.mkdir()
    if kind == "folder":
        (results / "item").symlink_to(own)
    else:
        (results / "item").mkdir()
        path = results / "item" / "result.json"
        path.symlink_to(own / "result.json") if kind == "file" else os.mkfifo(path)
    with pytest.raises(ValueError, match=r"result.json: expected a file inside .*results; it is a link that leaves"):
        read_entries(results)


FOLDERS = ["a](javascript:alert(1)) [b", "<img src=x onerror=alert(1)>", "a b", "a#b?c", "%2e%2e", "a'b\"c", "a\nb"]


@pytest.mark.parametrize("name", FOLDERS)
def test_the_name_of_a_folder_means_nothing_in_a_page(name, tmp_path):
    results = tmp_path / name
    own = write_result(results, good_result())
    own.rename(results / name)
    page = markdown.page(read_entries(results), tmp_path)
    write_result(tmp_path / "plain", good_result())
    plain = markdown.page(read_entries(tmp_path / "plain"), tmp_path)
    kinds, expected = ([part[0] for part in markdown_structure(one)[0]] for one in (page, plain))
    assert kinds == expected
    (link,) = re.findall(r"!\[.*\]\((.*)\)", page)
    assert (tmp_path / unquote(link)).is_file()


def test_a_note_of_a_stranger_is_not_read(tmp_path):
    write_result(tmp_path, good_result())
    (tmp_path / "note.md").write_text("<script>alert(1)</script>")
    assert "script" not in markdown.page(read_entries(tmp_path), tmp_path)


# --- files that are deleted and written ---------------------------------------------------------


@pytest.fixture
def store(tmp_path):
    """The store of a result of a stranger, in a folder beside a file of the user's."""
    (tmp_path / "mine.png").write_text("mine")
    own = write_result(tmp_path / "results", good_result())
    (own / "runs").mkdir()
    return Store(own, "item", "smoke", {"seeds": 2})


@pytest.mark.parametrize("figures", [["../../mine"], ["/mine"], ["../../mine", "name1"], "../../mine", [{}], {"a": 1}])
def test_clearing_a_result_deletes_nothing_outside(figures, store, tmp_path):
    result = good_result() | {"figures": figures}
    write_result(tmp_path / "results", result)
    store.clear()
    assert (tmp_path / "mine.png").read_text() == "mine"
    assert not store.result.exists()


@pytest.mark.parametrize("which", ["runs", "folder"])
def test_a_folder_that_is_a_link_is_neither_cleared_nor_used(which, store, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"precious{ENDING}").write_text("mine")
    place = store.runs if which == "runs" else store.folder
    shutil.rmtree(place)
    place.symlink_to(outside)
    for use in (store.clear, store.check):
        with pytest.raises(ValueError, match="is a link; runs and results are kept in folders"):
            use()
    assert (outside / f"precious{ENDING}").read_text() == "mine"


def test_a_link_is_deleted_and_what_it_leads_to_is_not(store, tmp_path):
    (figure,) = good_result()["figures"]
    path = store.folder / f"{figure}.png"
    path.unlink()
    path.symlink_to(tmp_path / "mine.png")
    (store.runs / f"a{ENDING}").symlink_to(tmp_path / "mine.png")
    (store.runs / f"b{ENDING}").mkdir()
    store.clear()
    assert not path.is_symlink()
    assert (store.runs / f"b{ENDING}").is_dir()
    assert (tmp_path / "mine.png").read_text() == "mine"


def test_a_new_result_deletes_no_figure_of_another_folder(finished):
    (finished / "mine.png").write_text("mine")
    path = finished / "tosses" / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"figures": ["../mine"]}))
    with pytest.raises(ValueError, match=r"figures\[0\]: expected a name"):
        reproduced(finished)
    assert (finished / "mine.png").read_text() == "mine"


RECORDS = ["{}", "[]", "1", "null", '{"method": 1}', "[" * 10**5, '{"identity": {"id": "<b>"}}', '"x"', ""]


@pytest.mark.parametrize("record", RECORDS, ids=lambda text: text[:20])
def test_a_run_that_is_none_is_computed_again(record, finished):
    from safetensors.numpy import save

    path = next(path for path in run_files(finished) if path.name.startswith("fair"))
    path.write_bytes(save({"tosses": np.zeros(2)}, {"format": "metaprior run 1", "run": record}))
    begun = []
    reproduced(finished, compute=counting(begun))
    assert [method for method, _ in begun] == [FAIR]
