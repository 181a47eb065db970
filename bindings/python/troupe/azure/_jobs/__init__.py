"""What `MLClient.jobs` does with jobs, and what it gives."""
