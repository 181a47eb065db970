"""A cluster of Ray's on the nodes of a launch: started before its driver runs, watched meanwhile,
and taken down with it."""
