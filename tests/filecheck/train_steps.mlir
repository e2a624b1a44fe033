// RUN: abele opt %s -p 'train{loss=mean_square learning-rate=0.5 steps=3}' | filecheck %s

// Each input and the loss get a first axis of steps. What a step does, with the load and the store
// of the weight, is the body of a loop of runs, which reads its batch by the number of its iteration.
//
// CHECK:       func.func @main(%x: tensor<3x3x4xf32>, %[[TARGETS:[a-z0-9]+]]: tensor<3x3x4xf32>) -> tensor<3xf32>
// CHECK:       arg_names = ["x", "target"]
// CHECK:       %[[ZEROS:[0-9]+]] = nn.expand {{.*}} -> tensor<3xf32>
// CHECK-NOT:   nn.load
// CHECK:       %[[LOSSES:[0-9]+]] = control.repeat 3 runs(%[[ZEROS]])
// CHECK-NEXT:  ^{{.*}}(%[[TABLE:[0-9]+]]: tensor<3xf32>, %[[ITERATION:[0-9]+]]: tensor<i32>)
// CHECK:       nn.gather %x, {{.*}} axis 0 {{.*}} -> tensor<1x3x4xf32>
// CHECK-NEXT:  %[[X:[a-z0-9_]+]] = nn.reshape
// CHECK:       nn.gather %[[TARGETS]], {{.*}} axis 0 {{.*}} -> tensor<1x3x4xf32>
// CHECK-NEXT:  %[[TARGET:[0-9]+]] = nn.reshape
// CHECK-NEXT:  %[[W:[a-z0-9]+]] = nn.load @w
// CHECK-NEXT:  %[[Y:[0-9]+]] = nn.mul %[[X]], %[[W]]
// CHECK-NEXT:  %[[D:[0-9]+]] = nn.sub %[[Y]], %[[TARGET]]
// CHECK:       %[[LOSS:[0-9]+]] = nn.scale {{.*}} by 0.083
// CHECK-NEXT:  %[[ROW:[0-9]+]] = nn.reshape %[[LOSS]] to [1]
// CHECK:       %[[AT:[0-9]+]] = nn.reshape %[[ITERATION]] to [1]
// CHECK-NEXT:  %[[KEPT:[0-9]+]] = nn.update "last" %[[ROW]], %[[AT]] into %[[TABLE]] axis 0
// CHECK:       %[[NEW:[0-9]+]] = nn.sub %[[W]], %
// CHECK-NEXT:  nn.store %[[NEW]], @w
// CHECK-NEXT:  control.yield %[[KEPT]]
// CHECK:       func.return %[[LOSSES]]
nn.state @w : tensor<4xf32> = <"aa4670fe509839cd7059e21a">
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> attributes {arg_names = ["x"]} {
  %w = nn.load @w : tensor<4xf32>
  %0 = nn.mul %x, %w : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  func.return %0 : tensor<3x4xf32>
}
