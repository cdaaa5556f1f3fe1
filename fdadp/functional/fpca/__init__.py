"""Functional principal components: one estimator, and the eigenbases it is made of."""

from fdadp.functional.fpca.eigenbasis import Eigenbasis, dense_eigenbasis
from fdadp.functional.fpca.estimator import FPCA
from fdadp.functional.fpca.face import FaceSmoother, face_eigenbasis, face_smooth
from fdadp.functional.fpca.sparse import sc_eigenbasis
from fdadp.functional.fpca.ssvd import gavish_donoho, ssvd_eigenbasis

__all__ = [
    "FPCA",
    "Eigenbasis",
    "FaceSmoother",
    "dense_eigenbasis",
    "face_eigenbasis",
    "face_smooth",
    "gavish_donoho",
    "sc_eigenbasis",
    "ssvd_eigenbasis",
]
