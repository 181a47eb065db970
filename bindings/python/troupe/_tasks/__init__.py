"""Tasks: remote functions, and the processes that are leased for them."""
