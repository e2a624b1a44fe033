"""Properties whose examples depend on nothing but the property, for runs in CI."""

from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants


def ignore_what_is_imported() -> None:
    """Draw no numbers from the code of modules that happen to be imported.

    Hypothesis looks for them in every module of the project, even where it is told to derandomize.
    A test that runs alone would get other examples than in a run of all tests, and each worker of a
    run others than the next one, so that a failure in CI would not show again.

    Raises AttributeError if this version of Hypothesis collects them elsewhere.
    """
    _ = providers._get_local_constants
    providers._get_local_constants = Constants
