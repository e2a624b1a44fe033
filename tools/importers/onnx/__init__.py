"""The importer of ONNX models, which become modules of the nn dialect."""
