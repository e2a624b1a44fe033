"""Random ONNX models, and the reader tested on them against onnxruntime.

    from abele.tools.testing import check_import, onnx_models

    check_import(examples=1000)                     # what is read computes the same
    check_import(examples=100, target="tiny:8")     # and so does the machine

    @given(onnx_models())
    def test_mine(graph): ...                       # graph.proto, graph.inputs

Operators come from the reader's own table, operands and attributes from ONNX's schemas; what these
do not say is in operators.py. What onnxruntime does in its own way is in deviations.py.
"""
