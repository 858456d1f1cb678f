"""Check that a tag can be released: `python .ci/release.py v0.1.0`.

The tag is "v" and the version of pyproject.toml. The package and CITATION.cff have this version, too, and CHANGELOG.md
has a section for it.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: The files that name the version.
FILES = ("pyproject.toml", "src/metaprior/version.py", "CITATION.cff", "CHANGELOG.md")


def obstacles(tag: str, project: str, module: str, citation: str, changelog: str) -> Iterator[str]:
    """Yield what is wrong with a tag, given the texts of the files of `FILES`."""
    version = tomllib.loads(project)["project"]["version"]
    if tag != f"v{version}":
        yield f"the tag: expected v{version}, as pyproject.toml has the version {version}; got {tag}."
    if f'__version__ = "{version}"\n' not in module:
        yield f'version.py: expected __version__ = "{version}"; got {module.partition("__version__ = ")[2].strip()}.'
    cited = re.search(r"^version: *(.+?) *$", citation, flags=re.MULTILINE)
    if cited is None or cited[1].strip("\"'") != version:
        yield f"CITATION.cff: expected 'version: {version}'; got {cited[0] if cited else 'no version'}."
    if not re.search(rf"^## \[{re.escape(version)}\]", changelog, flags=re.MULTILINE):
        yield f"CHANGELOG.md: expected a section '## [{version}]'; rename 'Unreleased' and add the date."


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("expected one tag, as in: python .ci/release.py v0.1.0")
    found = list(obstacles(sys.argv[1], *[(ROOT / name).read_text(encoding="utf-8") for name in FILES]))
    sys.exit("\n".join(found) if found else 0)
