"""Targets: the machine as a parameter. Presets, TOML files, and the values that users set."""

from .target import (
    DEFAULT_TARGET,
    MK2,
    MOST_TILES,
    PRESETS,
    USERS_TARGETS,
    ConvUnits,
    Target,
    changed_target,
    known_keys,
    named_target,
    register_target,
    resolve_target,
)

__all__ = [
    "DEFAULT_TARGET",
    "MK2",
    "MOST_TILES",
    "PRESETS",
    "USERS_TARGETS",
    "ConvUnits",
    "Target",
    "changed_target",
    "known_keys",
    "named_target",
    "register_target",
    "resolve_target",
]
