// RUN: abele opt %s -p convert-stablehlo-to-nn | filecheck %s

// A dense layer as JAX writes it: the bias is repeated along the batch, a private function holds the
// rectifier, and the largest element of each row begins with minus infinity.

// CHECK: func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x3xf32>, %b: tensor<3xf32>) -> tensor<4xf32>
// CHECK: %[[PRODUCT:.*]] = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: %[[BIAS:.*]] = nn.expand %b to [4, 3]
// CHECK-NEXT: %[[SUM:.*]] = nn.add %[[PRODUCT]], %[[BIAS]]
// CHECK-NEXT: %[[LAYER:.*]] = nn.relu %[[SUM]]
// CHECK-NEXT: %[[LARGEST:.*]] = nn.reduce "max" %[[LAYER]] axes [1]
// CHECK-NEXT: func.return %[[LARGEST]]
// CHECK-NOT: @relu

builtin.module {
  func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x3xf32>, %b: tensor<3xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers =
        #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}>
        : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
    %1 = "stablehlo.broadcast_in_dim"(%b) <{broadcast_dimensions = array<i64: 1>}>
        : (tensor<3xf32>) -> tensor<4x3xf32>
    %2 = "stablehlo.add"(%0, %1) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %3 = func.call @relu(%2) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %4 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %5 = "stablehlo.reduce"(%3, %4) <{dimensions = array<i64: 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %6 = "stablehlo.maximum"(%p, %q) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%6) : (tensor<f32>) -> ()
    }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
    func.return %5 : tensor<4xf32>
  }

  func.func private @relu(%a: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %0 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}>
        : (tensor<f32>) -> tensor<4x3xf32>
    %2 = "stablehlo.maximum"(%a, %1) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    func.return %2 : tensor<4x3xf32>
  }
}
