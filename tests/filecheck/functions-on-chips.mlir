// RUN: abele opt %s -p plan-splits,convert-nn-to-partition | filecheck %s

// Each function is planned for the chips that it names, which have the tiles 0..3 and 8..11. What a
// loop carries lies where a function takes it, so that it crosses once in an iteration. A state
// lies where the function that loads it reads it.

// CHECK:       partition.state @w : tensor <4x4xf32, [4 by 4, 4] (d0, d1) of [4, 4] at 8>
// CHECK-LABEL: func.func @main
// CHECK:         control.repeat 3
// CHECK-NEXT:      -> !partition.tensor<4x4xf32, [4 by 4, 4] (d0, d1) of [4, 4]> {
// CHECK:         func.call @double
// CHECK:         %[[HERE:.*]] = partition.relayout(%b)
// CHECK-NEXT:      -> !partition.tensor<4x4xf32, [4 by 4, 4] (d0, d1) of [4, 4] at 8>
// CHECK:         func.call @add(%[[HERE]])
// CHECK:         %[[BACK:.*]] = partition.relayout(%c)
// CHECK-NEXT:      -> !partition.tensor<4x4xf32, [4 by 4, 4] (d0, d1) of [4, 4]>
// CHECK:         control.yield %[[BACK]]
// CHECK-LABEL: func.func @double
// CHECK-SAME:    [4 by 4, 4] (d0, d1) of [4, 4]>
// CHECK:         attributes {abele.chips = [0 : i64, 1 : i64, 1 : i64]}
// CHECK-LABEL: func.func @add
// CHECK-SAME:    [4 by 4, 4] (d0, d1) of [4, 4] at 8>
// CHECK:         attributes {abele.chips = [2 : i64, 1 : i64, 1 : i64]}
builtin.module attributes {abele.target = "tiny:16,links.chips=4,links.topology=ladder"} {
  nn.state @w : tensor<4x4xf32> = <[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0] : tensor<4x4xf32>>
  func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = control.repeat 3 (%x) : (tensor<4x4xf32>) -> (tensor<4x4xf32>) {
    ^bb0(%a: tensor<4x4xf32>):
      %b = func.call @double(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %c = func.call @add(%b) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      control.yield %c : tensor<4x4xf32>
    }
    func.return %0 : tensor<4x4xf32>
  }
  func.func @double(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {abele.chips = [0, 1, 1]} {
    %0 = nn.add %x, %x {plan = #abele.plan<split [4, 1]>}
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    func.return %0 : tensor<4x4xf32>
  }
  func.func @add(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {abele.chips = [2, 1, 1]} {
    %w = nn.load @w : tensor<4x4xf32>
    %0 = nn.add %x, %w {plan = #abele.plan<split [4, 1] at 8>}
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    func.return %0 : tensor<4x4xf32>
  }
}
