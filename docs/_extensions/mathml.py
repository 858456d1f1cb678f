"""Formulas as MathML, made while the site is built: browsers draw them without a script and without a font of ours."""

from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator


def mathml(latex: str, display: str) -> str:
    """Return a formula as MathML; the source of the formula is its text for readers of another kind."""
    made = convert(latex, display=display)
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


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the renderer `mathml` for formulas."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
