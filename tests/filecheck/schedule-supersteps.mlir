// RUN: abele opt %s -p schedule-supersteps | filecheck %s

// The host has supersteps of its own. The second copy reads what the first writes, so it waits for
// the next superstep, which the first compute set joins and ends. The last copy overwrites what the
// one before it reads, so it waits, too. The order stays.
//
// CHECK:       tile.input "x" -> @x : tensor<8xf32> {superstep = 1 : i64}
// CHECK-NEXT:  tile.copy [@x] -> @in {superstep = 2 : i64}
// CHECK-NEXT:  tile.copy [@in] -> @again {superstep = 3 : i64}
// CHECK-NEXT:  tile.compute_set @relu {
// CHECK-NEXT:    tile.vertices
// CHECK-NEXT:  } {superstep = 3 : i64}
// CHECK-NEXT:  tile.compute_set @neg {
// CHECK-NEXT:    tile.vertices
// CHECK-NEXT:  } {superstep = 4 : i64}
// CHECK-NEXT:  tile.copy [@y] -> @x {superstep = 5 : i64}
// CHECK-NEXT:  tile.copy [@again] -> @y {superstep = 6 : i64}
// CHECK-NEXT:  tile.output @x -> "y" : tensor<8xf32> {superstep = 7 : i64}
// CHECK-NEXT:  tile.output @again -> "z" : tensor<8xf32> {superstep = 7 : i64}
#halves = #abele.layout<[8 by 2] (d0) of [8]>
#quarters = #abele.layout<[8 by 4] (d0) of [8]>
#each = #abele.space<[i = 8] (i) of [8] -> (i) of [8]>

builtin.module attributes {abele.target = "tiny:4"} {
  tile.variable @x : tensor<8xf32> layout #halves
  tile.variable @in : tensor<8xf32> layout #quarters
  tile.variable @again : tensor<8xf32> layout #halves
  tile.variable @y : tensor<8xf32> layout #quarters
  func.func @main() {
    tile.input "x" -> @x : tensor<8xf32>
    tile.copy [@x] -> @in
    tile.copy [@in] -> @again
    tile.compute_set @relu {
      tile.vertices space #each body <relu> plan <split [4]> reads [@in] writes @y
    }
    tile.compute_set @neg {
      tile.vertices space #each body <neg> plan <split [4]> reads [@in] writes @y
    }
    tile.copy [@y] -> @x
    tile.copy [@again] -> @y
    tile.output @x -> "y" : tensor<8xf32>
    tile.output @again -> "z" : tensor<8xf32>
    func.return
  }
}
