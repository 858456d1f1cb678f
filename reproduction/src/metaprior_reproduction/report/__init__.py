"""Results to pages: what `metaprior reproduce` wrote, as one HTML page or as Markdown; one kind of page a file."""

from metaprior_reproduction.report import html, markdown
from metaprior_reproduction.report.contents import Entry, read_entries, tally

__all__ = ["Entry", "html", "markdown", "read_entries", "tally"]
