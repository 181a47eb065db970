"""What every test of the Python side stands on."""

import signal

# A shell that runs this in the background ignores SIGINT for it and for every process below: tests of
# Ctrl-C would then wait for ever for what cannot come.
signal.signal(signal.SIGINT, signal.default_int_handler)
