// RUN: abele opt %s -p eliminate-dead | filecheck %s

// A state that nothing loads or stores goes, once the load that nobody reads is gone.
//
// CHECK:         nn.state @used
// CHECK-NOT:     nn.state
nn.state @used : tensor<4xf32> = <"84e61dd002e44947acef5c67">
nn.state @unused : tensor<4xf32> = <"84e61dd002e44947acef5c67">

// What is stored stays, though nobody reads it in this run. A chain that nobody reads goes whole.
//
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[STORED:[0-9]+]] = nn.relu %x
// CHECK-NEXT:    nn.store %[[STORED]], @used
// CHECK-NEXT:    func.return %x
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.neg %1 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = nn.load @unused : tensor<4xf32>
  nn.store %0, @used : tensor<4xf32>
  func.return %x : tensor<4xf32>
}
