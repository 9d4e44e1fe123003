"""A disk whose syncs fail in mid-send: the worker must end at once, and what it had claimed is recovered."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.crash.scenes import NotHere, Stage
from tests.crash.world import PROGRAM

SOURCE = Path(__file__).with_name("failing_sync.c")


class FailingDisk:
    """Settings for a program under which syncs fail while ``broken``."""

    def __init__(self, folder: Path) -> None:
        library = folder / "failing_sync.so"
        command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True)
        self._mark = folder / "syncs-fail"
        self.settings = {"LD_PRELOAD": str(library), "SYNC_FAILS": str(self._mark)}

    def break_down(self) -> None:
        self._mark.touch()

    def mend(self) -> None:
        self._mark.unlink()


def failed_sync(stage: Stage) -> None:
    """Three workers in a row meet a disk that fails under them."""
    world = stage.world
    if not world.database_url.startswith("sqlite"):
        raise NotHere("a PostgreSQL server ends by itself when a sync fails")
    if shutil.which("gcc") is None:
        raise NotHere("gcc is not installed: apt-get install gcc")
    disk = FailingDisk(world.directory)
    for _ in range(3):
        worker = world.worker(program=PROGRAM, **disk.settings)
        if not stage.sending(worker):
            break
        stage.linger()
        disk.break_down()
        code = worker.wait()
        disk.mend()
        assert code == 1, f"it ended with {code}: {worker.log.read_text()[-2000:]}"
