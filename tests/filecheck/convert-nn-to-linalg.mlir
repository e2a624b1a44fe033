// RUN: abele opt %s -p convert-nn-to-linalg | filecheck %s

// A convolution is loops over the elements of the image, which is padded before, and of the weights.
// The loops of one turn are left out.

// CHECK: func.func @main(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<1x4x4x4xf32>
// CHECK: %[[PADDED:.*]] = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 0, 0]
// CHECK: tensor<1x2x8x8xf32> to tensor<1x2x9x9xf32>
// CHECK: linalg.fill
// CHECK: linalg.generic
// CHECK: (d3, ((d1 * 2) + d4), ((d2 * 2) + d5))>
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
// CHECK: %[[PRODUCT:.*]] = arith.mulf
// CHECK-NEXT: arith.addf %{{.*}}, %[[PRODUCT]] : f32
// CHECK-NEXT: linalg.yield
// CHECK: arith.maximumf
// CHECK: tensor.expand_shape

builtin.module {
  func.func @main(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<1x4x4x4xf32> {
    %0 = nn.conv %x, %w stride [2, 2] dilation [1, 1] pad [1, 1] to [1, 1]
        : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x4x4xf32>
    %1 = nn.relu %0 : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
    func.return %1 : tensor<1x4x4x4xf32>
  }
}
