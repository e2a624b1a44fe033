"""Programs that resemble those that passes changed."""

from random import Random

import pytest

from abele.tools.testing.generators.sketch import Sketch, Step, random_sketch
from abele.tools.testing.search.learned import AIMED, MOST_STEPS, Learned

OLD = Sketch((Step(3, 0, 11), Step(5, 0, 12)), sizes=(7,), target="tiny:3")


def learned(*sketches: Sketch) -> Learned:
    found = Learned()
    for each in sketches:
        found.add(each, aimed=False, changed=True)
    return found


def test_only_sketches_of_changed_programs_are_kept():
    found = learned(OLD)
    found.add(random_sketch(Random(1)), aimed=False, changed=False)
    assert found.sketches == [OLD]


def test_programs_like_a_changed_one_often_have_both_of_its_operators_in_order():
    found = learned(OLD)
    made = [found.like(found.sketches, random_sketch(Random(n)), Random(n)) for n in range(200)]
    kinds = [[step.kind for step in each.steps] for each in made]
    assert sum([3, 5] == [k for k in each if k in (3, 5)] for each in kinds) > 70
    assert len({each.sizes for each in made}) > 20
    assert len({each.target for each in made}) > 5
    assert all(1 <= len(each.steps) <= MOST_STEPS for each in made)


def test_the_same_number_makes_the_same_program():
    found = learned(OLD)
    one, two = (found.like([OLD], random_sketch(Random(4)), Random(4)) for _ in range(2))
    assert one == two


@pytest.mark.parametrize(("hits", "helps"), [(0, False), (1, True)])
def test_an_aim_that_changes_nothing_is_taken_less_often(hits: int, helps: bool):
    found = learned(OLD)
    found.named = True
    for number in range(AIMED):
        assert found.aim_helps
        found.add(OLD, aimed=True, changed=number < hits)
    assert found.aim_helps == helps
    assert sum(map(found.is_aimed, range(100))) == (50 if helps else 25)
    assert sum(bool(found.resembles(n)) for n in range(100)) == (25 if helps else 50)


def test_an_aim_that_the_caller_gives_stays():
    found = Learned(named=True, given=True)
    for _ in range(2 * AIMED):
        found.add(OLD, aimed=True, changed=False)
    assert sum(map(found.is_aimed, range(100))) == 50


def test_programs_that_reached_new_code_are_changed_a_little():
    found = Learned()
    found.add(random_sketch(Random(1)), aimed=False, changed=False)
    assert not any(found.resembles(n) for n in range(8))
    found.add(OLD, aimed=False, changed=False, news=True)
    assert sum(found.resembles(n) is found.promising for n in range(100)) == 25
    made = [found.like(found.promising, random_sketch(Random(n)), Random(n)) for n in range(200)]
    kinds = [[step.kind for step in each.steps] for each in made]
    assert sum([3, 5] == [k for k in each if k in (3, 5)] for each in kinds) > 100
    assert 80 < sum(each.seed == OLD.seed for each in made) < 160
