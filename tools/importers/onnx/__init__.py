"""ONNX models as modules of the nn dialect."""
