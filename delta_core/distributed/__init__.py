"""Reads and writes whose rows other processes hold: the parts that `delta_core.dask` and `delta_core.ray` share.

`reading.plan_parts` splits a scan into parts that can be pickled, each of which any process reads by itself.
`writing.write_parts` is one write, with one commit, whose files other processes write.
"""
