"""The last step of an item, once all its runs are stored: verdicts, figures and `result.json`.

Everything is made from the files of the runs, so the output is the same whether they were computed at once or in
pieces. `result.json` is written last: if it exists, the figures do too.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metaprior.io.atomic import write_atomically
from metaprior.plots import style
from metaprior_reproduction.frame.form import check_name, checked
from metaprior_reproduction.frame.identity import plain
from metaprior_reproduction.frame.result import Result
from metaprior_reproduction.frame.store import Kept, Store
from metaprior_reproduction.parts.item import Item, Results, Run, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Dots per inch of PNG files and of the rasterised parts of SVG files.
DPI = 110


def write_result(item: Item, store: Store, kept: Sequence[Kept]) -> dict[str, Any]:
    """Judge and draw an item, write its figures and its result, and return the result."""
    results = Results(store.config, [one.run for one in kept])
    verdicts = with_causes(item, results)
    with style():
        figures = _write_figures(store, item.draw(results))
    content = {
        "id": store.id,
        "title": item.title,
        "claim": item.claim,
        "preset": store.preset,
        "config": store.config,
        "versions": _joined([one.versions for one in kept]),
        "seconds": sum(one.run.seconds for one in kept),
        "verdicts": [vars(verdict) for verdict in verdicts],
        "rows": rows(results),
        "paper": item.paper,
        "notes": item.notes,
        "figures": figures,
        "runs": [_run(one.run) for one in kept],
    }
    whole: dict[str, Any] = plain(content)
    checked(Result, whole)
    _drop_old_figures(store, figures)
    text = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(store.result, f"{text}\n".encode())
    return whole


def with_causes(item: Item, results: Results) -> list[Verdict]:
    """Return the verdicts of an item; those whose claim is not met have the cause that the item declares, if any."""
    return [
        replace(verdict, cause=item.causes.get(verdict.claim, "")) if verdict.outcome == "worse" else verdict
        for verdict in item.judge(results)
    ]


def rows(results: Results) -> list[dict[str, Any]]:
    """Return the rows of the table: the metrics of every method, summarised over seeds."""
    return [
        {
            "method": method,
            "metrics": {name: vars(results.summary(method, name)) for name in results.metrics(method)},
        }
        for method in results.methods
    ]


def _run(run: Run) -> dict[str, Any]:
    return {"method": run.method, "seed": run.seed, "metrics": run.outcome.metrics, "seconds": run.seconds}


def _joined(found: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the versions; if runs differ, all of theirs."""
    names = dict.fromkeys(name for one in found for name in one)
    return {name: "; ".join(dict.fromkeys(one[name] for one in found if name in one)) for name in names}


# --- figures ----------------------------------------------------------------------------


def _write_figures(store: Store, figures: "Mapping[str, Figure]") -> list[str]:
    """Write figures as PNG and SVG, with the same bytes for the same figure, and return their names."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    for name, figure in figures.items():
        check_name(name, "the name of a figure")
        with mpl.rc_context({"svg.hashsalt": f"{store.id} {name}"}):
            for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
                content = io.BytesIO()
                figure.savefig(content, format=kind, dpi=DPI, metadata=metadata)
                write_atomically(store.folder / f"{name}.{kind}", content.getvalue())
        plt.close(figure)
    return list(figures)


def _drop_old_figures(store: Store, names: Sequence[str]) -> None:
    """Delete the figures of the previous result that this one does not have."""
    for path in store.old_figures():
        if path.stem not in names:
            path.unlink(missing_ok=True)
