"""Actors as their callers have them: classes, handles, options, retries, streams."""
