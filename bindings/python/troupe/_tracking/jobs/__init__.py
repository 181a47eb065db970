"""MLflow in jobs that no address of a store reaches: a store of the job's own on its nodes."""
