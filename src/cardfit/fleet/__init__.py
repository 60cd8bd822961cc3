"""Many machines at once: sweeps on a Ray cluster.

In: work that is one call a piece, and where it may run. Out: what every piece gave, once. Nothing here measures or
predicts: rooms below do, on whichever node a piece lands. Ray is loaded when a cluster is joined.
"""
