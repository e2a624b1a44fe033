// RUN: abele opt %s -p read-narrow | filecheck %s

// Moments read floats of 16 bits, and what else reads the cast gets one of its own.
//
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[OWN:[0-9]+]] = nn.cast %x
// CHECK-NEXT:    %[[MEAN:[0-9]+]], %[[VARIANCE:[0-9]+]] = nn.compute(%x) {{.*}} body <identity moments> : (tensor<4x8xf16>)
// CHECK-NEXT:        -> (tensor<4x1xf32>, tensor<4x1xf32>)
// CHECK-NEXT:    %[[OTHER:[0-9]+]] = nn.cast %x
// CHECK-NEXT:    nn.sub %[[OTHER]], %[[MEAN]]
// CHECK-NEXT:    nn.mul %[[OWN]], %[[VARIANCE]]
func.func @main(%x: tensor<4x8xf16>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = nn.cast %x : (tensor<4x8xf16>) -> tensor<4x8xf32>
  %1, %2 = nn.summarize "moments" %0 axes [1] keep_dims
      : (tensor<4x8xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>)
  %3 = nn.sub %0, %1 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %4 = nn.mul %0, %2 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  func.return %3, %4 : tensor<4x8xf32>, tensor<4x8xf32>
}
