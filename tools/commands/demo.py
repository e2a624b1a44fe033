"""abele demo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...backends.target import resolve_target
from ..debug.health import health
from ..debug.run_check import check_run
from ..driver.compile import compiled
from ..driver.executable import MACHINE
from ..driver.files import check_files
from ..driver.profile_file import write_profile
from ..driver.stages import CHECK
from ..views.scan.formats import check_format
from ..views.scan.needs import needs_libraries
from ..views.terminal import console
from ..views.user_errors import user_errors
from .arguments import ProfileFile
from .compiling import Compilation, compiles_with
from .doctor import tell
from .showing import figure, show
from .threads import ThreadCount, use_threads


@compiles_with("target", "passes", "load", "dump_ir", "verbose")
def demo(
    *,
    how: Compilation,
    profile: ProfileFile = None,
    scan: Annotated[
        Path | None, typer.Option(metavar="SCAN.png", help="Draw the vertices and edges here.")
    ] = None,
    threads: ThreadCount = None,
) -> None:
    """Compile AlexNet with seeded weights, run it on Mk2, check it, and print its cost.

    Ends with what `abele doctor` finds on this host.
    """
    with user_errors() as context:
        use_threads(threads)
        extensions = context.load(how.load)
        if how.target is not None:
            # Before the weights, which take seconds.
            resolve_target(how.target)
        check_files({}, {"--profile": profile, "--scan": scan})
        if scan is not None:
            needs_libraries()
            check_format(scan)
        with how.progress(extensions) as on_step:
            # onnx is an import of this command only: other commands run models without it.
            from .demo_network import demo_model  # noqa: PLC0415

            on_step("seed AlexNet's weights")
            model, values = demo_model()
            exe = compiled(replace(how.request("", extensions, on_step), model=model, cache=False))
            on_step("run")
            results = exe.run(values)
            on_step(CHECK)
            with exe.stages.timed("check"):
                verdict = check_run(exe, values, results, MACHINE, on_step)
            on_step("figures")
            figure(exe)
            if profile is not None:
                write_profile(profile, exe)
            if scan is not None:
                from .demo_network import draw_demo  # noqa: PLC0415

                draw_demo(exe, model, scan, on_step)
        show(exe, "AlexNet, seeded weights, one image", verdict)
        if scan is not None:
            console().print(f"{scan} shows all its vertices and edges", highlight=False)
        tell(health())
