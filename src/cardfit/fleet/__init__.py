"""Many machines at once: sweeps on a Ray cluster, shots laid over the cards of a farm, tasks for SkyPilot.

In: work that is one call a piece, or shots; and where they may run. Out: what every piece gave, once; an assignment; a
task. Nothing here measures or predicts: rooms below do. Ray is loaded when a cluster is joined.
"""
