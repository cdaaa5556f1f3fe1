"""The smallest model there is that has files: moments of rows. Tests of files are about any kind of model."""

from __future__ import annotations

import os
from pathlib import Path

from fdadp.files.npz_files import Layout, complete
from fdadp.solve.form.training_sums import Moments

LAYOUT = Layout("moments", {"mean": "q", "scatter": "q q"})


class StoredMoments(Moments):
    def save(self, path: str | os.PathLike[str]) -> Path:
        return LAYOUT.write(path, {"n": self.n}, {"mean": self.mean, "scatter": self.scatter})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StoredMoments:
        content, arrays = LAYOUT.read(path)
        with complete(path, "moments"):
            return cls(int(content["n"]), arrays["mean"], arrays["scatter"])
