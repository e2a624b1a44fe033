"""Small programs that tests of sweeps and of energy compile."""

PRODUCT = """\
builtin.module {
  func.func @main(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
    %0 = nn.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> loc("fc")
    %1 = nn.relu %0 : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("relu")
    func.return %1 : tensor<4x8xf32>
  }
}
"""

PACKED_PRODUCT = """\
builtin.module {
  func.func @main(%x: tensor<1x8xf16>, %p: tensor<6x1x4xui8>, %s: tensor<6x1xf16>,
                  %z: tensor<6x1xui8>, %h: tensor<2xui8>) -> tensor<1x6xf16> {
    %0 = nn.packed_matmul %x, %p, %s, %z, %h bits 4
        : (tensor<1x8xf16>, tensor<6x1x4xui8>, tensor<6x1xf16>, tensor<6x1xui8>, tensor<2xui8>)
        -> tensor<1x6xf16>
    func.return %0 : tensor<1x6xf16>
  }
}
"""
