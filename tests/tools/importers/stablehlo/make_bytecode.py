"""Writes the bytecode of some of the programs: python make_bytecode.py. It needs jaxlib.

Hostile inputs begin with it: `abele fuzz --hostile --kind stablehlo-bytecode`.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from abele.tools.importers.stablehlo.print_generic import new_context

HERE = Path(__file__).parent

NAMES = ("conv_same", "counted_loop", "dense", "pools", "special_values", "switch")


def main() -> None:
    """Write a file for each program, in the oldest version that jaxlib writes."""
    ir: Any = import_module("jaxlib.mlir.ir")
    stablehlo: Any = import_module("jaxlib.mlir.dialects.stablehlo")
    with new_context(), ir.Location.unknown():
        for name in NAMES:
            module = ir.Module.parse((HERE / "programs" / f"{name}.mlir").read_text())
            version = stablehlo.get_minimum_version()
            data = stablehlo.serialize_portable_artifact(module, version)
            (HERE / "bytecode" / f"{name}.mlirbc").write_bytes(data)


if __name__ == "__main__":
    main()
