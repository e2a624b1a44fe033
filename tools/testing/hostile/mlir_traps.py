"""Programs of MLIR's dialects that do harm where they are read: absurd sizes, cycles, and bombs.

Nothing is damaged: each is a text that somebody wrote to take a reader's time or memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from string import Template

import numpy as np

from .case import Damaged

SIZES = (
    *("-1", "0", "1", "2", "3", "7", "64", "1000", "65536", "1048576", "2147483647"),
    *("4294967296", "1099511627776", "4611686018427387904", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775808", "18446744073709551616", "1" + "0" * 40),
)
"""Sizes that programs promise: some do no harm, so that readers get past their first check."""

DEPTHS = (2, 5, 9, 40, 300, 1500)
"""How deep things are nested, and how long chains are."""

MAIN = Template(
    '"builtin.module"() ({\n$before'
    '"func.func"() <{function_type = (tensor<4xf32>) -> ($type), sym_name = "main"}> ({\n'
    '^bb0(%x: tensor<4xf32>):\n$body\n"func.return"($result) : ($type) -> ()\n'
    "}) : () -> ()\n}) : () -> ()\n"
)
"""A program whose function gets a row of four numbers."""

ROW = "tensor<4xf32>"

COMBINER = (
    "({^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    '%s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n'
    '"stablehlo.return"(%s) : (tensor<f32>) -> ()\n})'
)

ZERO = '%z = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>\n'


def program(body: str, type: str = ROW, result: str = "%r", before: str = "") -> str:
    """The text of a program, without the dialect's other functions."""
    return MAIN.substitute(body=body, type=type, result=result, before=before)


