"""What a curve is: samples on grids, tables of them, quadrature, splines, smoothing and principal components."""
