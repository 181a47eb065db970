"""`python -m troupe`: the `troupe` command."""

import sys

if not sys.flags.safe_path:
    del sys.path[
        0
    ]  # the current directory, which the command has nothing of: a random.py there is the program's

from troupe.cli import main  # noqa: E402

main()
