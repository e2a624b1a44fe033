import ast

from sources import files, imports_in, imports_of, text_of


def test_imports_are_found_wherever_they_stand():
    places = {
        "if x:\n    {}\nelif y:\n    {}\nelse:\n    {}": 3,
        "try:\n    {}\nexcept E:\n    {}\nelse:\n    {}\nfinally:\n    {}": 4,
        "try:\n    {}\nexcept* E:\n    {}": 2,
        "for x in y:\n    {}\nelse:\n    {}": 2,
        "while x:\n    {}\nelse:\n    {}": 2,
        "with x:\n    {}": 1,
        "match x:\n    case 1:\n        {}\n    case _:\n        {}": 2,
        "class C:\n    def f(self):\n        {}": 1,
        "async def f():\n    async with x:\n        {}\n    async for x in y:\n        {}": 2,
        "{}; {}": 2,
    }
    for text, count in places.items():
        for line in ("import a.b", "from . import c as d"):
            assert len(imports_of(text.replace("{}", line))) == count, text


def test_as_many_are_found_as_in_a_walk_through_everything():
    for path in files("passes"):
        tree = ast.parse(text_of(path))
        walked = [each for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom)]
        assert len(imports_in(path)) == len(walked), path
