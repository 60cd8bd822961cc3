"""Footage in and out: decode pictures, folders and videos; encode; what the codecs here can do.

In: paths. Out: frames one at a time, files that were checked after writing. PyAV is loaded when a file is opened.
"""
