"""Measure: run the real pipeline in a child process, watch it, keep what it did, and learn from it.

In: an exact request and settings, which this room is handed and never plans. Out: records. torch is imported in
`runner` only, which is another process.
"""
