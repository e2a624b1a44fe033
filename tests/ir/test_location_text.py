import pytest

from abele.ir.location_text import LocationTable

TEXT = """\
#loc = loc(unknown)
"op"() : () -> () loc(#loc4)
#loc1 = loc("/home/me/net.py":8:6 to :58)
#loc2 = loc("net"(#loc1))
#loc3 = loc(callsite(#loc2 at #loc5))
#loc4 = loc("jit(net)/conv"(#loc3))
#loc5 = loc("main"("/home/me/main.py":3:1 to 4:9))
#loc6 = loc(fused["a", "b"("net.py":1:2)])
#loc7 = loc(callsite(#loc7 at #loc7))
"""


def said(text: str) -> str:
    _, table = LocationTable.taken_from(TEXT)
    found = table.read(text, 0)
    return str(found[0]) if found else "none"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("loc(#loc)", "loc(unknown)"),
        ("loc(#loc1)", 'loc("/home/me/net.py":8:6)'),
        ("loc(#loc4)", 'loc("jit(net)/conv"("/home/me/net.py":8:6))'),
        ("loc(#loc5)", 'loc("main"("/home/me/main.py":3:1))'),
        ("loc(#loc6)", 'loc("a"("net.py":1:2))'),
        ("loc(#loc7)", "loc(unknown)"),
        ("loc(#locX)", "loc(unknown)"),
        ("loc(\"p['w\\221']\")", "loc(\"p['w\\221']\")"),
        ('loc("net.py":7:1 to :9) more', 'loc("net.py":7:1)'),
        ("loc(what)", "none"),
        ("lac(#loc)", "none"),
    ],
)
def test_the_name_and_the_innermost_place_are_kept(text: str, found: str):
    assert said(text) == found


def test_definitions_are_taken_out_and_all_other_places_stay():
    rest, table = LocationTable.taken_from(TEXT)
    assert len(rest) == len(TEXT)
    assert rest.split("\n")[1] == TEXT.split("\n")[1]
    assert "#loc1 =" not in rest
    assert len(table.texts) == 8


def test_a_long_chain_ends():
    text = "\n".join(f'#loc{i} = loc("f"(#loc{i + 1}))' for i in range(5000))
    _, table = LocationTable.taken_from(text)
    assert table.read("loc(#loc0)", 0) is not None
