"""Functional principal components: one estimator, and the eigenbases it is made of."""

from fdadp.fpca.basis import Eigenbasis
from fdadp.fpca.dense import dense_eigenbasis
from fdadp.fpca.face import FaceSmoother, face_eigenbasis, face_smooth

__all__ = [
    "Eigenbasis",
    "FaceSmoother",
    "dense_eigenbasis",
    "face_eigenbasis",
    "face_smooth",
]
