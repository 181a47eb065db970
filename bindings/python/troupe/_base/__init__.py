"""Modules that every other room of the package may use."""
