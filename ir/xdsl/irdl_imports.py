"""Keeps xDSL from importing dialects out of the working folder that nobody asked for.

xDSL adds an import hook: if Python finds no module NAME, the hook reads NAME.irdl from the working
folder, turns it into a module, and writes NAME.pyi beside it. Libraries try to import what may be
missing, such as numba, which tries `yaml`. So a file that happens to be called yaml.irdl would be
read, and an error in it would end the program.

Once abele is imported, the hook serves only code that lies in the working folder itself, below it,
or in the script or prompt that Python runs. Installed packages do not count, wherever they lie.
Dialects inside packages (`from package import dialect`) are imported as before.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from inspect import currentframe
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    # Importing this would take a tenth of the time of `abele --help`.
    from importlib.abc import Loader, MetaPathFinder

XDSL_DIALECTS = "xdsl.dialects"
"""The module that adds the hook when it is imported."""

_INSTALLED = ("site-packages", "dist-packages")
"""Names of folders with installed packages."""

_IMPORTING = ("<frozen importlib", os.path.dirname(importlib.__file__) + os.sep)
"""How the file names of Python's own import system begin."""


class AskedDialects:
    """xDSL's import hook, restricted to imports that the user's own code makes.

    Attributes:
        hook: xDSL's own hook.
    """

    def __init__(self, hook: MetaPathFinder) -> None:
        self.hook = hook

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What xDSL's hook finds, or None.

        Args:
            path: the folders of the package, None outside one.
        """
        try:
            if path is None and not _is_asked(os.getcwd(), currentframe()):
                return None
        except FileNotFoundError:
            # The working folder was deleted, so there is nothing in it to find.
            return None
        return self.hook.find_spec(fullname, path, target)


def _is_asked(folder: str, frame: FrameType | None) -> bool:
    """Whether an import comes from the folder's own code, or from the script that Python runs."""
    while frame is not None and frame.f_code.co_filename.startswith((__file__, *_IMPORTING)):
        frame = frame.f_back
    if frame is None:
        return False
    module = str(frame.f_globals.get("__name__", ""))
    if module.partition(".")[0] == "abele":
        return False
    file = os.path.abspath(frame.f_code.co_filename)
    if any(f"{os.sep}{each}{os.sep}" in file for each in _INSTALLED):
        return False
    return module == "__main__" or file.startswith(os.path.join(folder, ""))


def import_only_asked_dialects() -> None:
    """Limit xDSL's import hook: now if xDSL has added it, else as soon as it does."""
    if XDSL_DIALECTS in sys.modules:
        _limit()
    elif not any(isinstance(each, _Awaiting) for each in sys.meta_path):
        sys.meta_path.insert(0, _Awaiting())


def _limit() -> None:
    # By name: importing the class would import much of xDSL, which abele --help does not need.
    for index, finder in enumerate(sys.meta_path):
        if type(finder).__name__ == "IRDLDialectFinder":
            sys.meta_path[index] = AskedDialects(cast(Any, finder))


class _Awaiting:
    """Waits for the import of xdsl.dialects, and then limits the hook that it has added."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, with a loader that limits the hook; None for other modules."""
        if fullname != XDSL_DIALECTS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = cast(Any, _Limiting(spec.loader))
        return spec


class _Limiting:
    """A loader that limits the hook after the module has run."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, and limit the hook."""
        self._loader.exec_module(module)
        _limit()

    def __getattr__(self, name: str) -> Any:
        # Readers of resources and sources ask the loader for more.
        return getattr(self._loader, name)
