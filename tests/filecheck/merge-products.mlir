// RUN: abele opt %s -p merge-products{target=mk2} | filecheck %s

// Three products of one vector become one, with the matrices side by side. Slices take their places.
//
// CHECK-LABEL: func.func @main
// CHECK:         %[[EACH:[0-9]+]] = nn.concat {{.*}} axis 1 : {{.*}} -> tensor<64x192xf16>
// CHECK-NEXT:    %[[ALL:[0-9]+]] = nn.matmul %x, %[[EACH]] : {{.*}} -> tensor<1x192xf16>
// CHECK-NEXT:    %[[FIRST:[0-9]+]] = nn.slice %[[ALL]] from [0, 0] step [1, 1] size [1, 64]
// CHECK-NEXT:    %[[SECOND:[0-9]+]] = nn.slice %[[ALL]] from [0, 64] step [1, 1] size [1, 64]
// CHECK:         %[[THIRD:[0-9]+]] = nn.slice %[[ALL]] from [0, 128] step [1, 1] size [1, 64]
// CHECK-NOT:     nn.matmul
// CHECK:         func.return %[[FIRST]], %[[SECOND]], %[[THIRD]]
func.func @main(%x: tensor<1x64xf16>) -> (tensor<1x64xf16>, tensor<1x64xf16>, tensor<1x64xf16>) {
  %w = nn.constant <"299fa0b0f225eb77d0977d8d"> : tensor<64x64xf16>
  %v = nn.constant <"c81ea17a5f31f38365af5e74"> : tensor<64x64xf16>
  %u = nn.constant <"c81ea17a5f31f38365af5e74"> : tensor<64x64xf16>
  %0 = nn.matmul %x, %w : (tensor<1x64xf16>, tensor<64x64xf16>) -> tensor<1x64xf16>
  %1 = nn.matmul %x, %v : (tensor<1x64xf16>, tensor<64x64xf16>) -> tensor<1x64xf16>
  %2 = nn.matmul %x, %u : (tensor<1x64xf16>, tensor<64x64xf16>) -> tensor<1x64xf16>
  func.return %0, %1, %2 : tensor<1x64xf16>, tensor<1x64xf16>, tensor<1x64xf16>
}

// A matrix that is read elsewhere too stays, and so does a product with an argument.
//
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: nn.matmul
// CHECK:         func.return
func.func @others(%x: tensor<1x64xf16>, %y: tensor<64x64xf16>)
    -> (tensor<1x64xf16>, tensor<1x64xf16>, tensor<1x64xf16>, tensor<64x64xf16>) {
  %w = nn.constant <"299fa0b0f225eb77d0977d8d"> : tensor<64x64xf16>
  %v = nn.constant <"c81ea17a5f31f38365af5e74"> : tensor<64x64xf16>
  %0 = nn.matmul %x, %w : (tensor<1x64xf16>, tensor<64x64xf16>) -> tensor<1x64xf16>
  %1 = nn.matmul %x, %v : (tensor<1x64xf16>, tensor<64x64xf16>) -> tensor<1x64xf16>
  %2 = nn.matmul %x, %y : (tensor<1x64xf16>, tensor<64x64xf16>) -> tensor<1x64xf16>
  func.return %0, %1, %2, %v : tensor<1x64xf16>, tensor<1x64xf16>, tensor<1x64xf16>, tensor<64x64xf16>
}
