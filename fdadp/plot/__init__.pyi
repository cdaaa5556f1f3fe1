from ._fitted_surface import surface as surface
from ._matplotlib_figures import PALETTE as PALETTE
from ._response_curves import eigenfunctions as eigenfunctions
from ._response_curves import mean as mean
from ._response_curves import predictions as predictions
from ._response_curves import residuals as residuals
from ._term_effects import terms as terms
