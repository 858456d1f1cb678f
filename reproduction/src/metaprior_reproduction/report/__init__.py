"""Pages of what `metaprior reproduce` wrote, in HTML or Markdown; each kind of page has a file of its own."""

from metaprior_reproduction.report import html, markdown, summary
from metaprior_reproduction.report.contents import Entry, counts_text, read_entries, tally

__all__ = ["Entry", "counts_text", "html", "markdown", "read_entries", "summary", "tally"]
