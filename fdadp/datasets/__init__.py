"""Data sets: CanadianWeather is bundled, others are found or downloaded, simulators return the truth.

Names are loaded on first use.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
