// RUN: abele opt %s -p 'train{loss=mean_square learning-rate=0.5 scaling=unit}' | filecheck %s

// The mean of 12 squares divides its gradient by 12. Its power of two is left out, so 1/12 becomes
// 16/12. The gradient of the weight is a sum of 3 products, and is halved. It is then 8 times the
// true one, and the update divides by 8.
//
// CHECK-LABEL: func.func @main
// CHECK:         nn.scale {{.*}} by 0.083
// CHECK:         %[[ONE:[0-9]+]] = nn.constant
// CHECK-NEXT:    nn.scale %[[ONE]] by 1.333
// CHECK:         %[[SUM:[0-9]+]] = nn.compute({{.*}}, %x)
// CHECK-NEXT:    %[[G:[0-9]+]] = nn.scale %[[SUM]] by 0.5
// CHECK-NEXT:    %[[OWN:[0-9]+]] = nn.scale %[[G]] by 0.125
// CHECK-NEXT:    nn.scale %[[OWN]] by 0.5
nn.state @w : tensor<4xf32> = <"aa4670fe509839cd7059e21a">
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> attributes {arg_names = ["x"]} {
  %w = nn.load @w : tensor<4xf32>
  %0 = nn.mul %x, %w : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  func.return %0 : tensor<3x4xf32>
}
