"""The page docs/performance.md: a table of the results, and curves on log-log axes."""

from pathlib import Path
from typing import Any

from metaprior.plots.style import legend_above, style

HEAD = """# Performance

How fast are a prediction, a whole fit and a training step, compared with other programs that do
similar work? This page answers with ratios. The two programs of a ratio took turns in one run, and
their median times are compared, so the ratios depend little on the machine. The exceptions are two
times in seconds, of the first fit and from process start to prediction, and the exponents of growth,
each beside that of its count of operations. [scaling.md](scaling.md) explains what a step costs and
why.

`make bench` measures everything again and writes this page from `benchmarks/results.json`. The last
measurement was on {date}, on this machine; each row says below when it was measured. The
default chooses an input kernel (`input_kernel="auto"`), which takes most of the time of its fits and
predictions ([scaling.md](scaling.md)). Where a row is about the default, the times without an input
kernel stand beside it:

| processor | cores | memory | system | Python | JAX | product of large float32 matrices |
|---|---|---|---|---|---|---|
| {processor} | {cores} | {memory_gib} GiB | {system} | {python} | {jax} | {matmul_gflops} GFlop/s |

## Ratios and their targets

| what is compared | ratio | target | met |
|---|---|---|---|
"""


def write_page(results: dict[str, Any], page: Path) -> None:
    """Write the page, and the pictures of the curves beside it."""
    lines = [HEAD.format(**results["machine"]).rstrip("\n")]
    for row in results["rows"]:
        lines.append(f"| {row['work']} | {row['ratio']:.3g} | {row['bar']} | {'yes' if row['holds'] else '**no**'} |")
    lines += ["", "## The times behind the ratios", ""]
    for row in results["rows"]:
        lines += [f"### {row['work'][0].upper()}{row['work'][1:]}", "", "| quantity | value |", "|---|---|"]
        lines += [f"| {name} | {_shown(value)} |" for name, value in _details(row).items()]
        lines += [""]
    curved = [row for row in results["rows"] if "curves" in row]
    for row in curved:
        picture = page.parent / f"{row['name']}.png"
        draw(row, picture)
        lines += [f"![{row['work']}]({picture.name})", ""]
    page.write_text("\n".join(lines))


def _details(row: dict[str, Any]) -> dict[str, Any]:
    shown = {key: value for key, value in row.items() if key not in ("name", "work", "ratio", "bar", "holds", "curves")}
    flat: dict[str, Any] = {}
    for key, value in shown.items():
        if isinstance(value, dict):
            flat |= {f"{name} ({key})": own for name, own in value.items()}
        else:
            flat[key] = value
    return flat


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def draw(row: dict[str, Any], picture: Path) -> None:
    """Draw a row's curves on log-log axes."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    curves = {name: points for name, points in row["curves"].items() if name != "x"}
    with style():
        figure = Figure(figsize=(6.4, 3.8))
        axes = figure.add_subplot(xscale="log", yscale="log", xlabel=row["curves"]["x"], ylabel="seconds per step")
        for name, points in curves.items():
            axes.plot(*zip(*points, strict=True), marker="o", label=name)
        measured = sorted({x for points in curves.values() for x, _ in points})
        axes.set_xticks(measured, [f"{x:,}" for x in measured])
        axes.xaxis.set_minor_locator(NullLocator())
        legend_above(axes)
        figure.savefig(picture, dpi=120)