STABLEHLO_SIZES: tuple[tuple[str, str], ...] = (
    (
        '%r = "stablehlo.constant"() <{value = dense<1.0> : tensor<${n}xf32>}> '
        ": () -> tensor<${n}xf32>",
        "tensor<${n}xf32>",
    ),
    (
        '%r = "stablehlo.iota"() <{iota_dimension = $m : i64}> : () -> tensor<${n}x2xi32>',
        "tensor<${n}x2xi32>",
    ),
    (
        '%r = "stablehlo.broadcast_in_dim"(%x) <{broadcast_dimensions = array<i64: 1>}> '
        ": (tensor<4xf32>) -> tensor<${n}x4x${m}xf32>",
        "tensor<${n}x4x${m}xf32>",
    ),
    (
        f'{ZERO}%r = "stablehlo.pad"(%x, %z) <{{edge_padding_low = array<i64: $n>, '
        "edge_padding_high = array<i64: 0>, interior_padding = array<i64: $m>}> "
        ": (tensor<4xf32>, tensor<f32>) -> tensor<${k}xf32>",
        "tensor<${k}xf32>",
    ),
    (
        '%r = "stablehlo.slice"(%x) <{start_indices = array<i64: $n>, limit_indices = '
        "array<i64: $m>, strides = array<i64: $k>}> : (tensor<4xf32>) -> tensor<4xf32>",
        ROW,
    ),
    (
        '%r = "stablehlo.reshape"(%x) : (tensor<4xf32>) -> tensor<${n}x${m}xf32>',
        "tensor<${n}x${m}xf32>",
    ),
    (
        '%r = "stablehlo.transpose"(%x) <{permutation = array<i64: $n>}> '
        ": (tensor<4xf32>) -> tensor<4xf32>",
        ROW,
    ),
    (
        f'{ZERO}%y = "stablehlo.reshape"(%x) : (tensor<4xf32>) -> tensor<1x4xf32>\n'
        '%r = "stablehlo.reduce"(%y, %z) <{dimensions = array<i64: $n, $m>}> '
        f"{COMBINER} : (tensor<1x4xf32>, tensor<f32>) -> tensor<f32>",
        "tensor<f32>",
    ),
    (
        f'{ZERO}%r = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: $n>, '
        "window_strides = array<i64: $m>, window_dilations = array<i64: $k>, "
        "padding = dense<[[$n, $n]]> : tensor<1x2xi64>}> "
        f"{COMBINER} : (tensor<4xf32>, tensor<f32>) -> tensor<${{m}}xf32>",
        "tensor<${m}xf32>",
    ),
    (
        '%y = "stablehlo.reshape"(%x) : (tensor<4xf32>) -> tensor<1x4x1xf32>\n'
        '%r = "stablehlo.convolution"(%y, %y) <{batch_group_count = $k : i64, '
        "dimension_numbers = #stablehlo.conv<[b, 0, f]x[i, 0, o]->[b, 0, f]>, "
        "feature_group_count = 1 : i64, lhs_dilation = array<i64: $n>, "
        "rhs_dilation = array<i64: $m>, padding = dense<[[$n, $m]]> : tensor<1x2xi64>, "
        "window_strides = array<i64: $k>, window_reversal = array<i1: false>}> "
        ": (tensor<1x4x1xf32>, tensor<1x4x1xf32>) -> tensor<1x${n}x1xf32>",
        "tensor<1x${n}x1xf32>",
    ),
    (
        '%r = "stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers = #stablehlo.dot<'
        "lhs_contracting_dimensions = [$n], rhs_contracting_dimensions = [$m]>}> "
        ": (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>",
        "tensor<f32>",
    ),
    (
        '%i = "stablehlo.constant"() <{value = dense<$n> : tensor<2x1xi64>}> '
        ": () -> tensor<2x1xi64>\n"
        '%r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<'
        "offset_dims = [$m], start_index_map = [$k], "
        "index_vector_dim = 1>, slice_sizes = array<i64: $n>}> "
        ": (tensor<4xf32>, tensor<2x1xi64>) -> tensor<2x${n}xf32>",
        "tensor<2x${n}xf32>",
    ),
    (
        '%i = "stablehlo.constant"() <{value = dense<$n> : tensor<i64>}> : () -> tensor<i64>\n'
        '%r = "stablehlo.dynamic_slice"(%x, %i) <{slice_sizes = array<i64: $m>}> '
        ": (tensor<4xf32>, tensor<i64>) -> tensor<${m}xf32>",
        "tensor<${m}xf32>",
    ),
    (
        '%i = "stablehlo.constant"() <{value = dense<$m> : tensor<2xui64>}> '
        ": () -> tensor<2xui64>\n"
        '%g:2 = "stablehlo.rng_bit_generator"(%i) <{rng_algorithm = '
        "#stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) "
        "-> (tensor<2xui64>, tensor<${n}xui32>)\n"
        '%r = "stablehlo.reshape"(%g#1) : (tensor<${n}xui32>) -> tensor<${n}xui32>',
        "tensor<${n}xui32>",
    ),
    (
        '%r = "stablehlo.sort"(%x) <{dimension = $n : i64, is_stable = true}> '
        "({^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
        '%s = "stablehlo.compare"(%a, %b) <{comparison_direction = '
        "#stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        '"stablehlo.return"(%s) : (tensor<i1>) -> ()\n}) : (tensor<4xf32>) -> tensor<4xf32>',
        ROW,
    ),
    (
        '%r = "stablehlo.concatenate"(%x, %x) <{dimension = $n : i64}> '
        ": (tensor<4xf32>, tensor<4xf32>) -> tensor<${m}xf32>",
        "tensor<${m}xf32>",
    ),
    (
        '%r = "stablehlo.reduce_precision"(%x) <{exponent_bits = $n : i32, '
        "mantissa_bits = $m : i32}> : (tensor<4xf32>) -> tensor<4xf32>",
        ROW,
    ),
)
"""Bodies of functions and the types of their results, with places for sizes."""

