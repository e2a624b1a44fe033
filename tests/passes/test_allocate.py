import re

import numpy as np
import pytest
from hypothesis import given, settings

from abele.backends.target import resolve_target
from abele.dialects import tile
from abele.ir.errors import DoesNotFit, InputError
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module
from abele.passes.allocate import Allocate, check_fits
from abele.passes.analysis.lifetimes import lifetimes
from abele.passes.pipelines import PASSES
from abele.passes.schedule_supersteps import ScheduleSupersteps

from ..strategies import Program, context, planned_programs
from .programs import TO_SCHEDULE

CHAIN = """
builtin.module attributes {{abele.target = "tiny:2"}} {{
  tile.variable @a : tensor<{n}xf32> layout <[{n} by 2] (d0) of [{n}]>
  tile.variable @b : tensor<{n}xf32> layout <[{n} by 2] (d0) of [{n}]>
  tile.variable @c : tensor<{n}xf32> layout <[{n} by 2] (d0) of [{n}]>
  func.func @main() {{
    tile.input "x" -> @a : tensor<{n}xf32> {{superstep = 0 : i64}}
    tile.copy [@a] -> @b {{superstep = 1 : i64}}
    tile.copy [@b] -> @c {{superstep = 2 : i64}}
    tile.output @c -> "y" : tensor<{n}xf32> {{superstep = 3 : i64}}
    func.return
  }}
}}
"""


def addresses(text: str) -> dict[str, int]:
    made = context()
    module = parse_module(text, made)
    Allocate().apply(made, module)
    return {
        v.symbol: v.attributes["address"].value.data  # pyright: ignore
        for v in module.walk()
        if isinstance(v, tile.VariableOp)
    }


def test_memory_that_is_not_live_is_used_again():
    found = addresses(CHAIN.format(n=64))
    assert found["a"] == found["c"]
    assert found["b"] == 128


def test_variables_on_different_tiles_share_addresses():
    text = CHAIN.format(n=64).replace(
        "@b : tensor<64xf32> layout <[64 by 2] (d0) of [64]>",
        "@b : tensor<64xf32> layout <[64] (d0) of [64] at 2>",
    )
    assert set(addresses(text.replace("tiny:2", "tiny:3")).values()) == {0}


@settings(max_examples=30)
@given(planned_programs(max_ops=5))
def test_variables_that_live_together_have_bytes_of_their_own(program: Program):
    module = program.module
    for each in parse_pipeline(TO_SCHEDULE, PASSES):
        each.apply(program.context, module)
    variables = [v for v in module.walk() if isinstance(v, tile.VariableOp)]
    found = lifetimes(module, variables)
    lives = found.phases
    Allocate().apply(program.context, module)
    start = np.array([v.attributes["address"].value.data for v in variables])  # pyright: ignore
    end = start + np.array([v.bytes_per_tile for v in variables])
    first = np.array([v.placed.first_tile for v in variables])
    last = first + np.array([v.placed.cells for v in variables])
    for i in range(len(variables)):
        together = (
            (lives[:, 0] <= lives[i, 1])
            & (lives[i, 0] <= lives[:, 1])
            & (first < last[i])
            & (first[i] < last)
            & (start < end[i])
            & (start[i] < end)
        )
        on_it = [j for j in np.flatnonzero(together) if start[j] == start[i]]
        together[[i, *found.inherits[i].intersection(on_it)]] = False
        assert not together.any(), variables[i].symbol
    assert (start % 8 == 0).all()


def test_the_error_for_a_program_that_does_not_fit_names_tile_variables_and_remedy():
    with pytest.raises(DoesNotFit) as failure:
        addresses(CHAIN.format(n=100_000))
    message = str(failure.value)
    assert re.match(r"tile 0: the program needs 400000 bytes, 245760 available\n", message)
    assert re.search(r"\n  154240 bytes over: .* 200000 B", message)
    assert "\n  largest variables: @a 200000 B, " in message
    assert "\n  `abele memory MODEL --advise`" in message


def test_a_function_that_calls_itself_is_refused():
    text = """
    builtin.module attributes {abele.target = "tiny:2"} {
      func.func @main() { func.call @main() : () -> () func.return }
    }"""
    with pytest.raises(InputError, match="@main calls itself"):
        addresses(text)


def with_address(text: str, variable: str, address: int) -> str:
    line = next(line for line in text.splitlines() if f"tile.variable @{variable} " in line)
    return text.replace(line, f"{line} {{address = {address} : i64}}")


def test_existing_addresses_are_kept():
    text = with_address(CHAIN.format(n=64), "b", 4096)
    assert addresses(text) == {"a": 0, "b": 4096, "c": 0}


def test_an_address_that_cannot_be_kept_is_named():
    text = with_address(with_address(CHAIN.format(n=64), "a", 0), "b", 0)
    with pytest.raises(InputError, match="@b at .*: address 0 lies on @a, which is live"):
        addresses(text)


