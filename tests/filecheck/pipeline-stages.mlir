// RUN: abele opt %s -p pipeline-stages | filecheck %s

// The first stage works once before the loop, the second one once behind it. In the loop, the second
// stage reads what the first one has made in the iteration before.
//
// CHECK-LABEL: func.func @stage0
// CHECK:         nn.tanh
// CHECK-LABEL: func.func @stage1
// CHECK:         nn.add
// CHECK-LABEL: func.func @main
// CHECK:         %[[FIRST:.*]] = func.call @stage0(%x)
// CHECK-NEXT:    control.repeat 2(%[[FIRST]], %x)
// CHECK-NEXT:    ^bb0(%[[BEFORE:.*]]: tensor<4xf32>, %[[SUM:.*]]: tensor<4xf32>)
// CHECK-NEXT:      %[[NEXT:.*]] = func.call @stage0(%x)
// CHECK-NEXT:      %[[SUMMED:.*]] = func.call @stage1(%[[SUM]], %[[BEFORE]])
// CHECK-NEXT:      control.yield %[[NEXT]], %[[SUMMED]]
// CHECK:         func.call @stage1
// CHECK-NEXT:    func.return
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = control.repeat 3 (%x) : (tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%sum: tensor<4xf32>):
    %1 = nn.tanh %x {stage = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.add %sum, %1 {stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    control.yield %2 : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}