LINALG_SIZES: tuple[tuple[str, str], ...] = (
    ("%r = tensor.empty() : tensor<${n}x${m}xf32>", "tensor<${n}x${m}xf32>"),
    ("%r = arith.constant dense<1.0> : tensor<${n}xf32>", "tensor<${n}xf32>"),
    (
        "%z = arith.constant 0.0 : f32\n%r = tensor.pad %x low[$n] high[$m] {\n"
        "^bb0(%i: index):\ntensor.yield %z : f32\n} : tensor<4xf32> to tensor<${k}xf32>",
        "tensor<${k}xf32>",
    ),
    (
        "%z = arith.constant 0.0 : f32\n%e = tensor.empty() : tensor<${n}xf32>\n"
        "%r = linalg.fill ins(%z : f32) outs(%e : tensor<${n}xf32>) -> tensor<${n}xf32>",
        "tensor<${n}xf32>",
    ),
    (
        "%r = linalg.generic {indexing_maps = [affine_map<(i) -> (i * $n + $m)>, "
        'affine_map<(i) -> (i)>], iterator_types = ["parallel"]} '
        "ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {\n^bb0(%a: f32, %b: f32):\n"
        "linalg.yield %a : f32\n} -> tensor<4xf32>",
        ROW,
    ),
    (
        "%r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i ceildiv $n)>, "
        "affine_map<(i, j) -> (i floordiv $m)>, affine_map<(i, j) -> (i)>, "
        'affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} '
        "ins(%x, %x, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) "
        "outs(%x : tensor<4xf32>) {\n^bb0(%a: f32, %b: f32, %c: f32, %d: f32):\n"
        "%s = arith.addf %a, %d : f32\nlinalg.yield %s : f32\n} -> tensor<4xf32>",
        ROW,
    ),
    (
        "%r = tensor.extract_slice %x[$n] [$m] [$k] : tensor<4xf32> to tensor<${m}xf32>",
        "tensor<${m}xf32>",
    ),
    (
        "%e = tensor.empty() : tensor<8xf32>\n"
        "%r = tensor.insert_slice %x into %e[$n] [4] [$m] : tensor<4xf32> into tensor<8xf32>",
        "tensor<8xf32>",
    ),
    (
        "%r = tensor.expand_shape %x [[0, 1]] output_shape [$n, $m] "
        ": tensor<4xf32> into tensor<${n}x${m}xf32>",
        "tensor<${n}x${m}xf32>",
    ),
    (
        "%l = arith.constant $n : index\n%u = arith.constant $m : index\n"
        "%s = arith.constant $k : index\n"
        "%r = scf.for %i = %l to %u step %s iter_args(%a = %x) -> (tensor<4xf32>) {\n"
        "%b = linalg.add ins(%a, %x : tensor<4xf32>, tensor<4xf32>) "
        "outs(%a : tensor<4xf32>) -> tensor<4xf32>\n"
        "scf.yield %b : tensor<4xf32>\n}",
        ROW,
    ),
    (
        "%i = arith.constant $n : i32\n%j = arith.constant $m : i32\n%q = arith.divsi %i, %j : "
        "i32\n"
        "%h = arith.shli %q, %i : i32\n%f = arith.sitofp %h : i32 to f32\n"
        "%r = linalg.fill ins(%f : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>",
        ROW,
    ),
    (
        "%i = arith.constant $n : index\n%f = tensor.extract %x[%i] : tensor<4xf32>\n"
        "%r = linalg.fill ins(%f : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>",
        ROW,
    ),
    (
        "%r = linalg.transpose ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) permutation = [$n]",
        ROW,
    ),
    (
        "%e = tensor.empty() : tensor<4x${n}xf32>\n"
        "%r = linalg.broadcast ins(%x : tensor<4xf32>) outs(%e : tensor<4x${n}xf32>) "
        "dimensions = [$m]",
        "tensor<4x${n}xf32>",
    ),
)
"""The same for linalg, tensor, arith and scf."""


