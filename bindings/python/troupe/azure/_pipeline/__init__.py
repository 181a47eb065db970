"""Pipelines of command jobs and sweeps: a graph of steps, each a job of its own."""
