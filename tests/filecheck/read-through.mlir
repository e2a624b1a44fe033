// RUN: abele opt %s -p read-through | filecheck %s

// A product reads a tensor and not its transpose, and writes what is a transpose of its result.
//
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %0 = nn.compute(%x, %y)
// CHECK-SAME:    body <mul sum> : (tensor<1x4xf32>, tensor<8x4xf32>) -> tensor<8x1xf32>
// CHECK-NEXT:    func.return %0
func.func @main(%x: tensor<1x4xf32>, %y: tensor<8x4xf32>) -> tensor<8x1xf32> {
  %0 = nn.transpose %y [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = nn.matmul %x, %0 : (tensor<1x4xf32>, tensor<4x8xf32>) -> tensor<1x8xf32>
  %2 = nn.transpose %1 [1, 0] : (tensor<1x8xf32>) -> tensor<8x1xf32>
  func.return %2 : tensor<8x1xf32>
}

// A transposed tensor that is computed in any case is read.
//
// CHECK-LABEL: func.func @read_elsewhere
// CHECK-NEXT:    %0 = nn.transpose
// CHECK-NEXT:    %1 = nn.matmul %x, %0
func.func @read_elsewhere(%x: tensor<1x4xf32>, %y: tensor<8x4xf32>)
    -> (tensor<1x8xf32>, tensor<4x8xf32>) {
  %0 = nn.transpose %y [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = nn.matmul %x, %0 : (tensor<1x4xf32>, tensor<4x8xf32>) -> tensor<1x8xf32>
  func.return %1, %0 : tensor<1x8xf32>, tensor<4x8xf32>
}