def _sizes(
    templates: Sequence[tuple[str, str]], random: np.random.Generator, most: int
) -> tuple[str, str]:
    body, type_ = templates[int(random.integers(len(templates)))]
    chosen = {name: SIZES[int(random.integers(most))] for name in "nmk"}
    filled = Template(body).safe_substitute(chosen)
    text = program(filled, Template(type_).safe_substitute(chosen))
    return text, f"{filled.split('(', 1)[0][:60]} with {', '.join(chosen.values())}"[:200]


def _depth(random: np.random.Generator) -> int:
    return DEPTHS[int(random.integers(len(DEPTHS)))]


def _functions(names: Sequence[str], calls: Sequence[Sequence[str]], *, private: bool) -> str:
    """Functions that call others one after the other."""
    lines: list[str] = []
    visibility = ', sym_visibility = "private"' if private else ""
    for name, called in zip(names, calls, strict=True):
        lines.append(
            f'"func.func"() <{{function_type = ({ROW}) -> {ROW}, sym_name = "{name}"{visibility}}}>'
            f" ({{\n^bb0(%v0: {ROW}):"
        )
        lines += [
            f'%v{i + 1} = "func.call"(%v{i}) <{{callee = @{each}}}> : ({ROW}) -> {ROW}'
            for i, each in enumerate(called)
        ]
        lines.append(f'"func.return"(%v{len(called)}) : ({ROW}) -> ()\n}}) : () -> ()')
    return "\n".join(lines) + "\n"


def _calls(random: np.random.Generator) -> tuple[str, str]:
    """Functions that call each other: in a chain, in a tree, or in a cycle."""
    depth, fan = _depth(random), (1, 1, 2, 10)[int(random.integers(4))]
    names = [f"f{i}" for i in range(depth)]
    way = ("tree", "cycle", "unknown", "itself", "twice")[int(random.integers(5))]
    last: dict[str, list[str]] = {"cycle": ["f0"], "unknown": ["g"], "itself": [names[-1]]}
    calls = [[after] * fan for after in names[1:]] + [last.get(way, [])]
    if way == "twice":
        names[-1] = names[0]
    body = '%r = "func.call"(%x) <{callee = @f0}> : (tensor<4xf32>) -> tensor<4xf32>'
    private = bool(random.integers(2))
    before = _functions(names, calls, private=private)
    return program(body, before=before), f"{fan} calls {depth} deep, {way}"


def _nested_loops(random: np.random.Generator) -> tuple[str, str]:
    depth = _depth(random)
    begin = '"stablehlo.while"(%{at}) ({{\n^bb0(%c{to}: {row}):\n%t{to} = "stablehlo.constant"() '
    begin += "<{{value = dense<true> : tensor<i1>}}> : () -> tensor<i1>\n"
    begin += '"stablehlo.return"(%t{to}) : (tensor<i1>) -> ()\n}}, {{\n^bb0(%v{to}: {row}):\n'
    lines = ["%r = " + begin.format(at="x", to=0, row=ROW)]
    lines += [f"%w{i} = " + begin.format(at=f"v{i - 1}", to=i, row=ROW) for i in range(1, depth)]
    for i in reversed(range(depth)):
        inner = f"%w{i + 1}" if i + 1 < depth else f"%v{i}"
        lines.append(f'"stablehlo.return"({inner}) : ({ROW}) -> ()\n}}) : ({ROW}) -> {ROW}')
    return program("\n".join(lines)), f"{depth} endless loops in each other"


def _nested_choices(random: np.random.Generator) -> tuple[str, str]:
    depth = _depth(random)
    condition = (
        '%p = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>'
    )
    opening = [f'%y{i} = "stablehlo.if"(%p) ({{' for i in range(depth)]
    opening[0] = opening[0].replace("%y0", "%r")
    end = '"stablehlo.return"({}) : (' + ROW + ") -> ()"
    other = "}, {\n" + end.format("%x") + "\n}) : (tensor<i1>) -> " + ROW
    lines = [condition, *opening, end.format("%x"), other]
    for i in reversed(range(1, depth)):
        lines += [end.format(f"%y{i}"), other]
    return program("\n".join(lines)), f"{depth} choices in each other"


