"""The page of a cluster: what `troupe dashboard` serves."""
