"""The commands, one per file: a new file is a new command."""
