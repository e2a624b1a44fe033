import pytest
import users_dialects

from abele.ir.errors import InputError
from abele.tools import compile_model

GUARDED = "lower twice: mine.twice(x) => nn.add(x, x) where rank(x) == 3"
ADVICE = {
    "no rule": (None, "nn,partition,tile,exchange", "cannot be lowered: define core_structure"),
    "the pass is not in the pipeline": (
        users_dialects.RULES,
        "",
        f"the pipeline lacks to-nn, which has a rule for it; need -p {users_dialects.PASSES}",
    ),
    "the pass is too late": (
        users_dialects.RULES,
        "nn,partition,to-nn,tile,exchange",
        "to-nn comes too late; put it before partition",
    ),
    "a rule does not match": (
        GUARDED.replace("lower", "rule"),
        users_dialects.PASSES,
        r"no rule of to-nn matches: twice: rank\(x\) == 3 does not hold: 2 == 3",
    ),
    "a lower does not match": (
        GUARDED,
        users_dialects.PASSES,
        r"no rule lowers it: twice: rank\(x\) == 3 does not hold: 2 == 3",
    ),
}


@pytest.mark.parametrize("case", ADVICE)
def test_an_operation_that_is_left_is_reported_with_the_rule_that_could_lower_it(tmp_path, case):
    rules, passes, message = ADVICE[case]
    with users_dialects.written(tmp_path, rules or users_dialects.RULES) as (program, load):
        with pytest.raises(InputError, match=message) as caught:
            compile_model(program, "tiny:4", passes=passes, load=load if rules else load[:1])
        assert "mine.twice at " in str(caught.value)
