# What a user gives as curves, as a matrix of doubles with one curve a row, and its grid.

# Entry by entry: what one row holds never changes how another is read (a private fit relies on it).
as_curves <- function(data, grid, name, private = FALSE) {
  if (inherits(data, "fd")) {
    return(curves_of_fd(data, grid, name))
  }
  if (inherits(data, "tf")) data <- matrix_of_tf(data, name)
  if (is.data.frame(data)) {
    if (length(data) == 1 && is.matrix(data[[1]])) { # one matrix column
      return(as_curves(data[[1]], grid, name, private))
    }
    labels <- names(data)
    columns <- lapply(data, numbers, name = name, private = private)
    if (any(lengths(columns) != nrow(data))) {
      input_error(name, " must be a data frame of plain columns, one for each point, or of one matrix column")
    }
    values <- matrix(unlist(columns, use.names = FALSE), nrow(data))
    if (.row_names_info(data) > 0) rownames(values) <- row.names(data)
  } else if (is.matrix(data)) {
    values <- matrix(numbers(c(data), name, private), nrow(data))
    rownames(values) <- rownames(data)
    labels <- colnames(data)
  } else {
    input_error(name, " must be a matrix with one curve per row, a data frame, an fd object or a tf vector, got ", class(data)[1])
  }
  counted <- is.data.frame(data) && .row_names_info(data) < 0
  rows <- if (counted) list(names = seq_len(nrow(values)), counted = TRUE) else row_labels(rownames(values))
  if (inherits(grid, c("Date", "POSIXt"))) { # read as such column names are
    if (length(grid) != ncol(values)) input_error("grid of ", name, " must have ", ncol(values), " points, got ", length(grid))
    labels <- if (inherits(grid, "Date")) format(grid) else format(grid, "%Y-%m-%dT%H:%M:%S", tz = "UTC")
    grid <- NULL
  }
  if (!is.null(grid)) {
    return(list(values = values, grid = as_vector(grid, paste("grid of", name)), rows = rows))
  }
  if (is.null(labels)) {
    return(list(values = values, grid = NULL, rows = rows))
  }
  # The rule of the Python half: increasing numbers, decreasing ones (turned round with the values), dates, or nothing.
  axis <- call_python("axis", labels = array(labels, length(labels)), name = name)
  if (is.null(axis$points)) {
    return(list(values = values, grid = NULL, rows = rows, labels = labels, backwards = FALSE))
  }
  if (axis$backwards) values <- values[, rev(seq_len(ncol(values))), drop = FALSE]
  list(values = values, grid = as.double(axis$points), rows = rows, labels = labels, backwards = axis$backwards)
}

# Say that names of columns gave no grid.
say_even <- function(curves, name) {
  if (is.null(curves$grid) && !is.null(curves$labels)) {
    message(
      "column names of ", name, " were not read as points; its grid is even on [0, 1]; give grids = list(", name, " = ...), or yind for the response"
    )
  }
}

# A "tf" vector of tidyfun: its package knows what is in it.
matrix_of_tf <- function(data, name) {
  values <- as.matrix(data)
  if (!is.numeric(values) || nrow(values) != length(data)) input_error(name, " is a tf vector, of which only package tf can make a matrix: load it")
  at <- attr(values, "arg")
  if (length(at) == ncol(values)) colnames(values) <- format(at, digits = 15, trim = TRUE)
  values
}

# Names of rows on their way to Python, where they are compared.
row_labels <- function(names) {
  if (!is.null(names)) list(names = array(as.character(names), length(names)), counted = FALSE)
}

# Curves on the grid of Y as Y's columns stood, with their labels.
as_labelled <- function(values, like) {
  if (is.null(like$labels) || !is.matrix(values)) {
    return(values)
  }
  if (isTRUE(like$backwards)) values <- values[, rev(seq_len(ncol(values))), drop = FALSE]
  colnames(values) <- like$labels
  values
}

numbers <- function(x, name, private) {
  x <- if (is.factor(x)) as.character(x) else unclass(x)
  if (is.numeric(x) || is.logical(x)) {
    return(as.double(x)) # NA_integer_ becomes NA, not a number
  }
  if (private && is.character(x)) {
    return(suppressWarnings(as.double(x))) # what is no number is missing: a gap
  }
  input_error(name, " must be numeric with one curve per row, got ", class(x)[1])
}

# An "fd" object of package fda: coefficients (basis functions, curves) in a basis. Each curve by itself.
curves_of_fd <- function(data, grid, name) {
  range <- data$basis$rangeval
  if (is.null(grid)) grid <- seq(range[1], range[2], length.out = 101)
  grid <- as_vector(grid, paste("grid of", name))
  if (anyNA(grid) || min(grid) < range[1] || max(grid) > range[2]) {
    input_error(
      "grid of ", name, " must lie in the curves' domain [", range[1], ", ", range[2], "], got [",
      min(grid), ", ", max(grid), "]"
    )
  }
  coefficients <- data$coefs
  if (length(dim(coefficients)) == 3 && dim(coefficients)[3] == 1) {
    coefficients <- matrix(coefficients, dim(coefficients)[1])
  }
  if (length(dim(coefficients)) > 2) {
    input_error(name, " must hold real functions of one variable, got ", dim(coefficients)[3], " variables")
  }
  coefficients <- as.matrix(coefficients)
  design <- basis_design(data$basis, as.double(grid), name)
  if (ncol(design) != nrow(coefficients)) {
    input_error(name, " must have one coefficient a basis function, got ", nrow(coefficients), " for ", ncol(design))
  }
  values <- matrix(0, ncol(coefficients), length(grid))
  rownames(values) <- colnames(coefficients)
  for (i in seq_len(nrow(values))) values[i, ] <- design %*% coefficients[, i]
  list(values = values, grid = grid, rows = row_labels(colnames(coefficients)))
}

# Basis functions at points, by the conventions of fda's getbasismatrix; fda itself is not needed.
basis_design <- function(basis, at, name) {
  n <- basis$nbasis
  design <- switch(basis$type,
    bspline = {
      order <- n - length(basis$params)
      breaks <- c(basis$rangeval[1], basis$params, basis$rangeval[2])
      knots <- c(rep(breaks[1], order - 1), breaks, rep(breaks[length(breaks)], order - 1))
      splines::splineDesign(knots, at, ord = order)
    },
    fourier = {
      wave <- outer(2 * pi / basis$params[1] * at, seq_len((n - 1) / 2))
      both <- array(c(sin(wave), cos(wave)), c(dim(wave), 2))
      pairs <- matrix(aperm(both, c(1, 3, 2)), length(at))
      cbind(1 / sqrt(2), pairs) / sqrt(basis$params[1] / 2)
    },
    const = matrix(1, length(at), 1),
    monom = ,
    power = outer(at, basis$params, "^"),
    expon = exp(outer(at, basis$params)),
    polygonal = {
      knots <- basis$params[c(1, seq_len(n), n)]
      splines::splineDesign(knots, at, ord = 2)
    },
    input_error(name, " must have one of fda's bases (bspline, fourier, const, monom, power, expon, polygonal), got ", basis$type)
  )
  if (length(basis$dropind)) design[, -basis$dropind, drop = FALSE] else design
}
