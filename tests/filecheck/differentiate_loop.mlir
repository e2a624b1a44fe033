// RUN: abele opt %s -p differentiate | filecheck %s

// The loop keeps its state and the result of tanh, one row per iteration. The loop back reads them from
// the last row on, carries the gradient of the state, and sums that of the weight.
//
// CHECK-LABEL: func.func @main
// CHECK:         %[[LAST:[0-9]+]], %[[KEPT:[0-9]+]], %[[STATES:[0-9]+]] = control.repeat 4(%x,
// CHECK:           %[[T:.*]] = nn.tanh
// CHECK:           nn.update "last"
// CHECK:           nn.update "last"
// CHECK:           control.yield %[[T]]
// CHECK:         %{{[0-9]+}}, %{{[0-9]+}} = control.repeat 4(
// CHECK:           ^bb0(%[[G:[0-9]+]]: tensor<3xf32>, %[[SUM:[0-9]+]]: tensor<3xf32>, %[[ITERATION:[0-9]+]]: tensor<i32>):
// CHECK:           %[[I:[0-9]+]] = nn.sub %{{[0-9]+}}, %[[ITERATION]]
// CHECK-DAG:       nn.gather %[[KEPT]]
// CHECK-DAG:       nn.gather %[[STATES]]
// CHECK-NOT:       nn.tanh
// CHECK:           nn.mul %{{[0-9]+}}, %w
// CHECK:           nn.add %[[SUM]]
// CHECK:           control.yield
func.func @main(%x: tensor<3xf32>, %w: tensor<3xf32>) -> tensor<3xf32> {
  %0 = control.repeat 4 (%x) : (tensor<3xf32>) -> (tensor<3xf32>) {
  ^bb0(%a: tensor<3xf32>):
    %1 = nn.mul %a, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %2 = nn.tanh %1 : (tensor<3xf32>) -> tensor<3xf32>
    control.yield %2 : tensor<3xf32>
  }
  func.return %0 : tensor<3xf32>
}
