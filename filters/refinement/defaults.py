"""Defaults of the refinement against all attacks, as the command, the build config and Python have them."""

DEFAULT_TARGET = 0.52
DEFAULT_MIN_KEEP = 0.1
DEFAULT_ROUNDS = 12
