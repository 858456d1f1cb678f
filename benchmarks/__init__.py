"""Benchmarks: every figure is a ratio of two programs that are measured side by side in one run.

`python -m benchmarks` measures all of `rows/` (one figure per file, each in its own process), and writes `results.json`
and the page `docs/performance.md`. With names of rows as arguments it measures only those.
"""
