// RUN: abele opt %s -p 'round-stores{target=mk2}' --split-input-file | filecheck %s --check-prefixes=CHECK,MK2
// RUN: abele opt %s -p 'round-stores{rounding=nearest overflow=nan}' --split-input-file | filecheck %s --check-prefixes=CHECK,NEAREST

// A result becomes float32, and a rounding and a cast follow it. Random words decide: they depend on
// two states and on the place of the element, and each run counts.
//
// MK2:             nn.state @rounding.seed : tensor<f32>
// MK2:             nn.state @rounding.step : tensor<f32>
// CHECK-LABEL:     func.func @main
// MK2-DAG:           %[[SEED:[0-9]+]] = nn.load @rounding.seed
// MK2-DAG:           %[[STEP:[0-9]+]] = nn.load @rounding.step
// MK2-DAG:           %[[ROW:[0-9]+]] = nn.iota start 0 steps [0] : tensor<4xf32>
// MK2-DAG:           %[[COLUMN:[0-9]+]] = nn.iota start 0 steps [1] : tensor<4xf32>
// CHECK:             %[[SUM:[0-9]+]] = nn.add %x, %y {group = 0 : i64} : {{.*}} -> tensor<4xf32>
// MK2-NEXT:          %[[ROUNDED:[0-9]+]] = nn.stochastic %[[SUM]], %[[COLUMN]], %[[ROW]], %[[STEP]], %[[SEED]] key
// MK2-SAME:              digits 11.0 least -14.0 largest 65504.0 overflow 1.0
// MK2-NEXT:              {group = 0 : i64}
// NEAREST-NEXT:      %[[ROUNDED:[0-9]+]] = nn.to_nearest %[[SUM]] digits 11.0 least -14.0 largest 65504.0
// NEAREST-SAME:          overflow 2.0 {group = 0 : i64}
// CHECK:             %[[NARROW:[0-9]+]] = nn.cast %[[ROUNDED]] {group = 0 : i64} : {{.*}} -> tensor<4xf16>
// MK2:               %[[NEXT:[0-9]+]] = nn.shift %[[STEP]] by 1.0
// MK2:               %[[COUNTED:[0-9]+]] = nn.gate %{{[0-9]+}}, %[[NEXT]]
// MK2-NEXT:          nn.store %[[COUNTED]], @rounding.step
// MK2:               %[[CHOSEN:[0-9]+]] = nn.max %{{[0-9]+}}, %[[SEED]]
// MK2-NEXT:          nn.store %[[CHOSEN]], @rounding.seed
// CHECK-NEXT:        func.return %[[NARROW]] : tensor<4xf16>
func.func @main(%x: tensor<4xf16>, %y: tensor<4xf16>) -> tensor<4xf16> {
  %0 = nn.add %x, %y : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  func.return %0 : tensor<4xf16>
}

// -----

// A group is rounded once, behind its last operation. A relu of rounded numbers needs no rounding.
//
// CHECK-LABEL:     func.func @main
// CHECK:             %[[PRODUCT:[0-9]+]] = nn.mul %x, %y {group = 0 : i64} : {{.*}} -> tensor<4xbf16>
// CHECK-NEXT:        %[[TANH:[0-9]+]] = nn.tanh %[[PRODUCT]] {group = 0 : i64} : {{.*}} -> tensor<4xf32>
// MK2-NEXT:          nn.stochastic %[[TANH]]
// NEAREST-NEXT:      nn.to_nearest %[[TANH]]
// CHECK:             %[[NARROW:[0-9]+]] = nn.cast {{.*}} {group = 0 : i64} : {{.*}} -> tensor<4xbf16>
// CHECK-NEXT:        nn.relu %[[NARROW]] : (tensor<4xbf16>) -> tensor<4xbf16>
func.func @main(%x: tensor<4xbf16>, %y: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = nn.mul %x, %y {group = 0} : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  %1 = nn.tanh %0 {group = 0} : (tensor<4xbf16>) -> tensor<4xbf16>
  %2 = nn.relu %1 : (tensor<4xbf16>) -> tensor<4xbf16>
  func.return %2 : tensor<4xbf16>
}
