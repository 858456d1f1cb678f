"""The site of the documentation: its links are checked, and its reference has every public name."""

import inspect

import pytest

import metaprior
from scripts import ROOT, module

PAGE = '<!doctype html><html lang="en"><head><title>T</title>{head}</head><body><h1 id="top">T</h1>{body}</body></html>'


@pytest.fixture(scope="module")
def links():
    return module("links")


def wrong(links, folder, body="", head="", page=PAGE):
    (folder / "index.html").write_text(page.format(body=body, head=head), encoding="utf-8")
    (folder / "other.html").write_text(PAGE.format(body="", head=""), encoding="utf-8")
    (folder / "there.css").write_text("a { color: red }", encoding="utf-8")
    return list(links.problems(folder))


@pytest.mark.parametrize(
    "body",
    [
        '<a href="other.html#top">x</a> <a href="#top">x</a> <a href="https://example.org/x.html#y">x</a>',
        '<a href="./">x</a> <a href="mailto:a@b.c">x</a> <img src="there.css" alt="">',
        '<img src="data:image/png;base64,AA" alt="x"> <p style="background: url(there.css)">x</p>',
    ],
)
def test_links_and_files_that_exist_are_no_problem(links, tmp_path, body):
    assert wrong(links, tmp_path, body, '<link rel="stylesheet" href="there.css">') == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('<a href="gone.html">x</a>', "the link gone.html leads nowhere"),
        ('<a href="other.html#gone">x</a>', "leads to an anchor that other.html does not have"),
        ('<a href="#gone">x</a>', "leads to an anchor that index.html does not have"),
        ('<a href="../index.html">x</a>', "leads out of the site"),
        ('<img src="gone.png" alt="x">', "it loads gone.png, which does not exist"),
        ('<img src="there.css">', "the picture there.css has no text (alt)"),
        ('<script src="https://example.org/x.js"></script>', "it loads https://example.org/x.js from another host"),
        ('<script src="//example.org/x.js"></script>', "from another host"),
        ('<link rel="stylesheet" href="https://example.org/x.css">', "from another host"),
        ('<link rel="preconnect" href="https://example.org">', "from another host"),
        ("<style>@import 'https://example.org/x.css'</style>", "from another host"),
        ('<p style="background: url(https://example.org/x.png)">x</p>', "from another host"),
        ('<img srcset="https://example.org/x.png 2x" alt="x">', "from another host"),
    ],
)
def test_what_does_not_exist_or_lies_elsewhere_is_told(links, tmp_path, body, told):
    (found,) = wrong(links, tmp_path, body)
    assert found.startswith("index.html: ")
    assert told in found


def test_a_notebook_that_shows_fewer_pictures_than_it_describes_is_told(links, tmp_path, monkeypatch):
    monkeypatch.setattr(links, "DOCS", tmp_path)
    (tmp_path / "index.md").write_text("mystnb:\n  image:\n    alt: A curve.\n" * 2, encoding="utf-8")
    (tmp_path / "_images").mkdir()
    (tmp_path / "_images" / "a.png").write_bytes(b"")
    cell, picture = '<div class="cell_input docutils"></div>', '<img src="_images/a.png" alt="A">'
    (found,) = wrong(links, tmp_path, cell + picture)
    assert found == "index.html: it shows 1 of the 2 pictures that its source describes."
    assert wrong(links, tmp_path, cell + picture + picture.replace("A", "B")) == []
    assert wrong(links, tmp_path, picture) == []


def test_style_sheets_are_read_too(links, tmp_path):
    (tmp_path / "site.css").write_text("@font-face { src: url('https://example.org/f.woff2') }", encoding="utf-8")
    (found,) = wrong(links, tmp_path)
    assert found == "site.css: it loads https://example.org/f.woff2 from another host."


def test_a_page_needs_a_title_and_a_language_and_a_site_needs_pages(links, tmp_path):
    assert len(wrong(links, tmp_path, page="<html><body>{head}{body}</body></html>")) == 2
    (empty := tmp_path / "empty").mkdir()
    assert "expected pages of HTML" in next(links.problems(empty))


def test_the_front_page_leads_to_a_version_and_lists_all(tmp_path):
    front_page = module("front").front_page
    for version in ("0.1.0", "0.2.0"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "index.html").touch()
    page = front_page(tmp_path, "0.1.0")
    assert 'content="0; url=0.1.0/index.html"' in page
    assert '<a href="0.2.0/index.html">' in page
    with pytest.raises(SystemExit, match="expected a site of version 0.3.0"):
        front_page(tmp_path, "0.3.0")


# --- the reference ----------------------------------------------------------------


@pytest.fixture(scope="module")
def reference():
    return module("reference", "docs/_extensions")


def test_the_reference_has_every_public_module_and_what_it_exports(reference):
    modules = [found for found in reference.public_modules() if found.__name__ != "metaprior.bridges"]
    assert {metaprior.kernels, metaprior.metrics, metaprior.decisions, metaprior.kernels.composition} <= set(modules)
    where = reference.described_where(modules)
    for found in modules:
        exported = {name for name in getattr(found, "__all__", ()) if not inspect.ismodule(getattr(found, name))}
        assert exported <= where[found.__name__].keys()
    assert where["metaprior.estimators"]["MetaGPRegressor"] == "metaprior.MetaGPRegressor"
    assert {"rmse", "scores", "auroc"} <= where["metaprior.metrics"].keys()


def test_every_public_name_is_on_the_page_of_its_module(reference):
    modules = [found for found in reference.public_modules() if found.__name__ != "metaprior.bridges"]
    for found in modules:
        names = reference.described_where(modules)[found.__name__]
        page = reference.page_of(found, names)
        for name, full in names.items():
            assert f"   {name}\n" in page or f":: {name}\n" in page or f"`{full}`" in page


def test_the_site_has_the_version_of_the_package_and_no_script_for_formulas():
    settings = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    assert "version = release = __version__" in settings
    assert 'html_math_renderer = "mathml"' in settings
