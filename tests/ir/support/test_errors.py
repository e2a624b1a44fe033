import pickle

from abele.ir.errors import DoesNotFit
from abele.ir.support.errors import one_line, one_line_with_notes, short_notes


def test_does_not_fit_says_what_where_how_much_and_what_to_do():
    error = DoesNotFit("conv1.out", 700, 600, tile=17, remedy="use more tiles")
    assert str(error) == "tile 17: conv1.out needs 700 bytes, 600 available; use more tiles"
    assert str(DoesNotFit("main", 9, 4, units="tiles")) == "main needs 9 tiles, 4 available"


def test_does_not_fit_crosses_processes():
    error = DoesNotFit("x", 2, 1, units="tiles", tile=3, remedy="wait")
    assert vars(pickle.loads(pickle.dumps(error))) == vars(error)


def test_an_error_is_said_in_one_line():
    error = KeyError("x")
    error.add_note("in rule r")
    error.add_note("module {\n}")
    assert one_line(ValueError("first\nsecond")) == "ValueError: first"
    assert one_line_with_notes(error) == "KeyError: 'x'; in rule r"


def test_a_note_that_prints_a_module_is_left_out():
    error = KeyError("x")
    error.add_note("in rule r")
    error.add_note("builtin.module {\n}")
    assert short_notes(error) == ("in rule r",)
    assert one_line_with_notes(error) == "KeyError: 'x'; in rule r"
