"""The cluster as this process knows it: connecting, its session, what the head pushes, what nodes
keep; and starting its programs."""
