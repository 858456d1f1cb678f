"""Write the page in front of the versions of the site: it leads to one of them and lists all.

`python .ci/front.py FOLDER VERSION` looks at the folders of a folder; each is the site of a version.
"""

import sys
from pathlib import Path

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="0; url={version}/index.html">
<title>metaprior: documentation</title>
<style>:root {{ color-scheme: light dark; font-family: sans-serif; }}</style>
</head>
<body>
<h1>metaprior: documentation</h1>
<ul>
{versions}
</ul>
</body>
</html>
"""


def front_page(folder: Path, version: str) -> str:
    """Return the page that leads to a version and lists all that are there."""
    there = sorted(path.parent.name for path in folder.glob("*/index.html"))
    if version not in there:
        raise SystemExit(f"{folder}: expected a site of version {version}; got {there}.")
    lines = [f'<li><a href="{name}/index.html">{name}</a></li>' for name in there]
    return PAGE.format(version=version, versions="\n".join(lines))


if __name__ == "__main__":
    where = Path(sys.argv[1])
    (where / "index.html").write_text(front_page(where, sys.argv[2]), encoding="utf-8")
