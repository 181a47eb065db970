"""Sweeps: trials of a training with other hyperparameters, many at once, of which the bad ones are stopped early."""
