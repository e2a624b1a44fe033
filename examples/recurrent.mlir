// A recurrent cell, iterated until its state settles. How often depends on the input.
//
// The settled state is kept, so that a second run starts where the first one ended:
//
//     abele run examples/recurrent.mlir --target tiny
//
// The program uses every kind of control flow: a function call, a repeat, an if and a while. The
// weights are in blobs/, each in a file named after its digest.
builtin.module {
  nn.state @hidden : tensor<1x8xf32> = <"b712481bed128dfa973fb9d7">
  nn.state @recurrent : tensor<8x8xf32> = <"5c07bf0421544bd47b74b604">
  nn.state @input : tensor<4x8xf32> = <"dad06da7aaf72aed04e0cebf">
  nn.state @bias : tensor<8xf32> = <"6575f29945585abb07f1ed30">

  // tanh(hidden * recurrent + drive)
  func.func @cell(%drive: tensor<1x8xf32>, %hidden: tensor<1x8xf32>, %recurrent: tensor<8x8xf32>) -> tensor<1x8xf32> {
    %0 = nn.matmul %hidden, %recurrent : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
    %1 = nn.add %0, %drive : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
    %2 = nn.tanh %1 : (tensor<1x8xf32>) -> tensor<1x8xf32>
    func.return %2 : tensor<1x8xf32>
  }

  func.func @main(%x: tensor<1x4xf32>) -> (tensor<1x8xf32>, tensor<1xi32>) attributes {arg_names = ["x"], result_names = ["hidden", "turns"]} {
    %start = nn.load @hidden : tensor<1x8xf32>
    %recurrent = nn.load @recurrent : tensor<8x8xf32>
    %input = nn.load @input : tensor<4x8xf32>
    %bias = nn.load @bias : tensor<8xf32>
    %one = nn.constant <"3865ad531cf0275851cb5b0d"> : tensor<1xi32>
    %none = nn.constant <"a4a8c913044c4cce3752b93a"> : tensor<1xi32>
    %unsettled = nn.constant <"9516fae5b70bdcb77c4e9e61"> : tensor<1xf32>
    %tolerance = nn.constant <"6f1bfa063849b5bae7f31790"> : tensor<1xf32>
    %large = nn.constant <"052393b85e78f1b1cd443cd1"> : tensor<1xf32>
    %0 = nn.matmul %x, %input : (tensor<1x4xf32>, tensor<4x8xf32>) -> tensor<1x8xf32>
    %drive = nn.add %0, %bias : (tensor<1x8xf32>, tensor<8xf32>) -> tensor<1x8xf32>
    %settled, %last, %turns = control.while (%start, %unsettled, %none) : (tensor<1x8xf32>, tensor<1xf32>, tensor<1xi32>) -> (tensor<1x8xf32>, tensor<1xf32>, tensor<1xi32>) {
    ^bb0(%h: tensor<1x8xf32>, %change: tensor<1xf32>, %turn: tensor<1xi32>):
      %more = nn.greater %change, %tolerance : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
      control.condition %more : tensor<1xi1>
    } do {
    ^bb0(%h: tensor<1x8xf32>, %change: tensor<1xf32>, %turn: tensor<1xi32>):
      %next = control.repeat 2 (%h) : (tensor<1x8xf32>) -> (tensor<1x8xf32>) {
      ^bb0(%state: tensor<1x8xf32>):
        %1 = func.call @cell(%drive, %state, %recurrent) : (tensor<1x8xf32>, tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32>
        control.yield %1 : tensor<1x8xf32>
      }
      %2 = nn.sub %next, %h : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
      %3 = nn.square %2 : (tensor<1x8xf32>) -> tensor<1x8xf32>
      %now = nn.reduce "sum" %3 axes [1] : (tensor<1x8xf32>) -> tensor<1xf32>
      // A large step is halved.
      %far = nn.greater %now, %large : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
      %kept = control.if %far : tensor<1xi1> -> (tensor<1x8xf32>) {
        %4 = nn.add %h, %next : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
        %5 = nn.scale %4 by 0.5 : (tensor<1x8xf32>) -> tensor<1x8xf32>
        control.yield %5 : tensor<1x8xf32>
      } else {
        control.yield %next : tensor<1x8xf32>
      }
      %count = nn.add %turn, %one : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
      control.yield %kept, %now, %count : tensor<1x8xf32>, tensor<1xf32>, tensor<1xi32>
    }
    nn.store %settled, @hidden : tensor<1x8xf32>
    func.return %settled, %turns : tensor<1x8xf32>, tensor<1xi32>
  }
}
