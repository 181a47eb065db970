"""Profiles of processes, read from outside."""
