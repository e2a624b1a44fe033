"""Published models with trained weights, run completely and compared with onnxruntime."""
