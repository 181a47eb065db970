"""`python -m troupe`: the `troupe` command."""
from troupe.cli import main

main()
