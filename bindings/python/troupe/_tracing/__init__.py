"""Recorded time: spans of processes, and stacks and profiles taken from outside."""
