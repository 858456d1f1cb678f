"""Run the Python examples of the README, in the environment that runs this file.

A release runs it where its wheel is installed and nothing else, so that what people paste first works.
`python .ci/readme.py Example` runs only the examples of the sections that are named.
"""

import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def examples(page: str, titles: Collection[str] = ()) -> Iterator[str]:
    """Yield the blocks of Python code of the sections with these titles, or of all."""
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL))
    unknown = set(titles) - set(sections)
    if unknown:
        raise ValueError(f"README.md: expected titles out of {list(sections)}; got {sorted(unknown)}.")
    for title in titles or sections:
        yield from re.findall(r"^```python\n(.*?)^```$", sections[title], flags=re.MULTILINE | re.DOTALL)


if __name__ == "__main__":
    found = list(examples(README.read_text(encoding="utf-8"), sys.argv[1:]))
    if not found:
        sys.exit("README.md: expected examples in these sections; found none.")
    names: dict[str, object] = {"__name__": "__main__"}
    for code in found:
        exec(compile(code, str(README), "exec"), names)
    print(f"ran {len(found)} examples of README.md")
