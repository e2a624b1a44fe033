// RUN: abele opt %s -p convert-tile-to-exchange | filecheck %s

// A variable takes its address from the allocator's attribute, and each operation gets its name of
// the dialect exchange and keeps what else it has.
//
// CHECK-NOT:   tile.
// CHECK:       exchange.variable @x at 0 : tensor<8xf32> layout <[8 by 2] (d0) of [8]>
// CHECK-NEXT:  exchange.variable @in at 16 : tensor<8xf32> layout <[8 by 4] (d0) of [8]> state{{$}}
// CHECK-NEXT:  exchange.variable @y at 24 : {{.*}}
// CHECK-NEXT:  func.func @main() {
// CHECK-NEXT:    exchange.superstep @host {
// CHECK-NEXT:      exchange.sync "external"
// CHECK-NEXT:      exchange.input "x" -> @x : tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    exchange.superstep @relu {
// CHECK-NEXT:      exchange.sync "internal"
// CHECK-NEXT:      exchange.move [@x] -> @in
// CHECK-NEXT:      exchange.compute {{.*}} body <relu> plan <split [4]> reads [@in] writes @y
// CHECK-NEXT:    }
// CHECK-NEXT:    exchange.superstep @host.1 {
// CHECK-NEXT:      exchange.sync "external"
// CHECK-NEXT:      exchange.output @y -> "y" : tensor<8xf32>
// CHECK-NEXT:    }
// CHECK-NOT:   tile.
#halves = #abele.layout<[8 by 2] (d0) of [8]>
#quarters = #abele.layout<[8 by 4] (d0) of [8]>
#each = #abele.space<[i = 8] (i) of [8] -> (i) of [8]>

builtin.module attributes {abele.target = "tiny:4"} {
  tile.variable @x : tensor<8xf32> layout #halves {address = 0 : i64}
  tile.variable @in : tensor<8xf32> layout #quarters state {address = 16 : i64}
  tile.variable @y : tensor<8xf32> layout #quarters {address = 24 : i64}
  func.func @main() {
    tile.superstep @host {
      tile.sync "external"
      tile.input "x" -> @x : tensor<8xf32>
    }
    tile.superstep @relu {
      tile.sync "internal"
      tile.copy [@x] -> @in
      tile.vertices space #each body <relu> plan <split [4]> reads [@in] writes @y
    }
    tile.superstep @host.1 {
      tile.sync "external"
      tile.output @y -> "y" : tensor<8xf32>
    }
    func.return
  }
}
