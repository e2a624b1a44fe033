// RUN: abele opt %s -p schedule-supersteps | filecheck %s

// The host has supersteps of its own. The second copy reads what the first writes, so it waits for
// the next superstep, which the compute set joins and ends. The order stays.
//
// CHECK:       tile.input "x" -> @x : tensor<8xf32> {superstep = [[HOST:[0-9]+]] : i64}
// CHECK-NEXT:  tile.copy [@x] -> @in {superstep = [[FIRST:[0-9]+]] : i64}
// CHECK-NOT:   superstep = [[FIRST]]
// CHECK:       tile.copy [@in] -> @again {superstep = [[SECOND:[0-9]+]] : i64}
// CHECK-NEXT:  tile.compute_set @relu {
// CHECK-NEXT:    tile.vertices
// CHECK-NEXT:  } {superstep = [[SECOND]] : i64}
// CHECK-NOT:   superstep = [[SECOND]]
// CHECK:       tile.copy [@y] -> @x {superstep = [[THIRD:[0-9]+]] : i64}
// CHECK-NOT:   superstep = [[THIRD]]
// CHECK:       tile.output @x -> "y"
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
    tile.copy [@y] -> @x
    tile.output @x -> "y" : tensor<8xf32>
    func.return
  }
}