def _nested_scf(random: np.random.Generator) -> tuple[str, str]:
    depth = _depth(random)
    lines = ["%l = arith.constant 0 : index", "%s = arith.constant 1 : index"]
    lines.append(f"%u = arith.constant {SIZES[int(random.integers(3, 12))]} : index")
    for i in range(depth):
        to, at = ("r", "x") if i == 0 else (f"w{i}", f"v{i - 1}")
        lines.append(
            f"%{to} = scf.for %i{i} = %l to %u step %s iter_args(%v{i} = %{at}) -> ({ROW}) {{"
        )
    for i in reversed(range(depth)):
        inner = f"%w{i + 1}" if i + 1 < depth else f"%v{i}"
        lines.append(f"scf.yield {inner} : {ROW}\n}}")
    return program("\n".join(lines)), f"{depth} loops in each other"


def _doubled(random: np.random.Generator) -> tuple[str, str]:
    """A value that is joined with itself again and again."""
    depth, size, at = _depth(random), 4, "%x"
    lines: list[str] = []
    for i in range(min(depth, 300)):
        lines.append(
            f'%d{i} = "stablehlo.concatenate"({at}, {at}) <{{dimension = 0 : i64}}> : '
            f"(tensor<{size}xf32>, tensor<{size}xf32>) -> tensor<{2 * size}xf32>"
        )
        at, size = f"%d{i}", 2 * size
    return program("\n".join(lines), f"tensor<{size}xf32>", at), f"doubled {len(lines)} times"


def _long_chain(random: np.random.Generator) -> tuple[str, str]:
    depth = _depth(random)
    names = ["%x", *(f"%s{i}" for i in range(depth))]
    lines = [
        f'{after} = "stablehlo.add"({before}, {before}) : ({ROW}, {ROW}) -> {ROW}'
        for before, after in pairwise(names)
    ]
    return program("\n".join(lines), result=names[-1]), f"{depth} sums"


DENSE = (
    *('dense<"0x">', 'dense<"0x0">', 'dense<"0x000000">', 'dense<"0xGG">', 'dense<"xyz">'),
    *('dense<"0x' + "00" * n + '">' for n in (1, 4, 15, 16, 17, 20, 100_000)),
    *("dense<0xFF800000>", "dense<0x7FC00000>", "dense<0x1FFFFFFFF>", "dense<-0x1>", "dense<>"),
    *("dense<0x" + "F" * 5000 + ">", "dense<[1.0, 2.0, 3.0]>", "dense<[[1.0], [2.0]]>"),
    *("dense<" + "[" * n + "1.0" + "]" * n + ">" for n in (2, 64, 2000)),
    *("dense<(1.0, 2.0)>", "dense<true>", 'dense<"a">', "dense<1e400>", "dense<nan>", "dense<1>"),
    *("dense_resource<big>", "dense_resource<../../../etc/passwd>", "sparse<[[0]], [1.0]>"),
    *("sparse<[[9999999999]], [1.0]>", "dense<__import__('os').abort()>", "opaque<>", "unit"),
    "dense<[" + ", ".join(["1.0"] * 50_000) + "]>",
)
"""Constants: hex literals of other lengths, and values of other forms."""

ELEMENTS = ("f32", "f64", "i1", "i32", "i64", "ui8", "bf16", "f8E4M3FN", "i4", "complex<f32>", "i7")

RESOURCES = (
    *('"0x04000000"', '"0x0400000000"', '"0x"', '"0x040000000000803F0000803F0000803F0000803F"'),
    *('"0xFFFFFFFF00"', '"../../x"', "17", '"0x' + "00" * 4000 + '"'),
)


