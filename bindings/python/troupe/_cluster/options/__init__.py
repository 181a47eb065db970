"""The tables of the options of nodes and of heads."""
