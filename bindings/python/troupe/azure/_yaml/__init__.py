"""Jobs in YAML files, with the keys of `az ml`. Errors name file, line and column."""
