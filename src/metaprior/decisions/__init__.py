"""Decisions: loops that ask for data, are told, and ask again."""
