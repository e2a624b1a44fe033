// RUN: abele opt %s -p narrow-partials | filecheck %s --check-prefixes=CHECK,ALL
// RUN: abele opt %s -p 'narrow-partials{partials=auto tolerance=0.01}' | filecheck %s --check-prefixes=CHECK,AUTO

// Sums of products of float16 keep partial sums in 16 bits: all of them, or those with few products.
// A sum without products stays as it is, and so does one of float32.
//
// CHECK-LABEL: func.func @main
// CHECK:         nn.matmul %x, %v narrow_partials :
// ALL-NEXT:      nn.matmul %y, %w narrow_partials :
// AUTO-NEXT:     nn.matmul %y, %w :
// CHECK-NEXT:    nn.reduce
// CHECK-NEXT:    nn.matmul %z, %z :
func.func @main(%x: tensor<4x64xf16>, %v: tensor<64x4xf16>, %y: tensor<4x512xf16>, %w: tensor<512x4xf16>, %z: tensor<4x4xf32>) -> (tensor<4x4xf16>, tensor<4x4xf16>, tensor<4xf16>, tensor<4x4xf32>) {
  %0 = nn.matmul %x, %v : (tensor<4x64xf16>, tensor<64x4xf16>) -> tensor<4x4xf16>
  %1 = nn.matmul %y, %w : (tensor<4x512xf16>, tensor<512x4xf16>) -> tensor<4x4xf16>
  %2 = nn.reduce "sum" %0 axes [1] : (tensor<4x4xf16>) -> tensor<4xf16>
  %3 = nn.matmul %z, %z : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %0, %1, %2, %3 : tensor<4x4xf16>, tensor<4x4xf16>, tensor<4xf16>, tensor<4x4xf32>
}