def _constants(random: np.random.Generator) -> tuple[str, str]:
    value = DENSE[int(random.integers(len(DENSE)))]
    element = ELEMENTS[int(random.integers(len(ELEMENTS)))]
    type_ = f"tensor<4x{element}>"
    operation = ('"stablehlo.constant"() <{value = V}> : () -> T', "arith.constant V")[
        int(random.integers(2))
    ]
    body = "%r = " + operation.replace("V", f"{value} : {type_}").replace("T", type_)
    bytes_ = RESOURCES[int(random.integers(len(RESOURCES)))]
    after = (
        ""
        if "resource" not in value
        else f"{{-# dialect_resources: {{ builtin: {{ big: {bytes_} }} }} #-}}"
    )
    return program(body, type_) + after, f"{value[:60]} : {type_}"


FILES = ("../../../../etc/passwd", "/dev/zero", "/proc/self/mem", "\\00", "x" * 100_000, "\\n[/b]")


def _locations(random: np.random.Generator) -> tuple[str, str]:
    """Locations that refer to each other, that are nested, or that double at each step."""
    depth = _depth(random)
    file = FILES[int(random.integers(len(FILES)))]
    ways = {
        "a cycle": ["#loc0 = loc(#loc1)", "#loc1 = loc(#loc0)"],
        "named cycle": ['#loc0 = loc("a"(#loc0))'],
        "doubled": [
            *(f"#loc{i} = loc(fused[#loc{i + 1}, #loc{i + 1}])" for i in range(depth)),
            f"#loc{depth} = loc(unknown)",
        ],
        "callsites": [
            *(f"#loc{i} = loc(callsite(#loc{i + 1} at #loc{i + 1}))" for i in range(depth)),
            f"#loc{depth} = loc(unknown)",
        ],
        "nested": ["#loc0 = loc(" + '"a"(' * depth + "unknown" + ")" * depth + ")"],
        "a path": [f'#loc0 = loc("{file}":{SIZES[int(random.integers(len(SIZES)))]}:1)'],
        "undefined": [],
    }
    way = list(ways)[int(random.integers(len(ways)))]
    sum_ = '%r = "stablehlo.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
    lines = ways[way]
    text = program(f"{sum_} loc(#loc0)")
    made = [*lines, text] if random.random() < 0.5 else [text, *reversed(lines)]
    return "\n".join(made) + "\n", f"locations: {way}, {depth} deep"


def _aliases(random: np.random.Generator) -> tuple[str, str]:
    """Aliases of attributes and types that double at each step, or that are deep."""
    depth = _depth(random)
    ways: dict[str, tuple[list[str], str]] = {
        "attributes double": (
            ["#a0 = 1 : i64", *(f"#a{i + 1} = [#a{i}, #a{i}]" for i in range(depth))],
            f"#a{depth}",
        ),
        "types double": (
            ["!t0 = f32", *(f"!t{i + 1} = tuple<!t{i}, !t{i}>" for i in range(depth))],
            f"!t{depth}",
        ),
        "a cycle": (["#a0 = [#a1]", "#a1 = [#a0]"], "#a0"),
        "deep lists": ([], "[" * depth + "]" * depth),
        "deep tables": ([], "{a = " * depth + "1 : i64" + "}" * depth),
        "deep types": ([], "tuple<" * depth + "f32" + ">" * depth),
        "deep functions": ([], "() -> (" * depth + ")" * depth),
        "deep tensors": ([], "tensor<2x" * depth + "f32" + ">" * depth),
        "a wide name": ([], '"' + "a" * 1_000_000 + '"'),
        "digits": ([], "9" * 100_000 + " : i64"),
    }
    way = list(ways)[int(random.integers(len(ways)))]
    lines, last = ways[way]
    op = f'"stablehlo.add"(%x, %x) {{mhlo.frontend = {last}}}'
    text = program(f"%r = {op} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>")
    return "\n".join([*lines, text]), f"{way}, {depth} deep"


