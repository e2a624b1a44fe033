// RUN: abele opt %s -p group-supersteps | filecheck %s

// Operations of one number share a superstep, named after its compute set. Only those with the
// host sync with it.
//
// CHECK:       func.func @main() {
// CHECK-NEXT:    tile.superstep @host {
// CHECK-NEXT:      tile.sync "external"
// CHECK-NEXT:      tile.input "x" -> @x : tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.superstep @relu {
// CHECK-NEXT:      tile.sync "internal"
// CHECK-NEXT:      tile.copy [@x] -> @in
// CHECK-NEXT:      tile.vertices {{.*}} reads [@in] writes @y
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.superstep @host.1 {
// CHECK-NEXT:      tile.sync "external"
// CHECK-NEXT:      tile.output @y -> "y" : tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
#halves = #abele.layout<[8 by 2] (d0) of [8]>
#quarters = #abele.layout<[8 by 4] (d0) of [8]>
#each = #abele.space<[i = 8] (i) of [8] -> (i) of [8]>

builtin.module attributes {abele.target = "tiny:4"} {
  tile.variable @x : tensor<8xf32> layout #halves
  tile.variable @in : tensor<8xf32> layout #quarters
  tile.variable @y : tensor<8xf32> layout #quarters
  func.func @main() {
    tile.input "x" -> @x : tensor<8xf32> {superstep = 0 : i64}
    tile.copy [@x] -> @in {superstep = 1 : i64}
    tile.compute_set @relu {
      tile.vertices space #each body <relu> plan <split [4]> reads [@in] writes @y
    } {superstep = 1 : i64}
    tile.output @y -> "y" : tensor<8xf32> {superstep = 2 : i64}
    func.return
  }
}
