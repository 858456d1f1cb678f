"""The commands that this package adds to `metaprior`, through entry points of the group `metaprior.commands`."""
