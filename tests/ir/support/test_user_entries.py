import pytest

from abele.ir.errors import InputError
from abele.ir.support.user_entries import add_entry, remove_entries


def test_an_entry_exists_until_the_entries_of_its_owner_are_removed():
    table = {"ours": 1}
    add_entry(table, "thing", "a", 2, "a.py")
    add_entry(table, "thing", "b", 3, "b.py")
    assert table == {"ours": 1, "a": 2, "b": 3}
    remove_entries("a.py")
    assert table == {"ours": 1, "b": 3}
    add_entry(table, "thing", "a", 4, "b.py")
    remove_entries("b.py")
    assert table == {"ours": 1}


def test_a_name_that_is_taken_is_refused_with_both_owners():
    table = {"ours": 1}
    add_entry(table, "thing", "a", 2, "a.py")
    for name, other in (("ours", "abele"), ("a", "a.py"), ("reserved", "abele")):
        with pytest.raises(InputError) as caught:
            add_entry(table, "thing", name, 3, "b.py", reserved=("reserved",))
        says = f"b.py: thing {name!r} is already defined by {other}; need another name"
        assert str(caught.value) == says
    remove_entries("a.py")
    assert table == {"ours": 1}
