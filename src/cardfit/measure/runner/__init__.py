"""The child process of a run: builds the real pipeline, sets it, calls it, and says what happened.

In: a `Job` on stdin. Out: events on stdout. Started as ``python -m cardfit.measure.runner``.
"""
