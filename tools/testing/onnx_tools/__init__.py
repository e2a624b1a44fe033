"""Tests of other people's tools of ONNX models: optimisers, simplifiers, compilers and runtimes.

    check_tool("onnxoptimizer", examples=500)       # a tool known by name
    check_tool("onnxruntime:all:TransposeOptimizer")
    check_onnx_transform(my_function)               # onnx.ModelProto -> onnx.ModelProto
    check_onnx_runner(my_function)                  # (onnx.ModelProto, inputs) -> outputs

known.py is the table of tools, adapters/ calls them, process.py runs them in a process of their own
with limits. judge.py says what is a failure, freedom.py what the standard leaves open,
equivalents.py makes models that must give the same results. culprit.py names the part of a tool
that is to blame. finding.py saves a failure with a script that shows it without abele.
"""
