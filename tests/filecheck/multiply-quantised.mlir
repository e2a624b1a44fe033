// RUN: abele opt %s -p multiply-quantised | filecheck %s

// Quantised tensors are multiplied without their scales, as float16, into float32. The scales of both
// follow. A product of floats that are not quantised stays as it is.
//
// CHECK-LABEL: func.func @main
// CHECK:         %[[X:.*]] = nn.cast %{{.*}} : (tensor<4x8xf32>) -> tensor<4x8xf16>
// CHECK:         %[[W:.*]] = nn.cast %{{.*}} : (tensor<8x2xf32>) -> tensor<8x2xf16>
// CHECK:         %[[P:.*]] = nn.matmul %[[X]], %[[W]] : (tensor<4x8xf16>, tensor<8x2xf16>) -> tensor<4x2xf32>
// CHECK-NEXT:    %[[T:.*]] = nn.reshape %t to [1, 2]
// CHECK-NEXT:    %[[S:.*]] = nn.mul %s, %[[T]] : (tensor<f32>, tensor<1x2xf32>) -> tensor<1x2xf32>
// CHECK-NEXT:    nn.mul %[[P]], %[[S]] : (tensor<4x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
// CHECK:         nn.matmul %y, %v : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
func.func @main(%q: tensor<4x8xui8>, %z: tensor<ui8>, %w: tensor<8x2xi8>, %s: tensor<f32>, %t: tensor<2xf32>, %v: tensor<8x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %0 = nn.cast %q : (tensor<4x8xui8>) -> tensor<4x8xf32>
  %1 = nn.cast %z : (tensor<ui8>) -> tensor<f32>
  %2 = nn.sub %0, %1 : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %y = nn.mul %2, %s : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %4 = nn.cast %w : (tensor<8x2xi8>) -> tensor<8x2xf32>
  %5 = nn.mul %4, %t : (tensor<8x2xf32>, tensor<2xf32>) -> tensor<8x2xf32>
  %6 = nn.matmul %y, %5 : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %7 = nn.matmul %y, %v : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  func.return %6, %7 : tensor<4x2xf32>, tensor<4x2xf32>
}
