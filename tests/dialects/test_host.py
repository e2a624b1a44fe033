import pytest
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.dialects.func import FuncOp

from abele.dialects.host import HostTexts, host_names, host_texts, set_host_texts
from abele.ir.errors import InputError
from abele.ir.upstream import ModuleOp


def function(**names: ArrayAttr) -> FuncOp:
    made = FuncOp("main", ([], []))
    made.attributes.update(names)
    return made


def test_values_without_names_are_numbered():
    assert host_names(function(), "arg_names", 2) == ["arg0", "arg1"]
    assert host_names(function(), "result_names", 1) == ["out0"]


def test_values_have_the_names_that_the_function_gives():
    named = function(arg_names=ArrayAttr([StringAttr("image")]))
    assert host_names(named, "arg_names", 1) == ["image"]


@pytest.mark.parametrize("given", [StringAttr("image"), IntegerAttr(1, 64)])
def test_names_that_are_too_few_or_no_names_are_refused(given):
    with pytest.raises(InputError, match=r"@main: [01] arg_names; need 2"):
        host_names(function(arg_names=ArrayAttr([given])), "arg_names", 2)


TEXTS = HostTexts(("no", "yes"), ("x",), ("y",), {"z": ("a", "b")})


def test_strings_and_columns_are_read_as_they_were_written():
    module = ModuleOp([])
    set_host_texts(module, TEXTS)
    assert host_texts(module) == TEXTS
    assert host_texts(ModuleOp([])) == HostTexts()


@pytest.mark.parametrize(
    ("attribute", "damage"),
    [
        ("abele.texts", ArrayAttr([StringAttr("no")])),
        ("abele.texts", ArrayAttr([ArrayAttr([StringAttr("no")])] * 2)),
        ("abele.texts", ArrayAttr([ArrayAttr([StringAttr("no")] * 2)] * 3)),
        ("abele.columns", StringAttr("a")),
        ("abele.columns", ArrayAttr([ArrayAttr([IntegerAttr(1, 64)])])),
    ],
)
def test_damaged_strings_are_refused(attribute: str, damage: ArrayAttr):
    module = ModuleOp([])
    module.attributes[attribute] = damage
    with pytest.raises(InputError, match=f"{attribute}: .*need"):
        host_texts(module)
