// RUN: abele opt %s -p decompose,summarize-softmax | filecheck %s

// The largest element and the sum of exponentials are results of one reduction.
//
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %0, %1 = nn.summarize "exp_sum" %x axes [1] keep_dims
// CHECK:         %2 = nn.sub %x, %0
// CHECK-NEXT:    %3 = nn.exp %2
// CHECK-NEXT:    %4 = nn.div %3, %1
// CHECK-NEXT:    func.return %4
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = nn.softmax %x axis 1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %0 : tensor<4x8xf32>
}

// A largest element that is a result too stays.
//
// CHECK-LABEL: func.func @others
// CHECK-NOT:     nn.summarize
// CHECK:         func.return
func.func @others(%x: tensor<4x8xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>) {
  %0 = nn.reduce "max" %x axes [1] keep_dims : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = nn.sub %x, %0 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = nn.exp %1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = nn.reduce "sum" %2 axes [1] keep_dims : (tensor<4x8xf32>) -> tensor<4x1xf32>
  func.return %0, %3 : tensor<4x1xf32>, tensor<4x1xf32>
}
