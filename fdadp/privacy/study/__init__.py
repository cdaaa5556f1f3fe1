"""Studies: budgets in files, made once by the custodian of the data, on which every fit draws."""

from __future__ import annotations

from fdadp.privacy.study.study_budget import Study

__all__ = ["Study"]
