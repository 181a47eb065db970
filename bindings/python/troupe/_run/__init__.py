"""`troupe run`: the same line on every node; one leads and runs the command, the others serve it.

`place` reads who this node is, `secret` what all nodes share, `lead` and `follow` are the two
parts, `node` is what both do.
"""
