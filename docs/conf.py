"""The settings of the documentation site, which `make docs` builds."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))
# Notebooks draw into their pages, unless this says that pictures go elsewhere.
os.environ.pop("MPLBACKEND", None)

from metaprior import __version__  # noqa: E402

project = "metaprior"
author = "The metaprior developers"
copyright = "the metaprior developers"  # noqa: A001 (the name that Sphinx reads)
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    # From docs/_extensions.
    "docstrings",
    "explorer",
    "mathml",
    "reference",
    "repository",
]
# sphinx-gallery writes docs/gallery, and the extension `reference` writes docs/api/modules.
exclude_patterns = [
    *("_extensions", "_templates", "badges", "explorer", "**.ipynb_checkpoints"),
    *("gallery/*.ipynb", "gallery/*.py", "gallery/*.md5"),
    "notes/README.md",
]
nitpicky = True
# Docstrings name types in words ("sequence of int"), and types of other libraries.
nitpick_ignore_regex = [(r"py:.*", r".*")]
show_warning_types = True

# --- pages in Markdown ------------------------------------------------------------

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_update_mathjax = False
suppress_warnings = [
    # Tutorials are text notebooks, and are executed anew only if they have changed.
    "myst_nb.lexer",
]
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "build" / "docs" / "notebooks")
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_excludepatterns = ["gallery/*"]
nb_merge_streams = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}

# --- the gallery ------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "backreferences_dir": None,
    "download_all_examples": False,
    "min_reported_time": 30,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    # The pages of times load scripts from other hosts.
    "write_computation_times": False,
}

# --- the reference ----------------------------------------------------------------

autosummary_generate = True
# The bridges are described without the libraries that they lead to.
autodoc_mock_imports = ["arviz", "botorch", "skactiveml", "skpro", "torch"]
toc_object_entries_show_parents = "hide"
autodoc_member_order = "groupwise"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# --- the look ---------------------------------------------------------------------

templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = f"metaprior {version}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}
copybutton_exclude = ".linenos, .gp, .go"
