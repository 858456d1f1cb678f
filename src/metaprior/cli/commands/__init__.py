"""The commands, one per file. A new file adds a command."""
