"""One figure per file. Each file defines `measure() -> Row`."""
