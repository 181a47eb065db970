"""`python -m troupe.cli`: the `troupe` command."""
from troupe.cli import main

main()
