"""Strategies for programs of the tile level that copy a lot, through branches, loops and calls."""

from __future__ import annotations

import hypothesis.strategies as st

SIZE = 12
SPACE = f"<[i = {SIZE}] (i) of [{SIZE}] -> (i) of [{SIZE}]>"
NAMES = "abcdef"
HEAD = "\n".join(
    f"tile.variable @{name} : tensor<{SIZE}xf32> layout <[{SIZE} by 4] (d0) of [{SIZE}]>"
    for name in NAMES
)


def move(size: int, read: str, written: str = "i") -> str:
    """A move of some elements, by an expression of the index read and of the one written."""
    return f"#abele.space<[i = {size}] ({read}) of [{SIZE}] -> ({written}) of [{SIZE}]>"


def plus(offset: int) -> str:
    """An expression of an index that is moved by an offset."""
    return f"i {'-' if offset < 0 else '+'} {abs(offset)}" if offset else "i"


@st.composite
def copies(draw: st.DrawFn, names: str) -> str:
    """A copy of one or two variables, into a third one."""
    to, *sources = draw(st.permutations(names))
    kind = draw(st.sampled_from(["same", "shifted", "reversed", "joined", "joined"]))
    if kind == "same":
        return f"tile.copy [@{sources[0]}] -> @{to}"
    if kind != "joined":
        at = f"{plus(draw(st.integers(-3, 3)))} fill" if kind == "shifted" else f"-i + {SIZE - 1}"
        return f"tile.copy [@{sources[0]}] -> @{to} moves [{move(SIZE, at)}]"
    cut = draw(st.integers(2, SIZE - 2))
    left, right = sources[0], draw(st.sampled_from(sources[:2]))
    first = move(cut, plus(draw(st.integers(0, SIZE - cut))))
    second = move(SIZE - cut, plus(draw(st.integers(0, cut))), plus(cut))
    return f"tile.copy [@{left}, @{right}] -> @{to} moves [{first}, {second}]"


@st.composite
def vertices(draw: st.DrawFn, names: str) -> str:
    """A vertex set that reads a variable and writes another one."""
    read, written, *_ = draw(st.permutations(names))
    parts = draw(st.sampled_from([1, 3, 4]))
    workers = draw(st.sampled_from(["", " workers [2]"]))
    return (
        f"tile.vertices space {SPACE} body <relu> plan <split [{parts}]{workers}> "
        f"reads [@{read}] writes @{written}"
    )


@st.composite
def blocks(draw: st.DrawFn, depth: int, functions: int, names: str = NAMES) -> str:
    """Some copies and vertex sets, with branches, loops and calls up to a depth."""
    found: list[str] = []
    for _ in range(draw(st.integers(1, 5))):
        kinds = ["copy"] * 4 + ["vertices"] * 2
        kinds += ["if", "repeat", "while"] * (depth > 0) + ["call"] * (functions > 0)
        kind = draw(st.sampled_from(kinds))
        inner = blocks(depth - 1, functions, names)
        if kind == "copy":
            found.append(draw(copies(names)))
        elif kind == "vertices":
            found.append(draw(vertices(names)))
        elif kind == "call":
            found.append(f"func.call @f{draw(st.integers(0, functions - 1))}() : () -> ()")
        elif kind == "repeat":
            iterations = draw(st.integers(1, 3))
            found.append(
                f"control.repeat {iterations} () : () -> () {{ {draw(inner)} control.yield }}"
            )
        elif kind == "if":
            branches = [f"{{ {draw(inner)} control.yield }}" for _ in range(2)]
            found.append(f"%p = tile.read @p : i1 control.if %p : i1 {branches[0]}")
            found.append(f"else {branches[1]}")
        else:
            test = f"{draw(inner)} %p = tile.read @p : i1 control.condition %p : i1"
            found.append(f"control.while () : () -> () {{ {test} }}")
            found.append(f"do {{ {draw(inner)} control.yield }}")
    return "\n".join(found)


@st.composite
def copying_programs(draw: st.DrawFn, depth: int) -> str:
    """Texts of programs that copy a lot. depth: of branches and loops; 0 leaves out calls, too."""
    functions = draw(st.integers(0, 2)) if depth else 0
    bodies = [f"func.func @f{k}() {{ {draw(blocks(1, k))} func.return }}" for k in range(functions)]
    begun = "\n".join(
        f'tile.input "{name}" -> @{name} : tensor<{SIZE}xf32>'
        for name in draw(st.sets(st.sampled_from(NAMES)))
    )
    text = f"""{HEAD}
    tile.variable @p : tensor<1xi1> layout <[] (0) of [1]>
    {"".join(bodies)}
    func.func @main() {{ {begun} {draw(blocks(depth, functions))} {draw(vertices(NAMES))}
      func.return }}"""
    return numbered(text)


def numbered(text: str) -> str:
    """The text with a name of its own for each predicate, which is used right after its read."""
    first, *rest = text.split("%p")
    return first + "".join(f"%p{k // 2}{each}" for k, each in enumerate(rest))
