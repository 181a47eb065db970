"""Processes that run the user's code: how they are made, what they are until they end.

`python -m troupe._process` makes one.
"""
