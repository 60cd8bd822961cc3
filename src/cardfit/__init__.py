"""cardfit: which GPU a diffusion pipeline needs, how it must be set, how long it takes and what it costs."""

__version__ = "0.1.0"
