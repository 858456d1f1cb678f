"""The examples of the pages run as they are written, with smaller models."""

import re
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
#: The sections of the page, the libraries that they need, and what their last example prints.
SECTIONS = {
    "BoTorch": (["botorch"], r"tensor\(\[\["),
    "ArviZ": (["arviz", "numpyro"], r"mean\[0\]"),
    "skpro and sktime": (["skpro", "sktime"], "2022-03"),
    "MAPIE": (["mapie"], r"\[\["),
    "Optuna": (["optuna"], "units"),
    "scikit-activeml": (["skactiveml"], r"10\n\["),
}
#: What takes long, and what is run instead.
SHORTER = {
    "(random_state=0)": "((4,), max_iter=30, n_predict_draws=32, random_state=0)",
    'input_kernel="rbf", random_state=0': '(4,), input_kernel="rbf", max_iter=30, n_predict_draws=32, random_state=0',
    "max_iter=200": "max_iter=10",
    '"units", 5, 50': '"units", 3, 4',
    '"latent_dim", 1, 4': '"latent_dim", 2, 2',
    '"rbf", "matern32", None': '"rbf", None',
    "n_trials=10": "n_trials=2",
    "n_trials=3": "n_trials=1",
    "range(5):\n        elbo": "range(2):\n        elbo",
    "[-50:]": "[-5:]",
    '["units"],), random_state=0': '["units"],), max_iter=10, random_state=0',
    "4),), random_state=0": "4),), max_iter=10, random_state=0",
    "n_warmup=300, n_samples=200, n_chains=2, n_predict_draws=400": "n_warmup=20, n_samples=10, n_chains=2, "
    "n_predict_draws=20",
}


def section_of(page, title):
    return page.split(f"\n## {title}\n")[1].split("\n## ")[0]


def run(text):
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    names = {}
    for code in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(code, names)


@pytest.mark.slow
@pytest.mark.parametrize("title", SECTIONS)
@pytest.mark.filterwarnings("ignore")
def test_the_examples_of_the_page_of_bridges_run(title, capsys):
    libraries, printed = SECTIONS[title]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for library in libraries:
            pytest.importorskip(library, reason=f"the section {title} needs {library}")
    run(section_of((DOCS / "bridges.md").read_text(), title))
    assert re.search(printed, capsys.readouterr().out)


def test_every_section_of_the_page_is_run():
    assert re.findall(r"^## (.*)$", (DOCS / "bridges.md").read_text(), flags=re.MULTILINE) == list(SECTIONS)
