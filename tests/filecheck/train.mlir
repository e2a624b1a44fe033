// RUN: abele opt %s -p 'train{loss=mean_square learning-rate=0.5 momentum=0.9}' | filecheck %s

// The program takes a target, and returns the loss. The weight and its momentum are states, which
// are stored at the end.
//
// CHECK:       abele.trained = ["w"]
// CHECK-DAG:   nn.state @w.momentum : tensor<4xf32>
// CHECK-DAG:   nn.state @w : tensor<4xf32>
// CHECK:       func.func @main(%x: tensor<3x4xf32>, %[[TARGET:[a-z0-9]+]]: tensor<3x4xf32>) -> tensor<f32>
// CHECK:       arg_names = ["x", "target"]
// CHECK:       %[[W:.*]] = nn.load @w :
// CHECK:       %[[Y:[0-9]+]] = nn.mul %x, %[[W]]
// CHECK:       %[[D:[0-9]+]] = nn.sub %[[Y]], %[[TARGET]]
// CHECK:       nn.square %[[D]]
// CHECK:       %[[LOSS:[0-9]+]] = nn.scale {{.*}} by 0.083
// CHECK:       %[[G:[0-9]+]] = nn.compute({{.*}}, %x)
// CHECK:       %[[M:[0-9]+]] = nn.load @w.momentum
// CHECK:       %[[OLD:[0-9]+]] = nn.scale %[[M]] by 0.9
// CHECK:       %[[V:[0-9]+]] = nn.add %[[OLD]], %[[G]]
// CHECK:       %[[STEP:[0-9]+]] = nn.scale %[[V]] by 0.5
// CHECK:       %[[NEW:[0-9]+]] = nn.sub %[[W]], %[[STEP]]
// CHECK:       nn.store %[[V]], @w.momentum
// CHECK:       nn.store %[[NEW]], @w
// CHECK:       func.return %[[LOSS]]
nn.state @w : tensor<4xf32> = <"aa4670fe509839cd7059e21a">
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> attributes {arg_names = ["x"]} {
  %w = nn.load @w : tensor<4xf32>
  %0 = nn.mul %x, %w : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  func.return %0 : tensor<3x4xf32>
}
