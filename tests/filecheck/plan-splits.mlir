// RUN: abele opt %s -p 'plan-splits{target="tiny:4"}' --split-input-file | filecheck %s

// The planner writes the target on the module. It cuts the function into one part per tile and
// those into one part per worker; a reshape moves nothing and has no plan.
//
// CHECK:       builtin.module attributes {abele.target = "tiny"}
// CHECK:         nn.relu %x {plan = #abele.plan<split [4] workers [6]>}
// CHECK:         nn.reshape {{.*}} to [8, 12] : (
func.func @main(%x: tensor<96xf32>) -> tensor<8x12xf32> {
  %0 = nn.relu %x : (tensor<96xf32>) -> tensor<96xf32>
  %1 = nn.reshape %0 to [8, 12] : (tensor<96xf32>) -> tensor<8x12xf32>
  func.return %1 : tensor<8x12xf32>
}

// -----

// A contraction gets a method. What is too small to be worth an exchange stays on one tile, where
// workers share it. A transposition is a movement, and has a plan too.
//
// CHECK:       builtin.module attributes {abele.target = "tiny"}
// CHECK:         nn.matmul %x, %w {plan = #abele.plan<split [1, 1, 1] method amp>}
// CHECK:         nn.relu {{.*}} {plan = #abele.plan<split [1, 1] workers [2, 3]>}
// CHECK:         nn.transpose {{.*}} [1, 0] {plan = #abele.plan<split [1, 1]>}
func.func @main(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<8x4xf32> {
  %0 = nn.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %1 = nn.relu %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = nn.transpose %1 [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  func.return %2 : tensor<8x4xf32>
}
