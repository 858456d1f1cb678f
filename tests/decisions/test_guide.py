"""The examples of the guide run as they are written, with smaller models."""

import pytest

from decisions.active_pools import ROOT, SMALL

pytestmark = pytest.mark.filterwarnings("ignore:the median distance", "error::DeprecationWarning")

SHORT = ", ".join(f"{name}={value}" for name, value in SMALL.items())
#: What takes long, and what is run instead.
PAGES = {
    "active": {
        'hidden_layer_sizes=(20,), input_kernel="rbf", max_iter=1000': SHORT,
        "n_observations=20": "n_observations=15",
    },
    "optimise": {"n_observations=40": "n_observations=6"},
    "bandit": {"n_observations=150": "n_observations=60"},
}
SEEN = {"active": "rmse", "optimise": "[", "bandit": "cumulative_regret"}


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_the_page_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / f"{name}.md").read_text()
    for long, short in PAGES[name].items():
        assert long in page
        page = page.replace(long, short)
    for code in page.split("```python\n")[1:]:
        exec(code.split("```")[0], {})
    assert SEEN[name] in capsys.readouterr().out
