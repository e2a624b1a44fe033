"""All output goes through one mechanism: whole_file and whole_folder."""

import ast
import re

from sources import ROOT, files, text_of

WRITES = {
    "write_text",
    "write_bytes",
    "rename",
    "replace",
    "rmtree",
    "move",
    "copyfile",
    "copytree",
}
MODULES = {"os", "shutil", "path", "Path"}
"""The modules and classes whose functions change files. A string's `replace` does not."""

CALL = re.compile(rf"\b(?:open|{'|'.join(sorted(WRITES))})\s*\(")
"""What a file has if it calls one of them."""

OWN = {
    "ir/support/temporary_entries.py": "the mechanism",
    "ir/support/whole_file.py": "the mechanism",
    "ir/support/whole_folder.py": "the mechanism",
    "tools/views/graph/folder.py": "into a whole_folder",
    "tools/views/graph/parquet.py": "into a whole_folder",
    "tools/commands/report.py": "into a whole_folder",
    "tools/views/report/folder.py": "into a whole_folder",
    "tools/views/scan/zoom.py": "into a whole_folder",
    "tools/testing/generators/program.py": "into a whole_folder",
    "tools/testing/onnx_graphs/graph.py": "into a whole_folder",
    "tools/testing/onnx_tools/finding.py": "into a whole_folder",
    "tools/testing/onnx_tools/process.py": "temporary files",
    "tools/testing/onnx_tools/worker.py": "temporary files",
    "tools/testing/onnx_tools/adapters/command.py": "temporary files",
    "tools/testing/onnx_tools/adapters/iree.py": "temporary files",
    "tools/workshop/exchanges.py": "a temporary file",
    "tools/commands/memory.py": "a temporary file",
    "tools/workshop/kernel_faults.py": "a temporary file",
    "tools/workshop/lookups.py": "a temporary file",
    "tools/bench/measure.py": "a temporary file",
    "tools/bench/fidelity/pods/sums.py": "a temporary file",
    "tools/bench/models/bench.py": "a temporary file",
    "tools/workshop/planning.py": "a temporary file",
    "tools/workshop/recurrent.py": "a temporary file",
    "tools/workshop/transformers/bench.py": "a temporary file",
    "tools/sweeps/folder.py": "a log that grows",
    "tools/workshop/planted.py": "a log that grows",
    "tools/workshop/stablehlo/bench.py": "a log that grows",
    "tools/testing/mutation/trial.py": "temporary files",
    "tools/manual/way_down/__main__.py": "a temporary file",
}
"""The files that write otherwise, and why they may. tools/testing/hostile writes inputs."""


def _writes(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        name, owner, mode = function.id, None, call.args[1:2]
    elif isinstance(function, ast.Attribute):
        name, owner, mode = function.attr, function.value, call.args[:1]
    else:
        return False
    if name == "open":
        text = mode[0].value if mode and isinstance(mode[0], ast.Constant) else ""
        return isinstance(text, str) and len(text) < 4 and bool(set(text) & set("wax"))
    if name in ("replace", "rename", "move"):
        return isinstance(owner, ast.Name) and owner.id in MODULES
    return name in WRITES and (owner is not None or name in ("rmtree", "copyfile"))


def test_only_one_mechanism_writes_outputs():
    users = {
        str(path.relative_to(ROOT))
        for path in files()
        if "hostile" not in path.parts
        and CALL.search(text := text_of(path))
        and any(isinstance(node, ast.Call) and _writes(node) for node in ast.walk(ast.parse(text)))
    }
    assert users == set(OWN), users ^ set(OWN)
