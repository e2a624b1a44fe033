"""Fabrics and methods of one's own."""

from pathlib import Path

import pytest

from abele.backends.fabrics.table import FABRICS
from abele.backends.prices.contractions.contraction import Contraction
from abele.backends.prices.contractions.methods import contraction_cycles, methods_of
from abele.backends.target import USERS_TARGETS, Target, resolve_target
from abele.ir.support.errors import InputError
from abele.tools.driver.extensions.registration import uninstall
from abele.tools.extensions import load_extensions

IMPORTS = """
from dataclasses import dataclass, replace
import numpy as np
from abele.backends.prices.contractions.methods import Method
from abele.backends.fabrics.fabric import Fabric
from abele.backends.facts import ASSUMED, Unit, fact
from abele.backends.target import MK2
"""

PARTS = """
@dataclass(frozen=True)
class Torus(Fabric):
    kind = "torus"
    side: int = fact(4, ASSUMED, "made up", (1, 100))

    def meeting_cycles(self, zone):
        return self.side * super().meeting_cycles(zone)

@dataclass(frozen=True)
class Array(Unit):
    kind = "array"
    each: float = fact(2.0, ASSUMED, "made up", (0, 100))

def price(contraction, target):
    return contraction.field * target.unit(Array).each

systolic = Method("systolic", Array, price, supervised=True)
TORUS = replace(MK2, name="toroidal", exchange=Torus(side=3))
"""


@pytest.fixture
def parts(tmp_path: Path):
    path = tmp_path / "parts.py"
    path.write_text(IMPORTS + PARTS)
    load_extensions([path])
    yield path
    uninstall(str(path.resolve()))


def test_a_target_may_name_parts_of_a_users_file(parts: Path):
    text = "tiny,exchange.fabric=torus,exchange.side=5,units=mac+array,array.each=3"
    target = resolve_target(text)
    assert target.exchange.meeting_cycles("internal") == 5 * 118
    assert list(methods_of(target)) == ["mac", "vmac", "systolic"]
    product = Contraction.of(9, 16, 16, 1, 1, "float32", "float32")
    assert contraction_cycles(product, target, ["systolic"]) == 27
    assert target.spelling() == (
        "tiny,array.each=3.0,exchange.fabric=torus,exchange.side=5,units=mac+array"
    )
    assert resolve_target(target.spelling()) == target
    assert Target.from_toml(target.to_toml()) == target
    assert USERS_TARGETS["toroidal"].exchange.meeting_cycles("all") == 3 * 118
    # A target without the unit does not have the method.
    assert "systolic" not in methods_of(resolve_target("mk2"))


def test_what_is_removed_is_unknown(parts: Path):
    uninstall(str(parts.resolve()))
    assert "torus" not in FABRICS
    with pytest.raises(InputError, match="'torus'; need one of crossbar, ipu21, mesh, or --load"):
        resolve_target("mk2,exchange.fabric=torus")
    with pytest.raises(InputError, match="'array'; need one of amp, slic, mac, outer"):
        resolve_target("mk2,units=array")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "class F(Fabric):\n    kind = 'f'",
            r"bad.py: fabric F: no frozen dataclass; need @dataclass\(frozen=True\) above it",
        ),
        (
            "@dataclass(frozen=True)\nclass F(Fabric):\n    kind = 'f'\n    hops: int = 3",
            r"bad.py: fabric F: field hops is no fact; need hops: int = fact\(DEFAULT, ASSUMED",
        ),
        (
            "@dataclass(frozen=True)\nclass F(Fabric):\n    kind = 'a b'",
            "bad.py: fabric F: kind 'a b'; need small letters",
        ),
        (
            "@dataclass(frozen=True)\nclass F(Fabric):\n    kind = 'mesh'",
            "bad.py: fabric 'mesh' is already defined by abele",
        ),
        (
            "@dataclass(frozen=True)\nclass U(Unit):\n    kind = 'amp'\nm = Method('m', U, abs)",
            "bad.py: unit 'amp' is already defined by abele",
        ),
        (
            "@dataclass(frozen=True)\nclass U(Unit):\n    kind = 'memory'\nm = Method('m', U, abs)",
            "bad.py: unit 'memory' is already defined by abele",
        ),
        (
            "class U(Unit):\n    kind = 'u'\nm = Method('m', U, abs)",
            "bad.py: unit U: no frozen dataclass",
        ),
        (
            "from abele.backends.facts import Mac\nm = Method('mac', Mac, abs)",
            "bad.py: method 'mac' is already defined by abele",
        ),
    ],
)
def test_a_part_that_no_target_can_have_is_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "bad.py"
    path.write_text(IMPORTS + text)
    with pytest.raises(InputError, match=message):
        load_extensions([path])
    assert "f" not in FABRICS


def test_a_method_of_abeles_units_joins_them(tmp_path: Path):
    path = tmp_path / "dear.py"
    path.write_text(
        IMPORTS
        + "from abele.backends.facts import Mac\n"
        + "dear = Method('dear', Mac, lambda c, t: np.full(c.shape, 1e9))"
    )
    before = methods_of(resolve_target("mk2"))
    load_extensions([path])
    assert list(methods_of(resolve_target("mk2"))) == [*before, "dear"]
    uninstall(str(path.resolve()))
    assert list(methods_of(resolve_target("mk2"))) == list(before)
