// RUN: abele opt %s -p convert-partition-to-tile --split-input-file | filecheck %s

// Each value becomes a variable in its layout, named after the operation that makes it. A relayout
// becomes a copy, a compute becomes a compute set, a reshape becomes nothing.
//
// CHECK:       tile.variable @image : tensor<8xf32> layout <[8 by 2] (d0) of [8]>
// CHECK-NEXT:  tile.variable @moved : tensor<8xf32> layout <[8 by 4] (d0) of [8]>
// CHECK-NEXT:  tile.variable @relu : tensor<8xf32> layout <[8 by 4] (d0) of [8]>
// CHECK-NOT:   tile.variable
// CHECK:       func.func @main() {
// CHECK-NEXT:    tile.input "image" -> @image : tensor<8xf32>
// CHECK-NEXT:    tile.copy [@image] -> @moved
// CHECK-NEXT:    tile.compute_set @relu {
// CHECK-NEXT:      tile.vertices {{.*}} body <relu> plan <split [4]> reads [@moved] writes @relu
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.output @relu -> "result" : tensor<2x4xf32>
// CHECK-NEXT:    func.return
#halves = #abele.layout<[8 by 2] (d0) of [8]>
#quarters = #abele.layout<[8 by 4] (d0) of [8]>
#each = #abele.space<[i = 8] (i) of [8] -> (i) of [8]>

builtin.module attributes {abele.target = "tiny:4"} {
  func.func @main(%x: !partition.tensor<8xf32, #halves>) -> !partition.tensor<2x4xf32, #quarters>
      attributes {arg_names = ["image"], result_names = ["result"]} {
    %0 = partition.relayout(%x) : (!partition.tensor<8xf32, #halves>)
      -> !partition.tensor<8xf32, #quarters> loc("moved")
    %1 = partition.compute(%0) space #each body <relu> plan <split [4]>
      : (!partition.tensor<8xf32, #quarters>) -> !partition.tensor<8xf32, #quarters> loc("relu")
    %2 = partition.reshape %1
      : !partition.tensor<8xf32, #quarters> -> !partition.tensor<2x4xf32, #quarters>
    func.return %2 : !partition.tensor<2x4xf32, #quarters>
  }
}

// -----

// A loop carries two values in variables of its own, which swap places. A copy must not read what
// another copy has overwritten, so both go through new variables.
//
// CHECK:       func.func @main() {
// CHECK-NEXT:    tile.input "a" -> @a
// CHECK-NEXT:    tile.input "b" -> @b
// CHECK-NEXT:    tile.copy [@a] -> @loop
// CHECK-NEXT:    tile.copy [@b] -> @loop.1
// CHECK-NEXT:    control.repeat 3
// CHECK-NEXT:      tile.copy [@loop.1] -> @swap
// CHECK-NEXT:      tile.copy [@loop] -> @swap.1
// CHECK-NEXT:      tile.copy [@swap] -> @loop
// CHECK-NEXT:      tile.copy [@swap.1] -> @loop.1
// CHECK-NEXT:      control.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.output @loop -> "x"
// CHECK-NEXT:    tile.output @loop.1 -> "y"
#halves = #abele.layout<[4 by 2] (d0) of [4]>

builtin.module attributes {abele.target = "tiny:2"} {
  func.func @main(%a: !partition.tensor<4xf32, #halves>, %b: !partition.tensor<4xf32, #halves>)
      -> (!partition.tensor<4xf32, #halves>, !partition.tensor<4xf32, #halves>)
      attributes {arg_names = ["a", "b"], result_names = ["x", "y"]} {
    %0, %1 = control.repeat 3 (%a, %b)
      : (!partition.tensor<4xf32, #halves>, !partition.tensor<4xf32, #halves>)
      -> (!partition.tensor<4xf32, #halves>, !partition.tensor<4xf32, #halves>) {
    ^bb0(%p: !partition.tensor<4xf32, #halves>, %q: !partition.tensor<4xf32, #halves>):
      control.yield %q, %p
        : !partition.tensor<4xf32, #halves>, !partition.tensor<4xf32, #halves> loc("swap")
    } loc("loop")
    func.return %0, %1 : !partition.tensor<4xf32, #halves>, !partition.tensor<4xf32, #halves>
  }
}
