"""The explorer's folder: small, complete, self-contained, readable in both colour schemes, and made by its script."""

import re

import numpy as np
import pytest

from explorer_engine import FOLDER, exporter

MOST_BYTES = 600_000
EXPORT = exporter()
SHIPPED = {model["name"]: model for model in EXPORT.read(FOLDER / "models.js")}


def text_of(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def scripts():
    return re.findall(r'<script src="([^"]+)">', text_of("index.html"))


# --- the files ------------------------------------------------------------------------


def test_the_folder_is_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) <= MOST_BYTES


def test_the_page_loads_every_script_of_the_folder_and_nothing_else():
    assert sorted(scripts()) == sorted(path.name for path in FOLDER.glob("*.js"))
    assert re.findall(r'rel="stylesheet" href="([^"]+)"', text_of("index.html")) == ["explorer.css"]


@pytest.mark.parametrize("name", ["index.html", "explorer.css", *scripts()])
def test_nothing_is_asked_of_another_host(name):
    assert not re.search(
        r"(https?:)?//[a-z0-9-]+\.[a-z]|@import|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon", text_of(name)
    )


def test_every_control_has_a_label():
    page = text_of("index.html")
    controls = re.findall(r'<(?:input|select)\b[^>]*\bid="([^"]+)"', page)
    assert len(controls) > 10
    for name in controls:
        wrapped = re.search(rf'<label[^>]*>[^<]*<(?:input|select)[^>]*id="{name}"', page)
        assert wrapped or f'<label for="{name}">' in page, name


def test_every_element_that_a_script_asks_for_is_in_the_page():
    ids = set(re.findall(r'id="([^"]+)"', text_of("index.html")))
    asked = set(re.findall(r'\$\("([^"]+)"\)', text_of("page.js")))
    assert asked
    assert asked <= ids


# --- colours --------------------------------------------------------------------------


def schemes():
    """Return the colours of the light scheme, of the dark one of the system, and of the dark one by choice."""
    blocks = re.findall(r"\{([^{}]*--ground:[^{}]*)\}", text_of("explorer.css"))
    return [dict(re.findall(r"--([a-z]+): ([^;]+);", block)) for block in blocks]


def luminance(colour):
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(a, b):
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


def test_both_ways_to_the_dark_scheme_lead_to_the_same_colours():
    light, by_system, by_choice = schemes()
    assert by_system == by_choice
    assert light.keys() == by_system.keys()


@pytest.mark.parametrize("number", [0, 1], ids=["light", "dark"])
def test_texts_and_marks_have_the_contrast_that_wcag_asks_for(number):
    colours = schemes()[number]
    for ground in ("ground", "panel"):
        for name in ("text", "muted", "link"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    for name in ("mean", "data", "added", "line", "focus"):
        assert contrast(colours[name], colours["ground"]) >= 3, name


# --- the fitted models ----------------------------------------------------------------


def test_the_shipped_models_are_those_of_the_script():
    assert list(SHIPPED) == [study.name for study in EXPORT.STUDIES]
    assert len(SHIPPED) >= 12


@pytest.mark.parametrize("study", EXPORT.STUDIES, ids=lambda study: study.name)
def test_a_shipped_model_belongs_to_its_study_and_is_unchanged(study):
    model = SHIPPED[study.name]
    assert model["digest"] == EXPORT.digest(model)
    x, y = study.rows()
    assert model["data"] == {"x": EXPORT.numbers(x), "y": EXPORT.numbers(y)}
    assert (model["title"], model["activation"]) == (study.title, study.activation)
    assert [layer["shape"][1] for layer in model["hidden"]] == list(study.hidden)
    expected = study.kernel and EXPORT.kernel_of(study.kernel.with_periods(np.ones(1)).bound_to(1))
    assert shape_of(model["kernel"]) == shape_of(expected)


def shape_of(kernel):
    """Return the kinds of kernels in a kernel."""
    if kernel is None:
        return None
    return kernel["kind"], *[shape_of(kernel[part]) for part in ("left", "right", "inner") if part in kernel]


def test_a_changed_parameter_changes_the_digest():
    model = SHIPPED["sinusoid-periodic"]
    assert EXPORT.digest({**model, "noise": model["noise"] * 1.000001}) != model["digest"]


def test_a_kernel_that_the_page_does_not_know_is_refused():
    from metaprior import kernels

    with pytest.raises(ValueError, match="expected one of the kernels that the page knows; got RationalQuadratic"):
        EXPORT.kernel_of(kernels.RationalQuadratic())


def test_a_file_of_another_format_is_refused(tmp_path):
    path = tmp_path / "models.js"
    path.write_text(EXPORT.text_of([]).replace('"format":1', '"format":0'), encoding="utf-8")
    with pytest.raises(ValueError, match="models.js: expected format 1; got 0"):
        EXPORT.read(path)
