"""What a planned module says, and what is missing from one that is not."""

import pytest
from xdsl.dialects.builtin import StringAttr

from abele.dialects.abele import Plan, PlanAttr
from abele.dialects.nn import ConvOp
from abele.ir.errors import InputError
from abele.passes.plans.planned import TARGET, plan_of, target_of

from ..programs import net


def test_a_module_names_its_target():
    module, _ = net()
    assert target_of(module).spelling() == "tiny:8"
    module.attributes[TARGET] = StringAttr("mk2")
    assert target_of(module).tiles == 1472
    del module.attributes[TARGET]
    with pytest.raises(InputError, match="the module names no target: run plan-splits first"):
        target_of(module)


def test_an_operation_has_its_plan_or_is_named():
    module, _ = net()
    (conv,) = [op for op in module.walk() if isinstance(op, ConvOp)]
    conv.attributes["plan"] = PlanAttr(Plan((1,) * 7))
    assert plan_of(conv) == Plan((1,) * 7)
    del conv.attributes["plan"]
    with pytest.raises(InputError, match=r"nn\.conv at conv: no plan; run plan-splits"):
        plan_of(conv)
