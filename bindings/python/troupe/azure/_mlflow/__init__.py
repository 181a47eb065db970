"""MLflow in command jobs that no address of a store reaches: a store of the job's own."""
