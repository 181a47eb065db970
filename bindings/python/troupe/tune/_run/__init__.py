"""A sweep as it runs: the thin shell that carries out what the core decides, on actors, in a
folder."""
