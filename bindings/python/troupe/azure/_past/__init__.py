"""Jobs of embedded clusters, which end with their programs: what is left of the jobs afterwards."""
