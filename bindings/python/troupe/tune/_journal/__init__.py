"""The journal of a sweep: all that it has decided, in one SQLite file with one writer."""
