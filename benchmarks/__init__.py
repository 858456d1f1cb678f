"""Benchmarks: every figure is a ratio of two programs measured side by side in one run.

`python -m benchmarks` measures all of `rows/` (one figure a file, each in a process of its own), writes
`results.json` and the page `docs/performance.md`; names of rows after it measure those only.
"""
