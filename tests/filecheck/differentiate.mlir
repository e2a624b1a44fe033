// RUN: abele opt %s -p differentiate | filecheck %s

// The gradients of a convolution are the operations of that name, those of a rectifier read its
// result, and a bias gets a sum over what it was broadcast to.
//
// CHECK-LABEL: func.func @main
// CHECK:         result_names = ["out0", "grad.arg0", "grad.arg1", "grad.arg2"]
// CHECK:         %[[SUM:[0-9]+]] = nn.add {{.*}}, %b
// CHECK:         %[[Y:[0-9]+]] = nn.relu %[[SUM]]
// CHECK:         %[[ONES:[0-9]+]] = nn.constant
// CHECK:         %[[G:[0-9]+]] = nn.gate %[[Y]], %[[ONES]]
// CHECK:         %[[B:[0-9]+]] = nn.reduce "sum" %[[G]] axes [2, 3]
// CHECK:         %[[FLAT:[0-9]+]] = nn.reshape %[[B]] to [4]
// CHECK:         %[[GB:[0-9]+]] = nn.reshape %[[FLAT]] to [4, 1, 1]
// CHECK:         %[[GX:[0-9]+]] = nn.conv_input_grad %[[G]], %w size [5, 5]
// CHECK:         %[[GW:[0-9]+]] = nn.conv_weight_grad %x, %[[G]] kernel [3, 3]
// CHECK:         func.return %[[Y]], %[[GX]], %[[GW]], %[[GB]]
func.func @main(%x: tensor<1x2x5x5xf32>, %w: tensor<4x2x3x3xf32>, %b: tensor<4x1x1xf32>)
    -> tensor<1x4x2x2xf32> {
  %0 = nn.conv %x, %w stride [2, 2] dilation [1, 1] pad [0, 0] to [0, 0]
    : (tensor<1x2x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x2x2xf32>
  %1 = nn.add %0, %b : (tensor<1x4x2x2xf32>, tensor<4x1x1xf32>) -> tensor<1x4x2x2xf32>
  %2 = nn.relu %1 : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  func.return %2 : tensor<1x4x2x2xf32>
}
