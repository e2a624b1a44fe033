"""A deferred name stands for what it names, and imports its module only then."""

import subprocess
import sys
from fractions import Fraction

import pytest

from abele.ir.support.deferred import deferred, itself

package = "abele.ir"


def test_a_deferred_function_is_called():
    assert deferred("math", "hypot", None)(3, 4) == 5
    assert deferred(".marks", "LEVEL_NAMES", package)[0] == "nn"


def test_a_deferred_class_makes_and_knows_its_objects():
    fraction = deferred("fractions", "Fraction", None)
    half = fraction(1, 2)
    assert fraction.from_float(0.5) == half
    assert isinstance(half, fraction)
    assert not isinstance(0.5, fraction)
    assert isinstance(half, (int, fraction))


def test_a_deferred_mapping_is_read():
    escapes = deferred("html.entities", "name2codepoint", None)
    assert escapes["amp"] == 38
    assert "amp" in escapes
    assert "amp" in list(escapes)
    assert dict(escapes)["lt"] == 60


def test_what_a_name_stands_for_is_at_hand():
    assert itself(deferred("fractions", "Fraction", None)) is Fraction
    assert itself(Fraction) is Fraction


def test_an_unknown_name_is_an_error_when_it_is_used():
    unknown = deferred("math", "unknown", None)
    with pytest.raises(AttributeError, match="unknown"):
        unknown()


def test_nothing_is_imported_before_it_is_used():
    script = (
        "import sys; from abele.ir.support.deferred import deferred\n"
        "make = deferred('fractions', 'Fraction', None)\n"
        "print('fractions' in sys.modules, make(1), 'fractions' in sys.modules)"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "1", "True"]
