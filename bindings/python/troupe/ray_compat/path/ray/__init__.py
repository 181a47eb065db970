"""Stands on the import path of processes that a program of `troupe run-as` starts: what they import
as `ray` is Troupe."""

from troupe import stand_ins

stand_ins.enter(__name__)
