"""Sweeps of command jobs as they run: each trial a job of its own."""
