"""Pure: what a sweep decides.

No clock, no thread, no file, no process: those are the shell's around it.
"""
