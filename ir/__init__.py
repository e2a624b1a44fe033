"""The parts of the compiler that all levels share and that depend on no dialect."""

from .xdsl.irdl_imports import import_only_asked_dialects

import_only_asked_dialects()
