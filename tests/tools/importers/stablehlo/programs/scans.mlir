#loc = loc(unknown)
#loc1 = loc("x")
#loc3 = loc("make_programs.py":436:15 to :42)
#loc4 = loc("make_programs.py":449:4 to :22)
#loc6 = loc("make_programs.py":192:48 to :64)
#loc9 = loc("reduce_window_sum")
#loc11 = loc("reduce_window")
#loc13 = loc("reduce_window_max")
#loc15 = loc("main"(#loc3))
#loc16 = loc("<module>"(#loc4))
#loc18 = loc("scans"(#loc6))
#loc21 = loc("reduce_window_sum:"(#loc9))
#loc23 = loc("reduce_window:"(#loc11))
#loc24 = loc("reduce_window_max:"(#loc13))
#loc25 = loc(callsite(#loc15 at #loc16))
#loc29 = loc(callsite(#loc18 at #loc25))
#loc35 = loc("jit(scans)"(#loc29))
"builtin.module"() <{sym_name = "jit_scans"}> ({
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<3x7xf32>) -> (tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg11: tensor<3x7xf32> loc("x")):
    %13 = "func.call"(%arg11) <{callee = @cumsum}> : (tensor<3x7xf32>) -> tensor<3x7xf32> loc(#loc33)
    %14 = "func.call"(%arg11) <{callee = @cumprod}> : (tensor<3x7xf32>) -> tensor<3x7xf32> loc(#loc34)
    %15 = "func.call"(%arg11) <{callee = @cummax}> : (tensor<3x7xf32>) -> tensor<3x7xf32> loc(#loc35)
    %16 = "func.call"(%arg11) <{callee = @cumsum}> : (tensor<3x7xf32>) -> tensor<3x7xf32> loc(#loc36)
    %17 = "stablehlo.reverse"(%16) <{dimensions = array<i64: 1>}> : (tensor<3x7xf32>) -> tensor<3x7xf32> loc(#loc37)
    "func.return"(%13, %14, %15, %17) : (tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>) -> () loc(#loc32)
  }) : () -> () loc(#loc)
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<3x7xf32>) -> tensor<3x7xf32>, res_attrs = [{}], sym_name = "cumsum", sym_visibility = "private"}> ({
  ^bb0(%arg10: tensor<3x7xf32> loc(unknown)):
    %12 = "func.call"(%arg10) <{callee = @cumsum_0}> : (tensor<3x7xf32>) -> tensor<3x7xf32> loc(#loc)
    "func.return"(%12) : (tensor<3x7xf32>) -> () loc(#loc)
  }) : () -> () loc(#loc40)
  "func.func"() <{function_type = (tensor<3x7xf32>) -> tensor<3x7xf32>, sym_name = "cumsum_0", sym_visibility = "private"}> ({
  ^bb0(%arg7: tensor<3x7xf32> loc(unknown)):
    %8 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32> loc(#loc9)
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32> loc(#loc9)
    %10 = "stablehlo.reduce_window"(%arg7, %9) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [6, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 7>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg8: tensor<f32> loc("reduce_window_sum:"(#loc9)), %arg9: tensor<f32> loc("reduce_window_sum:"(#loc9))):
      %11 = "stablehlo.add"(%arg8, %arg9) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc(#loc9)
      "stablehlo.return"(%11) : (tensor<f32>) -> () loc(#loc9)
    }) : (tensor<3x7xf32>, tensor<f32>) -> tensor<3x7xf32> loc(#loc9)
    "func.return"(%10) : (tensor<3x7xf32>) -> () loc(#loc)
  }) : () -> () loc(#loc)
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<3x7xf32>) -> tensor<3x7xf32>, res_attrs = [{}], sym_name = "cumprod", sym_visibility = "private"}> ({
  ^bb0(%arg6: tensor<3x7xf32> loc(unknown)):
    %7 = "func.call"(%arg6) <{callee = @cumprod_1}> : (tensor<3x7xf32>) -> tensor<3x7xf32> loc(#loc)
    "func.return"(%7) : (tensor<3x7xf32>) -> () loc(#loc)
  }) : () -> () loc(#loc41)
  "func.func"() <{function_type = (tensor<3x7xf32>) -> tensor<3x7xf32>, sym_name = "cumprod_1", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<3x7xf32> loc(unknown)):
    %4 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32> loc(#loc22)
    %5 = "stablehlo.reduce_window"(%arg3, %4) <{base_dilations = array<i64: 1, 1>, padding = dense<[[2, 0], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg4: tensor<f32> loc("reduce_window:"(#loc11)), %arg5: tensor<f32> loc("reduce_window:"(#loc11))):
      %6 = "stablehlo.multiply"(%arg4, %arg5) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc(#loc12)
      "stablehlo.return"(%6) : (tensor<f32>) -> () loc(#loc11)
    }) : (tensor<3x7xf32>, tensor<f32>) -> tensor<3x7xf32> loc(#loc11)
    "func.return"(%5) : (tensor<3x7xf32>) -> () loc(#loc)
  }) : () -> () loc(#loc)
  "func.func"() <{function_type = (tensor<3x7xf32>) -> tensor<3x7xf32>, sym_name = "cummax", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<3x7xf32> loc("jit(scans)"(#loc29))):
    %0 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32> loc(#loc26)
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<f32> loc(#loc26)
    %2 = "stablehlo.reduce_window"(%arg0, %1) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [6, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 7>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32> loc("reduce_window_max:"(#loc13)), %arg2: tensor<f32> loc("reduce_window_max:"(#loc13))):
      %3 = "stablehlo.maximum"(%arg1, %arg2) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc(#loc26)
      "stablehlo.return"(%3) : (tensor<f32>) -> () loc(#loc26)
    }) : (tensor<3x7xf32>, tensor<f32>) -> tensor<3x7xf32> loc(#loc26)
    "func.return"(%2) : (tensor<3x7xf32>) -> () loc(#loc35)
  }) : () -> () loc(#loc35)
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> () loc(#loc)
#loc2 = loc("make_programs.py":192:11 to :27)
#loc5 = loc("make_programs.py":192:29 to :46)
#loc7 = loc("make_programs.py":192:66 to :82)
#loc8 = loc("make_programs.py":192:66 to :91)
#loc10 = loc("cumprod")
#loc12 = loc("mul")
#loc14 = loc("scans"(#loc2))
#loc17 = loc("scans"(#loc5))
#loc19 = loc("scans"(#loc7))
#loc20 = loc("scans"(#loc8))
#loc22 = loc("cumprod:"(#loc10))
#loc26 = loc("reduce_window_max"(#loc18))
#loc27 = loc(callsite(#loc14 at #loc25))
#loc28 = loc(callsite(#loc17 at #loc25))
#loc30 = loc(callsite(#loc19 at #loc25))
#loc31 = loc(callsite(#loc20 at #loc25))
#loc32 = loc("jit(scans)"(#loc25))
#loc33 = loc("jit(scans)/jit(cumsum)"(#loc27))
#loc34 = loc("jit(scans)/jit(cumprod)"(#loc28))
#loc36 = loc("jit(scans)/jit(cumsum)"(#loc30))
#loc37 = loc("jit(scans)/rev"(#loc31))
#loc38 = loc("jit(scans)/jit"(#loc27))
#loc39 = loc("jit(scans)/jit"(#loc28))
#loc40 = loc("jit:"(#loc38))
#loc41 = loc("jit:"(#loc39))
