// RUN: abele opt %s -p recompute | filecheck %s

// The tangent waits for the product: it is computed again right before it. The argument is read
// through a reshape to its own shape, so that it is laid out anew.
//
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[FIRST:.*]] = nn.tanh %x
// CHECK-NEXT:    nn.exp %[[FIRST]]
// CHECK-NEXT:    nn.neg
// CHECK-NEXT:    %[[LAST:.*]] = nn.sigmoid
// CHECK-NEXT:    %[[AGAIN:.*]] = nn.reshape %x to [4]
// CHECK-NEXT:    %[[SECOND:.*]] = nn.tanh %[[AGAIN]]
// CHECK-NEXT:    nn.mul %[[LAST]], %[[SECOND]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.neg %1 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = nn.sigmoid %2 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = nn.mul %3, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %4 : tensor<4xf32>
}
