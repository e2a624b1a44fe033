"""Programs of nn that tests train, as text."""

PRODUCT = """
builtin.module {
  nn.state @w : tensor<3x2xf32> = <[0.4, -0.3, 0.2, 0.9, -0.6, 0.1] : tensor<3x2xf32>>
  func.func @main(%x: tensor<4x3xf32>) -> tensor<4x2xf32> attributes {arg_names = ["x"]} {
    %w = nn.load @w : tensor<3x2xf32> loc("w")
    %0 = nn.matmul %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32> loc("product")
    func.return %0 : tensor<4x2xf32>
  }
}"""
"""A product with a weight."""

LARGE = """
builtin.module {
  nn.state @w : tensor<4x2xf32> = <[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0] : tensor<4x2xf32>>
  func.func @main(%x: tensor<2x4xf32>) -> tensor<2x2xf32> attributes {arg_names = ["x"]} {
    %w = nn.load @w : tensor<4x2xf32> loc("w")
    %0 = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
      loc("product"("net.py":7:1))
    %1 = nn.tanh %0 : (tensor<2x2xf32>) -> tensor<2x2xf32> loc("tanh"("net.py":8:1))
    %2 = nn.scale %1 by 4.0e4 : (tensor<2x2xf32>) -> tensor<2x2xf32> loc("large")
    func.return %2 : tensor<2x2xf32>
  }
}"""
"""Results that are near the largest number of float16, or beyond it, and lines of a user's file."""
