// RUN: abele opt %s -p convert-nn-to-stablehlo | filecheck %s

// The structure of an operator decides what it becomes: a convolution, merged windows, a product, and
// otherwise functions of whole tensors.

// CHECK: "stablehlo.pad"(%x, %{{.*}})
// CHECK-NEXT: <{edge_padding_low = array<i64: 0, 0, 1, 1>
// CHECK: "stablehlo.convolution"(%{{.*}}, %w)
// CHECK-NEXT: <{window_strides = array<i64: 2, 2>
// CHECK-NEXT: #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>
// CHECK: "stablehlo.maximum"
// CHECK: "stablehlo.reduce_window"
// CHECK-NEXT: window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 2, 2>
// CHECK: "stablehlo.dot_general"
// CHECK-NEXT: lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]

builtin.module {
  func.func @main(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>, %v: tensor<16x3xf32>)
      -> tensor<1x3xf32> {
    %0 = nn.conv %x, %w stride [2, 2] dilation [1, 1] pad [1, 1] to [1, 1]
        : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x4x4xf32>
    %1 = nn.relu %0 : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
    %2 = nn.pool "max" %1 window [2, 2] stride [2, 2] dilation [1, 1] pad [0, 0] to [0, 0]
        : (tensor<1x4x4x4xf32>) -> tensor<1x4x2x2xf32>
    %3 = nn.reshape %2 to [1, 16] : (tensor<1x4x2x2xf32>) -> tensor<1x16xf32>
    %4 = nn.matmul %3, %v : (tensor<1x16xf32>, tensor<16x3xf32>) -> tensor<1x3xf32>
    func.return %4 : tensor<1x3xf32>
  }
}
