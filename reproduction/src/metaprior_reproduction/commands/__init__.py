"""What this package adds to the command `metaprior`, by entry points of the group `metaprior.commands`."""
