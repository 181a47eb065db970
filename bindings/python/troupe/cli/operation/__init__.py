"""Commands around a cluster that is there for long: which clusters there are by name, and what is
wrong with a machine."""
