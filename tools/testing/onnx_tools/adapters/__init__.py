"""One file per known tool, which says how to call it. A finding's script contains the file's text.

Each file needs only Python, NumPy, onnx and the tool. It defines `version()`, and either
`transform(model, option, without)` or `run(model, inputs, option, without)`. `parts(model, option)`
names the parts of the tool that `without` can leave out: passes, optimisers or rules. An option is
"" or one that the tool's record in known.py lists.
"""
