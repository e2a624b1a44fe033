// RUN: abele opt %s -p 'plan-splits{target="tiny:4"}' | filecheck %s

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
