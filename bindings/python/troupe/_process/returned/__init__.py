"""A rank that waits for one that has returned: what this process has begun in its groups, and
telling the head."""
