"""Tests that run in each form of kernels, whatever form the host would choose."""

import os
from collections.abc import Generator

import pytest

from abele.backends.host.switch import FORMS, PLAIN, VARIABLE

FORM = "kernels_form"

collect_ignore_glob = ["*"] if os.environ.get(VARIABLE) == PLAIN else []
"""Without kernels, there is nothing to test here."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("each_form") is not None:
        metafunc.fixturenames.append(FORM)
        metafunc.parametrize(FORM, FORMS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Force the form of a test, for its fixtures too, and for each example that it tries."""
    callspec = getattr(item, "callspec", None)
    with pytest.MonkeyPatch.context() as patch:
        if callspec is not None and FORM in callspec.params:
            patch.setenv(VARIABLE, callspec.params[FORM])
        return (yield)
