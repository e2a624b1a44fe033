"""Random ONNX models, and tests of the ONNX reader on them against onnxruntime.

    from abele.tools.testing import check_import, onnx_models

    check_import(examples=1000)                     # test the reader
    check_import(examples=100, target="tiny:8")     # test compiled programs as well

    @given(onnx_models())
    def test_mine(graph): ...                       # graph.proto, graph.inputs

Operators come from the reader's own table, operands and attributes from ONNX's schemas.
operators.py adds what the schemas do not say. deviations.py lists where onnxruntime is known to
differ.
"""
