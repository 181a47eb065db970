"""Stands on the import path of processes that a program of `troupe run-as` starts: what they import
as `serverless_gpu` is as in the program."""

from troupe import stand_ins

stand_ins.enter(__name__)
