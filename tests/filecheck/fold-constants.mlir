// RUN: abele opt %s -p fold-constants | filecheck %s

// -([2, 2, 2, 2] * [0, 1, 2, 3]) is one constant, read by the addition; the sum depends on an
// argument and stays. The digest is that of [-0, -2, -4, -6].
//
// CHECK-LABEL: func.func @main
// CHECK-NOT:     nn.mul
// CHECK-NOT:     nn.neg
// CHECK:         %[[PRODUCT:[0-9]+]] = nn.constant <"9d9f4d9177ea462b0163c359"> : tensor<4xf32>
// CHECK-NEXT:    nn.add %x, %[[PRODUCT]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = nn.constant <"84e61dd002e44947acef5c67"> : tensor<4xf32>
  %range = nn.constant <"aa4670fe509839cd7059e21a"> : tensor<4xf32>
  %0 = nn.mul %two, %range : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.add %x, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
