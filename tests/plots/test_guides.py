"""The examples of the pages on predictions and plots run, with fewer steps of training."""

from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["predictions", "plots"])
def test_the_examples_of_the_page_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert "random_state=0).fit(" in page
    page = page.replace("random_state=0).fit(", "random_state=0, max_iter=20).fit(")
    known = {}
    for code in page.split("```python\n")[1:]:
        exec(code.split("```")[0], known)
    plt.close("all")
    assert known["predicted"].covariance().shape[0] == len(known["predicted"])
    assert (tmp_path / "fit.png").exists() == (name == "plots")
