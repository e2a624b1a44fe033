"""Traps of MLIR's dialects: with small sizes, each is a program that readers accept."""

from itertools import product
from string import Template

import pytest

from abele.dialects.levels import known_level
from abele.ir.errors import InputError
from abele.ir.upstream import VerifyException
from abele.ir.verify import verify
from abele.passes.convert_linalg_to_nn import ConvertLinalgToNn
from abele.passes.convert_stablehlo_to_nn import ConvertStablehloToNn
from abele.tools.driver.context import new_context
from abele.tools.testing.hostile.mlir_programs import SOURCES
from abele.tools.testing.hostile.mlir_traps import LINALG_SIZES, STABLEHLO_SIZES, program

SMALL = "01234678"


@pytest.mark.parametrize(
    ("dialect", "convert", "body", "type_"),
    [
        *(("stablehlo", ConvertStablehloToNn, *each) for each in STABLEHLO_SIZES),
        *(("linalg", ConvertLinalgToNn, *each) for each in LINALG_SIZES),
    ],
)
def test_a_trap_is_a_program_for_some_sizes(dialect, convert, body, type_):
    names = [n for n in "nmk" if n in Template(body + type_).get_identifiers()]
    for sizes in product(SMALL, repeat=len(names)):
        chosen = dict(zip(names, sizes, strict=True))
        filled = (Template(each).safe_substitute(chosen) for each in (body, type_))
        try:
            module = SOURCES[dialect].parse(program(*filled))
            verify(module, known_level(module))
            convert().apply(new_context(), module)
        except (InputError, VerifyException):
            continue
        return
    pytest.fail("refused for all small sizes")
