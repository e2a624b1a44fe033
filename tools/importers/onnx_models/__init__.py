"""ONNX files as modules of the onnx dialect, and back, without loss."""
