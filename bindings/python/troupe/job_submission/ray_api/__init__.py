"""Ray's REST API for jobs, served on loopback in front of `JobSubmissionClient`."""
