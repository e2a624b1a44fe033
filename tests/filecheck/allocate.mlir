// RUN: abele opt %s -p allocate | filecheck %s

// A state lives all the time and has its bytes alone. The results overwrite what they are computed
// from, element by element, so the rest shares one address.
//
// CHECK:       tile.variable @state {{.*}} state {address = [[STATE:[0-9]+]] : i64}
// CHECK-NOT:   address = [[STATE]] : i64
// CHECK:       tile.variable @x {{.*}} {address = [[SHARED:[0-9]+]] : i64}
// CHECK-NEXT:  tile.variable @y {{.*}} {address = [[SHARED]] : i64}
// CHECK-NEXT:  tile.variable @z {{.*}} {address = [[SHARED]] : i64}
// CHECK-NOT:   tile.variable
#quarters = #abele.layout<[8 by 4] (d0) of [8]>
#each = #abele.space<[i = 8] (i) of [8] -> (i) of [8]>
#pairs = #abele.space<[i = 8] (i) of [8], (i) of [8] -> (i) of [8]>

builtin.module attributes {abele.target = "tiny:4"} {
  tile.variable @state : tensor<8xf32> layout #quarters state
  tile.variable @x : tensor<8xf32> layout #quarters
  tile.variable @y : tensor<8xf32> layout #quarters
  tile.variable @z : tensor<8xf32> layout #quarters
  func.func @main() {
    tile.input "x" -> @x : tensor<8xf32> {superstep = 0 : i64}
    tile.compute_set @first {
      tile.vertices space #each body <relu> plan <split [4]> reads [@x] writes @y
    } {superstep = 1 : i64}
    tile.compute_set @second {
      tile.vertices space #pairs body <add> plan <split [4]> reads [@y, @state] writes @z
    } {superstep = 2 : i64}
    tile.output @z -> "z" : tensor<8xf32> {superstep = 3 : i64}
    func.return
  }
}
