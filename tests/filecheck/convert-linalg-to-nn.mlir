// RUN: abele opt %s -p convert-linalg-to-nn | filecheck %s

// A layer in linalg: a product, a bias and a maximum with 0. The sums begin with zeros, which change
// nothing, so nothing is added to them.

// CHECK: func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x3xf32>, %b: tensor<3xf32>) -> tensor<4xf32>
// CHECK: %[[PRODUCT:.*]] = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: %[[SUM:.*]] = nn.add %[[PRODUCT]], %b : (tensor<4x3xf32>, tensor<3xf32>)
// CHECK-NEXT: %[[LAYER:.*]] = nn.max %[[SUM]], %{{.*}} : (tensor<4x3xf32>, tensor<f32>)
// CHECK: %[[LARGEST:.*]] = nn.reduce "max" %[[LAYER]] axes [1] : (tensor<4x3xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %[[LARGEST]]

func.func @layer(%x: tensor<4x8xf32>, %w: tensor<8x3xf32>, %b: tensor<3xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<4x3xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x3xf32>) -> tensor<4x3xf32>
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x3xf32>)
                           outs(%zeros : tensor<4x3xf32>) -> tensor<4x3xf32>
  %layer = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%product, %b : tensor<4x3xf32>, tensor<3xf32>) outs(%empty : tensor<4x3xf32>) {
  ^bb0(%p: f32, %c: f32, %unused: f32):
    %s = arith.addf %p, %c : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<4x3xf32>
  %row = tensor.empty() : tensor<4xf32>
  %begin = linalg.fill ins(%lowest : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %largest = linalg.reduce ins(%layer : tensor<4x3xf32>) outs(%begin : tensor<4xf32>) dimensions = [1]
  (%a: f32, %m: f32) {
    %r = arith.maximumf %a, %m : f32
    linalg.yield %r : f32
  }
  func.return %largest : tensor<4xf32>
}
