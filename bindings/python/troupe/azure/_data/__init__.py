"""The data of command jobs on a node: inputs that are mounted or copied."""
