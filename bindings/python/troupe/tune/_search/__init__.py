"""Sources of configurations: spaces, their values, and searchers."""
