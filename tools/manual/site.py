"""Hooks of mkdocs for the documentation site, which add the pages that are not in docs/.

They are the README, CONTRIBUTING and CHANGELOG, one page of Python reference per module of
docs/public.md, and one page per source file that another page links to.
"""

from __future__ import annotations

import re
from importlib import import_module
from inspect import signature
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import cast

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]

ROOT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages of the site that are files of the repository's root."""

WITH_FIELDS = "with_fields_of"
"""The decorator of a function whose parameters are the fields of a dataclass."""

PACKAGES = ("ir", "dialects", "backends", "passes", "tools")

MODULE = re.compile(r"^\| `(abele[\w.]+)` \| (.+) \|$", re.MULTILINE)
"""A row of docs/public.md: a module and its public names."""

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
"""The target of a Markdown link to a file, and its anchor."""

LANGUAGES = {".py": "python", ".rw": "rw", ".csv": "text", ".json": "json", ".toml": "toml"}


def on_startup(**_: object) -> None:
    """Link the packages below one folder `abele`, where mkdocstrings reads them.

    This hook comes first: mkdocstrings checks once whether the folder exists.
    """
    folder = ROOT / "build" / "api" / "abele"
    folder.mkdir(parents=True, exist_ok=True)
    for name in PACKAGES:
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the Python reference in the navigation."""
    for entry in cast("list[str | dict[str, object]]", config.nav or []):
        if isinstance(entry, dict) and "Python API" in entry:
            entry["Python API"] = ["public.md", *(f"api/{module}.md" for module in _public())]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    made = {page: _root_page(name) for name, page in ROOT_PAGES.items()}
    made |= {f"api/{module}.md": _api_page(module, names) for module, names in _public().items()}
    texts = {file.src_uri: file.content_string for file in files.documentation_pages()}
    linked = {path for uri, text in (texts | made).items() for path in _sources_in(text, uri)}
    made |= {f"source/{path}.md": _source_page(path) for path in sorted(linked)}
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Redirect links to files of the repository to their pages."""
    uri = page.file.src_uri

    def target(found: re.Match[str]) -> str:
        path, anchor = _repository_path(found[1], uri), found[2] or ""
        if path in ROOT_PAGES:
            leads_to = ROOT_PAGES[path]
        elif _is_source(path):
            leads_to = f"source/{path}.md"
            anchor = re.sub(r"^#(L\d+)$", r' "\1"', anchor)
        else:
            return found[0]
        return relpath(leads_to, PurePosixPath(uri).parent) + anchor

    return LINK.sub(target, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Redirect links to lines of source files to these lines.

    mkdocs looks for anchors before the code is highlighted, so until then the title has the line.
    """
    return re.sub(r'href="([^"#]+)" title="L(\d+)"', r'href="\1#__codelineno-0-\2"', html)


class FieldsAsParameters(griffe.Extension):
    """Shows the parameters of a function that a decorator makes of the fields of a dataclass."""

    def on_function(self, *, func: griffe.Function, **_: object) -> None:
        """Give a decorated function its parameters."""
        if any(str(each.value).startswith(WITH_FIELDS) for each in func.decorators):
            _take_parameters(func)


def _take_parameters(func: griffe.Function) -> None:
    """Give a function the parameters and the docstring that it has once it is decorated."""
    made = getattr(import_module(func.module.path), func.name)
    func.parameters = griffe.Parameters(
        *(
            griffe.Parameter(
                each.name,
                annotation=str(each.annotation),
                kind=griffe.ParameterKind(each.kind.description),
                default=None if each.default is each.empty else repr(each.default),
            )
            for each in signature(made).parameters.values()
        )
    )
    func.docstring = griffe.Docstring(made.__doc__ or "", parent=func)


def _public() -> dict[str, list[str]]:
    """The public names of each module, as docs/public.md lists them."""
    text = (ROOT / "docs" / "public.md").read_text(encoding="utf-8")
    return {module: re.findall(r"`(\w+)`", names) for module, names in MODULE.findall(text)}


def _api_page(module: str, names: list[str]) -> str:
    return f"# {module}\n\n" + "".join(_entry(module, name) for name in names)


def _entry(module: str, name: str) -> str:
    """The entry of a public name. A class of xDSL is named: its own documentation describes it."""
    made = getattr(import_module(module), name)
    home = made.__module__ if isinstance(made, type) else module
    if home.partition(".")[0] != "xdsl":
        return f"::: {module}.{name}\n\n"
    return f"## {name} {{#{module}.{name}}}\n\nThe class `{home}.{made.__qualname__}` of xDSL.\n\n"


def _root_page(name: str) -> str:
    """A page of the repository's root, with links as if it were in docs/."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return LINK.sub(lambda found: relpath(found[1], "docs") + (found[2] or ""), text)


def _source_page(path: str) -> str:
    """A page that shows a source file, or lists the files of a folder."""
    place = ROOT / path
    if place.is_dir():
        names = sorted(each.name for each in place.iterdir() if each.suffix in LANGUAGES)
        return f"# {path}\n\n" + "".join(f"- `{name}`\n" for name in names)
    text, language = place.read_text(encoding="utf-8"), LANGUAGES.get(place.suffix, "text")
    return f'# {path}\n\n````{{.{language} linenums="1"}}\n{text}\n````\n'


def _sources_in(text: str, uri: str) -> set[str]:
    """The source files of the repository that a page links to."""
    found = (_repository_path(match[1], uri) for match in LINK.finditer(text))
    return {path for path in found if _is_source(path)}


def _repository_path(link: str, uri: str) -> str:
    """The path from the repository's root to the target of a link in docs/."""
    return normpath(f"docs/{PurePosixPath(uri).parent}/{link}")


def _is_source(path: str) -> bool:
    is_inside = not path.startswith(("docs/", "../")) and path not in ROOT_PAGES
    return is_inside and (ROOT / path).exists()
