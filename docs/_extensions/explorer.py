"""The explorer: a page with its own script and data, which is copied into the site as it is."""

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


def copy_explorer(app: Sphinx, failed: Exception | None) -> None:
    """Copy docs/explorer into the site."""
    if failed is None and app.builder.format == "html":
        ignored = shutil.ignore_patterns("*.py", "__pycache__")
        shutil.copytree(
            Path(app.srcdir) / "explorer", Path(app.outdir) / "explorer", dirs_exist_ok=True, ignore=ignored
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Copy the explorer when all pages are written."""
    app.connect("build-finished", copy_explorer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
