"""Programs whose functions call each other, at nn."""

from random import Random

T = "tensor<4xf32>"


def function(name: str, lines: list[str], result: str) -> str:
    body = "\n".join(lines)
    return f"func.func @{name}(%x: {T}) -> {T} {{\n{body}\nfunc.return {result} : {T}\n}}\n"


def call(result: str, callee: str, operand: str) -> str:
    return f"{result} = func.call @{callee}({operand}) : ({T}) -> {T}"


def doubling(depth: int) -> str:
    """Each function calls the next one twice, so the last one is called 2**depth times."""
    made = [
        function(f"f{i}", [call("%0", f"f{i + 1}", "%x"), call("%1", f"f{i + 1}", "%0")], "%1")
        for i in range(depth)
    ]
    made.append(function(f"f{depth}", [f"%0 = nn.neg %x : ({T}) -> {T}"], "%0"))
    made.append(function("main", [call("%0", "f0", "%x")], "%0"))
    return "".join(made)


def random_calls(seed: int) -> str:
    """Some functions that call later ones, with loops and branches around some calls."""
    random = Random(seed)
    count = random.randint(1, 4)
    made: list[str] = []
    for i in [*range(count), -1]:
        lines: list[str] = []
        now = "%x"
        for k in range(random.randint(1, 4)):
            callees = [f"f{j}" for j in range(i + 1, count)]
            name = f"%v{k}"
            if callees and random.random() < 0.7:
                line = call(name, random.choice(callees), now)
            else:
                line = f"{name} = nn.{random.choice(('neg', 'abs', 'relu'))} {now} : ({T}) -> {T}"
            if random.random() < 0.3:
                inner = line.replace(f"{name} =", f"%i{k} =", 1).replace(now, f"%a{k}", 1)
                line = (
                    f"{name} = control.repeat {random.randint(0, 3)} ({now}) : ({T}) -> ({T}) {{\n"
                    f"^bb0(%a{k}: {T}):\n{inner}\ncontrol.yield %i{k} : {T}\n}}"
                )
            lines.append(line)
            now = name
        made.append(function("main" if i < 0 else f"f{i}", lines, now))
    return "".join(made)
