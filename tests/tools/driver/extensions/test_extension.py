from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.tools.extensions import Extension


def test_parts_of_an_extension_are_added_once():
    one = Extension(passes=[], functions=[SCALAR_FUNCTIONS["exp"]])
    assert (one + one).functions == (SCALAR_FUNCTIONS["exp"],)
