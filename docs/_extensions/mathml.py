"""Formulas as MathML, made while the site is built: browsers draw them without a script.

Letters of other alphabets (script, double-struck, bold) are written as the characters that Unicode has for them, since
browsers do not change letters themselves. For readers whose system has no font with such characters, the site carries
STIX, which comes with matplotlib.
"""

import re
import shutil
import unicodedata
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
LETTER = re.compile(r'<mi mathvariant="(bold|script|double-struck)">(\w)</mi>')
#: Functions such as log have a narrow space around them; only a bracket follows at once.
BEFORE_NAME = re.compile(r"((?<=</mi>)|(?<=</mn>))(?=<mi>[a-z]{2,}</mi>)")
AFTER_NAME = re.compile(r"(?<=[a-z]{2}</mi>)(?=<m(?:i|n|sub|sup|row|frac|style)|<mo[^>]*>&#x0007C;)")
SPACE = '<mspace width="0.1667em"></mspace>'


def letter_of(alphabet: str, letter: str) -> str:
    """Return a letter of another alphabet; Unicode has some of them under names that are older than the alphabet's."""
    name = f"{alphabet.upper()} {unicodedata.name(letter).removeprefix('LATIN ').replace(' LETTER', '')}"
    for known in (f"MATHEMATICAL {name}", name):
        try:
            return unicodedata.lookup(known)
        except KeyError:
            continue
    return letter


def mathml(latex: str, display: str) -> str:
    """Return a formula as MathML; its source is a text for those who do not see it."""
    made = convert(latex, display=display).replace("\\_", "_")
    made = LETTER.sub(lambda found: f'<mi mathvariant="normal">{letter_of(*found.groups())}</mi>', made)
    made = AFTER_NAME.sub(SPACE, BEFORE_NAME.sub(SPACE, made))
    return made.replace("<math ", f'<math alttext="{escape(latex.strip())}" ', 1)


def write_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def write_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula of its own, with its number if it has one."""
    number = f'<span class="eqno">({get_node_equation_number(translator, node)})</span>' if node["number"] else ""
    # A wide formula scrolls, so it can be reached by the keyboard.
    translator.body.append(f'<div class="formula" tabindex="0">{number}{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def copy_font(app: Sphinx, failed: Exception | None) -> None:
    """Put the font for formulas beside the style sheets, with its licence."""
    if failed is None and app.builder.format == "html":
        for name in ("STIXGeneral.ttf", "LICENSE_STIX"):
            shutil.copyfile(FONTS / name, Path(app.outdir) / "_static" / name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the renderer `mathml` for formulas."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    app.connect("build-finished", copy_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
