// RUN: abele opt %s -p 'narrow-floats{to=bf16}' --split-input-file | filecheck %s

// Arguments and results stay float32 at the host; everything between is narrow.
//
// CHECK-LABEL: func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> tensor<4x4xf32>
// CHECK-DAG:     %[[X:[0-9]+]] = nn.cast %x : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK-DAG:     %[[W:[0-9]+]] = nn.cast %w : (tensor<8x4xf32>) -> tensor<8x4xbf16>
// CHECK:         %[[POSITIVE:[0-9]+]] = nn.relu %[[X]] : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
// CHECK-NEXT:    %[[PRODUCT:[0-9]+]] = nn.matmul %[[POSITIVE]], %[[W]] : {{.*}} -> tensor<4x4xbf16>
// CHECK-NEXT:    %[[TANH:[0-9]+]] = nn.tanh %[[PRODUCT]]
// CHECK-NEXT:    %[[WIDE:[0-9]+]] = nn.cast %[[TANH]] : (tensor<4x4xbf16>) -> tensor<4x4xf32>
// CHECK-NEXT:    func.return %[[WIDE]] : tensor<4x4xf32>
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = nn.matmul %0, %w : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %2 = nn.tanh %1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %2 : tensor<4x4xf32>
}

// -----

// A state stays float32, and what is loaded from it becomes narrow. A plan stays what it is.
//
// CHECK:       nn.state @b : tensor<4xf32>
// CHECK:         %b = nn.load @b : tensor<4xf32>
// CHECK-NEXT:    %[[B:[0-9]+]] = nn.cast %b : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK:         nn.add {{.*}}, %[[B]] {plan = #abele.plan<split [4]>} : (tensor<4xbf16>, tensor<4xbf16>)
nn.state @b : tensor<4xf32> = <"84e61dd002e44947acef5c67">
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = nn.load @b : tensor<4xf32>
  %0 = nn.add %x, %b {plan = #abele.plan<split [4]>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
