"""Scripts and workflows as requests: what a Python file that uses diffusers would run, read without running it."""
