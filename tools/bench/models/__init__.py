"""Published models with their trained weights, run the whole way and compared with onnxruntime."""
