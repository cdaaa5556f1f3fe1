"""Certificates of what was released: for paper, for machines, and for OpenDP's registry of deployments."""

from __future__ import annotations

from fdadp.privacy.certificate.certificate import ABOUT, Certificate

__all__ = ["ABOUT", "Certificate"]