WRONG = (
    ("its own result", '%r = "stablehlo.add"(%r, %r) : (R, R) -> R'),
    (
        "a later result",
        '%r = "stablehlo.add"(%q, %x) : (R, R) -> R\n%q = "stablehlo.abs"(%x) : (R) -> R',
    ),
    ("a name twice", '%r = "stablehlo.abs"(%x) : (R) -> R\n%r = "stablehlo.abs"(%x) : (R) -> R'),
    ("other types", '%r = "stablehlo.add"(%x, %x) : (tensor<4xi32>, R) -> R'),
    (
        "a region of its own module",
        '"builtin.module"() ({}) : () -> ()\n%r = "stablehlo.abs"(%x) : (R) -> R',
    ),
    ("no operand", '%r = "stablehlo.add"() : () -> R'),
    ("many results", '%r:1000000000 = "stablehlo.abs"(%x) : (R) -> R'),
    ("result 7 of 1", '%q = "stablehlo.abs"(%x) : (R) -> R\n%r = "stablehlo.abs"(%q#7) : (R) -> R'),
    ("successors", '%r = "stablehlo.abs"(%x)[^bb0] : (R) -> R'),
    ("a call without a function", '%r = "func.call"(%x) : (R) -> R'),
    (
        "a custom call",
        '%r = "stablehlo.custom_call"(%x) <{call_target_name = "/bin/sh", backend_config = '
        '"$(touch ran)", api_version = 4 : i32}> : (R) -> R',
    ),
    (
        "a function inside",
        '"func.func"() <{function_type = () -> (), sym_name = "main"}> ({}) : () -> ()\n%r = '
        '"stablehlo.abs"(%x) : (R) -> R',
    ),
    ("no operation", '%r = "x"(%x) : (R) -> R'),
    ("a dialect's path", '%r = "../stablehlo.abs"(%x) : (R) -> R'),
)
"""Programs that are wrong in one way."""


def _wrong(random: np.random.Generator) -> tuple[str, str]:
    what, body = WRONG[int(random.integers(len(WRONG)))]
    return program(body.replace("R", ROW)), what


def _stablehlo_sizes(random: np.random.Generator) -> tuple[str, str]:
    return _sizes(STABLEHLO_SIZES, random, len(SIZES))


def _linalg_sizes(random: np.random.Generator) -> tuple[str, str]:
    return _sizes(LINALG_SIZES, random, len(SIZES))


def _small_stablehlo(random: np.random.Generator) -> tuple[str, str]:
    return _sizes(STABLEHLO_SIZES, random, 7)


def _small_linalg(random: np.random.Generator) -> tuple[str, str]:
    return _sizes(LINALG_SIZES, random, 7)


Trap = Callable[[np.random.Generator], tuple[str, str]]

TRAPS: dict[str, tuple[Trap, ...]] = {
    "stablehlo": (
        *(_stablehlo_sizes, _stablehlo_sizes, _small_stablehlo, _calls, _nested_loops),
        *(_nested_choices, _doubled, _long_chain, _constants, _locations, _aliases, _wrong),
    ),
    "linalg": (
        *(_linalg_sizes, _linalg_sizes, _small_linalg, _calls, _nested_scf, _constants),
        *(_locations, _aliases, _wrong),
    ),
}
"""The traps of each dialect. Each returns a text, and what is wrong with it."""


def mlir_trap(random: np.random.Generator, dialect: str) -> Damaged:
    """A program of a dialect that does harm."""
    traps = TRAPS[dialect]
    text, what = traps[int(random.integers(len(traps)))](random)
    if dialect == "linalg":
        text = _in_linalg(text)
    return Damaged(text.encode("utf-8", "surrogatepass"), what)


def _in_linalg(text: str) -> str:
    """A trap without the operations of StableHLO, which would lead it to another reader."""
    text = text.replace('"stablehlo.constant"() <{value =', '"arith.constant"() <{value =')
    return text.replace('"stablehlo.', '"math.').replace('"math.add"', '"arith.addf"')