CARRIED = """
builtin.module attributes {abele.target = "tiny:1"} {
  tile.variable @x : tensor<4xf32> layout <[4] (d0) of [4]>
  tile.variable @kept : tensor<4xf32> layout <[4] (d0) of [4]>
  tile.variable @other : tensor<4xf32> layout <[4] (d0) of [4]>
  tile.variable @more : tensor<i1> layout <[] () of []>
  func.func @main() {
    tile.input "x" -> @x : tensor<4xf32> {superstep = 0 : i64}
    tile.input "more" -> @more : tensor<i1> {superstep = 0 : i64}
    control.repeat 3 () : () -> () {
      %c = tile.read @more : i1
      control.if %c : i1 {
        tile.copy [@x] -> @kept {superstep = 0 : i64}
        control.yield
      } else {
        control.yield
      }
      tile.copy [@kept] -> @x {superstep = 3 : i64}
      tile.copy [@x] -> @other {superstep = 4 : i64}
      tile.copy [@other] -> @x {superstep = 5 : i64}
      control.yield
    }
    tile.output @x -> "y" : tensor<4xf32> {superstep = 9 : i64}
    func.return
  }
}
"""


WISHES = """
builtin.module attributes {{abele.target = "tiny:1"}} {{
  tile.variable @big : tensor<{n}xi8> layout <[{n}] (d0) of [{n}]>
  tile.variable @dear : tensor<1024xi8> layout <[1024] (d0) of [1024]> state
    {{address = 8192 : i64, reload = 90 : i64}}
  tile.variable @cheap : tensor<2048xi8> layout <[2048] (d0) of [2048]> state
    {{address = 65536 : i64, reload = 90 : i64}}
  tile.variable @other : tensor<{n}xi8> layout <[{n}] (d0) of [{n}]>
  func.func @main() {{
    tile.input "x" -> @big : tensor<{n}xi8> {{superstep = 0 : i64}}
    tile.copy [@big] -> @other {{superstep = 1 : i64}}
    tile.output @other -> "y" : tensor<{n}xi8> {{superstep = 2 : i64}}
    func.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("largest", "kept"),
    [(50_000, {"dear", "cheap"}), (100_000, {"dear"}), (121_000, set())],
)
def test_wished_addresses_are_given_up_as_far_as_variables_need_the_room(
    largest: int, kept: set[str]
):
    found = addresses(WISHES.format(n=largest))
    wished = {"dear": 8192, "cheap": 65536}
    assert {name for name, address in wished.items() if found[name] == address} == kept


@pytest.mark.parametrize(
    ("dear", "cheap", "kept"),
    [
        ("address = 65536 : i64", "address = 65536 : i64, reload = 90 : i64", "dear"),
        ("address = 65536 : i64, reload = 90 : i64", "address = 65536 : i64", "cheap"),
        (*("address = 65536 : i64, reload = 90 : i64",) * 2, "dear"),
    ],
)
def test_a_wished_address_is_given_up_for_one_that_it_overlaps(dear: str, cheap: str, kept: str):
    text = WISHES.format(n=1024).replace("address = 65536 : i64, reload = 90 : i64", cheap)
    text = text.replace("address = 8192 : i64, reload = 90 : i64", dear)
    found = addresses(text)
    assert [name for name, address in found.items() if address == 65536] == [kept]


def test_a_program_that_is_not_alone_has_what_loads_longest_first():
    text = CHAIN.format(n=64).replace(
        "  func.func @main",
        "  tile.variable @spread : tensor<64xf32> layout <[64 by 2] (d0) of [64]> state\n"
        "  tile.variable @copied : tensor<48xf32> layout <[2 by 2, 48] (d1) of [48]> state\n"
        "  func.func @main",
        1,
    )
    alone, shared = (
        addresses(text),
        addresses(text.replace("{abele.target", "{abele.beside = {}, abele.target")),
    )
    assert alone["copied"] < alone["spread"]
    assert shared["spread"] < shared["copied"]


def test_a_variable_that_an_iteration_may_not_write_lives_through_the_loop():
    found = addresses(CARRIED)
    assert found["kept"] != found["other"]


POINTS = "space <[i = 4] (i) of [4] -> (i) of [4]>"
TWO = "space <[i = 4] (i) of [4], (i) of [4] -> (i) of [4]>"
TURNED = "space <[i = 4] (i) of [4], (-1 * i + 3) of [4] -> (i) of [4]>"
PARTIALS = "space <[i = 4, k = 3 reduction] (k, i) of [3, 4] -> (i) of [4]>"


def vertices(space: str, body: str, reads: str, writes: str) -> str:
    plan = f"split [{', '.join(['1'] * space.count(' = '))}]"
    return f"tile.vertices {space} body <{body}> plan <{plan}> reads [{reads}] writes @{writes}"


def computed(
    *sets: str, x: str = "4xf32", after: str = "", given: str = "", given_x: str = ""
) -> dict[str, int]:
    """Addresses of @x, which the host writes, and of @y and @z.

    sets: vertices of one compute set. x: the type of @x. after: what follows. given,
    given_x: attributes of @y and @x.
    """
    shape = "[3, 4] (d0, d1) of [3, 4]" if x.startswith("3x") else "[4] (d0) of [4]"
    return addresses(f"""
    builtin.module attributes {{abele.target = "tiny:1"}} {{
      tile.variable @x : tensor<{x}> layout <{shape}> {given_x}
      tile.variable @y : tensor<4xf32> layout <[4] (d0) of [4]> {given}
      tile.variable @z : tensor<4xf32> layout <[4] (d0) of [4]>
      func.func @main() {{
        tile.input "x" -> @x : tensor<{x}> {{superstep = 0 : i64}}
        tile.compute_set @set {{ {" ".join(sets)} }} {{superstep = 2 : i64}}
        {after}
        tile.output @y -> "y" : tensor<4xf32> {{superstep = 9 : i64}}
        func.return
      }}
    }}""")


def test_a_result_overwrites_an_operand_after_its_last_read():
    found = computed(vertices(POINTS, "exp", "@x", "y"))
    assert found["y"] == found["x"]


def test_an_operand_that_is_read_twice_by_the_same_point_is_overwritten():
    found = computed(vertices(TWO, "mul", "@x, @x", "y"))
    assert found["y"] == found["x"]


def test_an_operand_that_the_chain_reads_again_is_overwritten():
    found = computed(vertices(TWO, "sigmoid then mul", "@x, @x", "y"))
    assert found["y"] == found["x"]


def test_a_sum_of_partials_overwrites_the_first_of_them():
    found = computed(vertices(PARTIALS, "identity sum", "@x", "y"), x="3x4xf32")
    assert found["y"] == found["x"]


STILL_READ = {
    "later": computed(
        vertices(POINTS, "exp", "@x", "y"), after="tile.copy [@x] -> @z {superstep = 3 : i64}"
    ),
    "by other vertices of the compute set": computed(
        vertices(POINTS, "exp", "@x", "y"), vertices(POINTS, "neg", "@x", "z")
    ),
    "by another point": computed(vertices(TURNED, "add", "@x, @x", "y")),
    "by a chain, another element": computed(vertices(TURNED, "exp then add", "@x, @x", "y")),
}


@pytest.mark.parametrize("how", STILL_READ)
def test_no_result_overwrites_a_variable_that_is_still_read(how: str):
    assert STILL_READ[how]["y"] != STILL_READ[how]["x"]


def test_no_result_overwrites_narrower_elements():
    found = computed(vertices(POINTS, "exp", "@x", "y"), x="4xf16")
    assert found["y"] != found["x"]


def test_a_result_may_be_given_the_address_of_an_operand_that_it_overwrites():
    given = "{address = 0 : i64}"
    assert computed(vertices(POINTS, "exp", "@x", "y"), given=given)["x"] == 0
    found = computed(vertices(TURNED, "add", "@x, @x", "y"), given=given)
    assert found["x"] > 0


def test_a_result_may_not_be_given_part_of_an_operand():
    text = vertices(POINTS, "exp", "@x", "y")
    with pytest.raises(InputError, match="@y at .*: address 8 lies on @x"):
        computed(text, given="{address = 8 : i64}", given_x="{address = 0 : i64}")


def test_no_result_overwrites_a_state():
    made = context()
    digest = made.blobs.add(np.ones(4, np.float32)).digest
    module = parse_module(
        f"""
        builtin.module attributes {{abele.target = "tiny:1"}} {{
          tile.variable @s : tensor<4xf32> layout <[4] (d0) of [4]> state = blob <"{digest}">
          tile.variable @y : tensor<4xf32> layout <[4] (d0) of [4]>
          func.func @main() {{
            tile.compute_set @set {{ {vertices(POINTS, "exp", "@s", "y")} }}
            tile.output @y -> "y" : tensor<4xf32>
            func.return
          }}
        }}""",
        made,
    )
    ScheduleSupersteps().apply(made, module)
    Allocate().apply(made, module)
    state, result = [v for v in module.walk() if isinstance(v, tile.VariableOp)]
    assert state.attributes["address"] != result.attributes["address"]


def some_variables(*sizes: int) -> list[tile.VariableOp]:
    """Variables of so many bytes on one tile."""
    text = "\n".join(
        f"tile.variable @v{i} : tensor<{n // 4}xf32> layout <[{n // 4}] (d0) of [{n // 4}]>"
        for i, n in enumerate(sizes)
    )
    module = parse_module(text, context())
    return [v for v in module.walk() if isinstance(v, tile.VariableOp)]


def test_variables_that_fill_the_worst_phase_are_named_with_their_gaps():
    variables = some_variables(24, 16, 24, 24)
    phases = np.array([[4, 6], [0, 3], [3, 5], [1, 1]])
    target = resolve_target("tiny:1,memory.bytes_per_tile=8000,memory.reserved_bytes=7960")
    with pytest.raises(DoesNotFit, match="1:1 24 B, .*3:1 24 B, gaps 16 B\n  largest") as failure:
        check_fits(variables, phases, np.array([40, 0, 16, 16]), target)
    assert "24 bytes over" in str(failure.value)
