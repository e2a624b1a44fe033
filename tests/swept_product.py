"""A small program that tests of sweeps compile."""

PRODUCT = """\
builtin.module {
  func.func @main(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
    %0 = nn.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> loc("fc")
    %1 = nn.relu %0 : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("relu")
    func.return %1 : tensor<4x8xf32>
  }
}
"""
