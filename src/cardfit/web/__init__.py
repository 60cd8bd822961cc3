"""The web face: a REST API and the pages of the configurator, answered by `cardfit.api`.

Loaded by `cardfit serve` only; needs the extra `web`. The server reads: records are written by the command line.
"""
