"""Functional principal components: one estimator, and the eigenbases it is made of."""

from fdadp.fpca.basis import Eigenbasis
from fdadp.fpca.dense import dense_eigenbasis
from fdadp.fpca.estimator import FPCA
from fdadp.fpca.face import FaceSmoother, face_eigenbasis, face_smooth
from fdadp.fpca.sparse import sc_eigenbasis
from fdadp.fpca.ssvd import gavish_donoho, ssvd_eigenbasis

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
