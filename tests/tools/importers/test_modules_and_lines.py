import time

import pytest

from abele.tools.importers.modules_and_lines import (
    MOST_FILE,
    MOST_PATH,
    MOST_TEXT,
    MOST_TRACE,
    SourceLine,
    module_path,
    names_by_module,
    users_line,
    users_traced_line,
)

TORCH = "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py"
STACK = f"""File "/home/me/run.py", line 22, in forward
    for b in self.blocks: x = b(x)
  File "/home/me/vit/model.py", line 12, in forward
    q, k, v = self.qkv(x).unbind(0)
  File "{TORCH}", line 134, in forward
    return F.linear(input, self.weight, self.bias)
"""


def frame(file: str, line: object = 5) -> str:
    return f'File "{file}", line {line}, in forward\n    x = 1\n'


def test_a_path_is_made_of_words_and_dots():
    assert module_path("blocks.0.attn") == "blocks.0.attn"
    assert module_path("norm@1") == "norm@1"
    assert module_path("") == module_path("...") == ""
    assert module_path("heads.odd key") == "heads.odd_key"
    assert module_path("a/b+c\n.<script>\x1b[2J") == "a_b_c_._script_2J"
    assert module_path("x" * MOST_PATH) == "x" * MOST_PATH
    assert module_path("x" * (MOST_PATH + 1)) is None


def test_a_module_with_one_node_gives_the_node_its_name():
    assert names_by_module([("blocks.0.ln1", "LayerNormalization"), ("head", "Gemm")]) == [
        "blocks.0.ln1",
        "head",
    ]


def test_a_module_with_several_nodes_or_modules_adds_the_operator():
    nodes = [("a.qkv", "MatMul"), ("a.qkv", "Add"), ("a", "Softmax"), ("", "Relu"), ("b", "Relu")]
    assert names_by_module(nodes) == ["a.qkv.MatMul", "a.qkv.Add", "a.Softmax", "Relu", "b"]


def test_a_module_that_is_a_number_adds_the_operator():
    assert names_by_module([("0", "Conv"), ("1", "Relu"), ("a.2", "Conv")]) == [
        "0.Conv",
        "1.Relu",
        "a.2",
    ]


def test_constants_of_a_module_do_not_take_its_name():
    nodes = [("a", "Constant"), ("a", "Clip"), ("a", "Constant_1"), ("b", "Constant")]
    assert names_by_module(nodes) == ["a.Constant", "a", "a.Constant_1", "b.Constant"]


def test_an_operator_that_is_no_word_becomes_one():
    assert names_by_module([("", "</script>\x1b/+ x")]) == ["_script_x"]
    assert len(names_by_module([("", "x" * 1_000_000)])[0]) == MOST_PATH


def test_the_line_is_the_innermost_one_outside_of_pytorch():
    assert users_line(STACK) == SourceLine("model.py", 12, "q, k, v = self.qkv(x).unbind(0)")
    assert str(users_line(STACK)) == "model.py:12"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (r"C:\work\net.py", "net.py"),
        ("net.py", "net.py"),
        ("<ipython-input-3-ab>", "<ipython-input-3-ab>"),
        ("/x/site-packages/torchvision/models/resnet.py", "resnet.py"),
        ("/x/site-packages/timm/layers/mlp.py", "mlp.py"),
        ("/x/\x1b[2J(a).py", "_2J_a_.py"),
        ("x" * 4000, "x" * MOST_FILE),
    ],
)
def test_a_file_has_its_name_without_its_folder(path: str, name: str):
    assert users_line(frame(path)) == SourceLine(name, 5, "x = 1")


@pytest.mark.parametrize(
    "stack",
    [
        "",
        "nothing of the kind",
        frame(TORCH),
        frame("/home/me/pytorch/torch/nn/modules/linear.py"),
        frame("/home/me/pytorch/torch/_ops.py"),
        frame("<eval_with_key>.3"),
        frame("a.py", 0),
        frame("a.py", -1),
        frame("a.py", "9" * 10),
        frame("x" * 5000),
        'File "a.py", line',
    ],
)
def test_a_stack_without_a_line_of_the_user_has_none(stack: str):
    assert users_line(stack) is None


def test_a_traced_stack_has_its_innermost_line_first():
    stack = (
        "/x/site-packages/torch/nn/modules/conv.py(553): _conv_forward\n"
        "/home/me/net.py(10): forward\n/home/me/net.py(21): forward\n"
    )
    assert users_traced_line(stack) == SourceLine("net.py", 10)


@pytest.mark.parametrize(
    "stack",
    [
        "",
        "a comment (12): of a node",
        "net.py(0): f",
        "net.py(12)",
        "<string>(3): f",
        f"{TORCH}(3): f",
    ],
)
def test_a_comment_that_is_no_traced_stack_has_no_line(stack: str):
    assert users_traced_line(stack) is None


def test_a_line_may_have_no_text():
    assert users_line('File "a.py", line 3, in f\n  File "b.py", line 4') == SourceLine("b.py", 4)


def test_the_text_of_a_line_is_short_and_printable():
    found = users_line('File "a.py", line 3, in f\n    x\x1b\t= "<b>"' + "y" * 10_000)
    assert found is not None
    assert found.text.startswith('x  = "<b>"y')
    assert len(found.text) == MOST_TEXT


@pytest.mark.parametrize("part", ["\n", " ", 'File "', 'File "a", line 1\n', "\t\n", '"', "a\n "])
def test_megabytes_take_no_longer_than_what_is_searched(part: str):
    start = time.process_time()
    users_line(part * (4_000_000 // len(part)))
    assert time.process_time() - start < 2
    inner = frame("a.py")
    assert users_line("x" * 4_000_000 + "\n" + inner) is not None
    assert users_line(inner + "\n" * MOST_TRACE) is None
