"""A training step of convolutions and tanh, as text of nn."""


def training_step(layers: int, channels: int, side: int) -> str:
    """A program that computes the weight gradients of `layers` 3 by 3 convolutions.

    The loss is the squared distance from a target. The values of the forward pass, convI and
    tanhI, wait for the backward pass.
    """
    image = f"tensor<1x{channels}x{side}x{side}xf32>"
    kernel = f"tensor<{channels}x{channels}x3x3xf32>"
    as_is = "stride [1, 1] dilation [1, 1] pad [1, 1]"
    numbers = range(1, layers + 1)
    body: list[str] = []
    for i in numbers:
        body += [
            f"%z{i} = nn.conv %a{i - 1}, %w{i} {as_is} to [1, 1]"
            f' : ({image}, {kernel}) -> {image} loc("conv{i}")',
            f'%a{i} = nn.tanh %z{i} : ({image}) -> {image} loc("tanh{i}")',
        ]
    body.append(
        f'%g{layers} = nn.sub %a{layers}, %target : ({image}, {image}) -> {image} loc("loss")'
    )
    for i in reversed(numbers):
        body += [
            f'%q{i} = nn.square %a{i} : ({image}) -> {image} loc("square{i}")',
            f'%n{i} = nn.neg %q{i} : ({image}) -> {image} loc("neg{i}")',
            f'%s{i} = nn.shift %n{i} by 1.0 : ({image}) -> {image} loc("slope{i}")',
            f'%h{i} = nn.mul %g{i}, %s{i} : ({image}, {image}) -> {image} loc("back{i}")',
            f"%d{i} = nn.conv_weight_grad %a{i - 1}, %h{i} kernel [3, 3] {as_is}"
            f' : ({image}, {image}) -> {kernel} loc("wgrad{i}")',
        ]
        if i > 1:
            body.append(
                f"%g{i - 1} = nn.conv_input_grad %h{i}, %w{i} size [{side}, {side}] {as_is}"
                f' : ({image}, {kernel}) -> {image} loc("igrad{i}")'
            )
    weights = ", ".join(f"%w{i}: {kernel}" for i in numbers)
    gradients = ", ".join(f"%d{i}" for i in numbers)
    types = ", ".join(kernel for _ in numbers)
    return f"""
builtin.module {{
  func.func @main(%a0: {image}, %target: {image}, {weights}) -> ({types}) {{
    {(chr(10) + "    ").join(body)}
    func.return {gradients} : {types}
  }}
}}
"""


def with_phases(text: str, layers: int) -> str:
    """The same program as one that says which operations belong to the backward pass."""
    for name in ("square", "neg", "slope", "back", "wgrad", "igrad"):
        for i in range(1, layers + 1):
            text = text.replace(f'loc("{name}{i}")', f'loc("{name}{i}/backward")')
    return text.replace("builtin.module", "builtin.module attributes {abele.forward = []}")
