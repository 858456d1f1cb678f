"""One figure a file: each has `measure() -> Row`."""
