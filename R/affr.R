#' Additive function-on-function regression
#'
#' Fits \eqn{Y_i(t) = \mu(t) + \int F\{X_i(s), s, t\}\,ds + \varepsilon_i(t)}: tensor products of P-splines over the values
#' of X and over s, eigenfunctions of Y over t, smoothing parameters by REML or GCV for each component. It is the
#' model of refund's `pffr(Y ~ sff(X))`, fitted from sums over curves, so that time and memory hardly grow with n.
#' **Not private**: for a fit that may leave the house see [dp_affr()].
#'
#' @param Y Response curves, one a row: a matrix, a data frame of numeric columns, a matrix column, or an `fd` object. Or a formula
#'   `Y ~ X`. Column names that are numbers or dates are the grid; where they decrease columns are turned round, and predictions come
#'   back as `Y` was. Row names of `X` and `Y` must be equal where both have some.
#' @param X Predictor curves, as `Y`.
#' @param formula `Y ~ X`, with one functional predictor.
#' @param s,t Grids of `X` and `Y`. Default: that of the object, else even on \[0, 1\]; an `fd` object is evaluated on
#'   101 points of its range.
#' @param data A data frame with matrix columns (or `fd` objects in a list), or an environment, in which the formula is
#'   looked up first.
#' @param k Numbers of B-splines over the values of X and over s, `c(12, 7)`. By default they grow with the number of curves, from
#'   7 x 7 to 20 x 10: penalties see to it that splines too many do no harm.
#' @param npc Number of eigenfunctions of Y: a whole number, or below 1 the share of variance that they must explain.
#' @param method How smoothing parameters are chosen: `"REML"`, or `"GCV.Cp"` (also `"GCV"`).
#' @param sp Smoothing parameters instead, on mgcv's scale: `c(lambda_x, lambda_s)` or one row a component.
#' @param degree,m Degree of the splines, and order of the differences that are penalised.
#' @param quadrature Rule of the integral over s: `"trapezoid"`, `"simpson"`, `"riemann"`.
#' @param fpca Eigenfunctions of Y from the smoothed (`"face"`) or the plain covariance (`"dense"`).
#' @param missing Treatment of `NA`: `"raise"` an error, fill gaps of each curve by straight lines (`"linear"`), `"smooth"` each curve, or fill
#'   in by an `"fpca"` of sparse curves.
#' @param ... Passed on to the default method.
#'
#' @return An object of class `affr`, plain R data. It has among others:
#'   * `coefficients` (component, x, s), `sp` and `edf`;
#'   * `efunctions` (one a column, of unit L2 norm), `evalues`, `pve` and `mu`;
#'   * `sigma2`, `residual.variance` and `r.sq`;
#'   * `s`, `t`, `x.range`, `fitted.values` and `residuals`.
#'
#'   Methods: [predict][predict.affr], [plot][plot.affr], `print`, `summary`, `coef`, `fitted`, `residuals`; [surface()]
#'   gives F.
#' @references Kim, Staicu, Maity, Carroll and Ruppert (2018), Additive Function-on-Function Regression,
#'   *Journal of Computational and Graphical Statistics* 27(1), 234-244. \doi{10.1080/10618600.2017.1356730}
#' @seealso [dp_affr()], [fdadp_config()]
#' @examples
#' if (fdadp_available()) {
#'   weather <- canadian_weather()
#'   weekly <- seq(4, 365, by = 7)
#'   stations <- data.frame(weather$stations)
#'   stations$temperature <- weather$X[, weekly]
#'   stations$rain <- weather$Y[, weekly]
#'   days <- weather$s[weekly]
#'   fit <- affr(rain ~ temperature, data = stations, s = days, t = days, npc = 2)
#'   print(fit)
#'   new <- predict(fit, stations[1:3, ], interval = "prediction")
#'   dim(new$lwr)
#' }
#' @export
affr <- function(Y, ...) UseMethod("affr")

#' @rdname affr
#' @export
affr.formula <- function(formula, data = NULL, ...) {
  read <- read_formula(formula, data)
  fit <- affr.default(read$Y, read$X, ...)
  fit$call <- as_called(match.call())
  fit$formula <- plain_formula(formula)
  fit$term <- read$term
  fit
}

#' @rdname affr
#' @export
affr.default <- function(Y, X, s = NULL, t = NULL, k = NULL, npc = 0.95, method = c("REML", "GCV.Cp", "GCV"), sp = NULL,
                         degree = 3, m = 2, quadrature = "trapezoid", fpca = c("face", "dense"),
                         missing = c("raise", "linear", "smooth", "fpca"), ...) {
  no_more(...)
  method <- one_of(method, c("REML", "GCV.Cp", "GCV"), "method")
  no_na(k = k, npc = npc, sp = sp, degree = degree, m = m, quadrature = quadrature)
  if (!is.null(k) && (!is.numeric(k) || length(k) != 2)) {
    input_error("k must be two numbers of splines, over x and over s, got ", deparse(k)[1])
  }
  x <- as_curves(X, s, "X")
  y <- as_curves(Y, t, "Y")
  settings <- list(
    n_basis_x = basis_size(k, 1), n_basis_s = basis_size(k, 2), n_components = as_whole(npc),
    smoothing = if (!is.null(sp)) as_array(sp, "sp") else if (method == "REML") "reml" else "gcv",
    degree = as_whole(degree), penalty_order = as_whole(m), quadrature = quadrature,
    fpca = one_of(fpca, c("face", "dense"), "fpca"),
    missing = one_of(missing, c("raise", "linear", "smooth", "fpca"), "missing"),
    progress = if (interactive()) "auto" else FALSE
  )
  both <- joined_pair(x, y)
  x <- both$x
  y <- both$y
  fit <- fit_with(x, y, settings, rows = list(X = x$rows, Y = y$rows))
  fit$call <- as_called(match.call())
  fit$method <- if (is.null(sp)) method else "given"
  fit$x.seen <- apply(x$values, 2, function(v) if (all(is.na(v))) c(Inf, -Inf) else range(v, na.rm = TRUE))
  fit$fitted.values <- call_on(fit, "predict", X = x$values, t = NULL, s = NULL, se = FALSE, level = NULL)$fit
  rownames(fit$fitted.values) <- rownames(x$values)
  fit$residuals <- as_labelled(y$values - fit$fitted.values, y)
  fit$fitted.values <- as_labelled(fit$fitted.values, y)
  fit
}

#' Additive function-on-function regression with differential privacy
#'
#' The model of [affr()], released with an (epsilon, delta) guarantee of differential privacy for whole people that holds end to
#' end: everything in the result, and everything computed from it and new curves, is protected. The curves are read only by a
#' small kernel that clips, adds up and adds noise from OpenDP. The result holds no training curve, no fitted value and
#' no residual of one, and not the call's data either.
#'
#' *Not protected* are bounds or epsilon chosen by looking at the data, and pictures and errors computed from the
#' training curves. Nor are fits repeated until one looks good, running time, and facts about groups of people.
#' [ledger()] says the same of each fit.
#'
#' @inheritParams affr
#' @param epsilon,delta The budget. `delta` left out or 0 means pure epsilon; else below 1 / n.
#' @param bounds Public ranges of the curves' values, `list(X = c(low, high), Y = c(low, high))`, known without looking at
#'   these data. Required: a range taken from the data would not be private.
#' @param n The number of people, if it may be public; left out, it is estimated privately.
#' @param groups The person of each row, where people have several; rows whose person is `NA` are not used.
#' @param mechanism `"dp-aff"`, or the less accurate `"moments"`. `"published"` is the literature's noise on the coefficients, for comparison: it
#'   is **not** differentially private end to end, and the ledger says so.
#' @param adjacency What the guarantee compares: `"zero-out"` (the default where `n` is declared), `"add-remove"` (where not) or
#'   `"replace"`.
#' @param unit Whom the guarantee protects: `"person"`, all rows of one person in `groups`, which must then be given, or
#'   `"row"`, and then `groups` are refused. By default people where `groups` are given, else rows; the ledger says which.
#' @param labels `"public"`: row names of `X` and `Y` are public, and others in one of them are refused before the first read. By default they are
#'   private: where `X` and `Y` both have some (data frames always do), and no `groups` are given, a name is a person's id, and rows are joined by it. Else
#'   rows belong together by their position, as the ledger says.
#' @param study File of a study, made with [study_new()], on which the fit draws: what it has fixed (`delta`, `n`, `adjacency`, `unit`) is left out
#'   here.
#' @param purpose What the fit is for, for the study's record.
#' @param person_rows With groups, what the fit is about: `"mean"`, the default, counts each person once, by the mean of its rows; `"sum"` counts each
#'   row once.
#' @param max_rows With `person_rows = "sum"`: rows of a person that count at most, a public number.
#' @param seed For simulations only: noise that can be repeated. The ledger then says "not for release". Without
#'   it the noise is secure, and [set.seed()] has no influence on it.
#' @param allow_useless Fit even where n times epsilon is so small that the mean curve would predict equally well.
#' @param missing How gaps of `X` are filled, each within its row, so at no cost of privacy: `"linear"`, or `"smooth"` with public settings. Of `Y` a
#'   row counts where it was observed; a row never observed contributes zero.
#' @param k,npc Of `mechanism = "published"`, as in [affr()]; the others choose by a public plan.
#' @param sensitivity Of `mechanism = "published"`: `"local"`, `"coefficient"` or `"scaled"`.
#'
#' @return An object of classes `dp_affr` and `affr`, with `ledger`, `plan` and the components of an [affr()] fit but
#'   `fitted.values` and `residuals`.
#' @seealso [plan_dp()] before, [ledger()] after.
#' @examples
#' if (fdadp_available()) {
#'   cohort <- simulate_affr(scenario = 1, n = 1000, seed = 0)
#'   fit <- dp_affr(cohort$Y, cohort$X, epsilon = 1, delta = 1e-6, n = 1000,
#'                  bounds = list(X = c(-4.5, 4.5), Y = c(-8, 8)))
#'   newcomers <- simulate_affr(scenario = 1, n = 50, seed = 1)
#'   print(rmspe(newcomers$Y, predict(fit, newcomers$X)))
#'   ledger(fit)
#' }
#' @export
dp_affr <- function(Y, ...) UseMethod("dp_affr")

#' @rdname dp_affr
#' @export
dp_affr.formula <- function(formula, data = NULL, ...) {
  read <- read_formula(formula, data)
  fit <- dp_affr.default(read$Y, read$X, ...)
  fit$term <- read$term
  fit
}

#' @rdname dp_affr
#' @export
dp_affr.default <- function(Y, X, s = NULL, t = NULL, epsilon, delta = NULL, bounds = NULL, n = NULL, groups = NULL,
                            mechanism = "dp-aff", adjacency = NULL, unit = NULL, labels = NULL, seed = NULL, allow_useless = FALSE,
                            k = NULL, npc = 0.95, sensitivity = "local", missing = c("linear", "smooth"), study = NULL, purpose = NULL,
                            person_rows = NULL, max_rows = NULL, ...) {
  no_more(...)
  if (missing(epsilon)) privacy_error("epsilon must be a number above 0, got nothing")
  no_na(
    epsilon = epsilon, delta = delta, bounds = unlist(bounds), n = n, mechanism = mechanism, adjacency = adjacency, unit = unit,
    labels = labels, seed = seed, allow_useless = allow_useless, k = k, npc = npc, sensitivity = sensitivity, study = study, purpose = purpose,
    person_rows = person_rows, max_rows = max_rows
  )
  if (!is.null(bounds) && !(is.list(bounds) && length(names(bounds)) && all(names(bounds) %in% c("X", "Y")))) {
    privacy_error("bounds must be list(X = c(low, high), Y = c(low, high)), got ", class(bounds)[1])
  }
  privacy <- privacy_of(list(
    epsilon = epsilon, delta = delta, n = n, adjacency = adjacency, unit = unit, labels = labels, seed = seed, study = study, purpose = purpose
  ))
  method <- list(name = mechanism, allow_useless = allow_useless, sensitivity = sensitivity)
  settings <- list(
    n_basis_x = basis_size(k, 1), n_basis_s = basis_size(k, 2), n_components = as_whole(npc),
    missing = if (mechanism == "published") "raise" else one_of(missing, c("linear", "smooth"), "missing"),
    bounds = bounds, mechanism = method, progress = if (interactive()) "auto" else FALSE, person_rows = person_rows, max_rows = as_whole(max_rows)
  )
  x <- as_curves(X, s, "X", private = TRUE)
  y <- as_curves(Y, t, "Y", private = TRUE)
  rows <- list(X = x$rows, Y = y$rows)
  fit <- fit_with(x, y, settings, privacy, as_groups(groups), rows)
  fit$epsilon <- epsilon # of the plan, public
  fit["delta"] <- list(if (!identical(as.numeric(delta), 0)) delta)
  fit$method <- mechanism
  class(fit) <- c("dp_affr", class(fit))
  fit
}

# Rows joined by their names, where both have some that differ: those of Y, and the rows of X that belong to them.
joined_pair <- function(x, y) {
  named <- !is.null(x$rows) && !is.null(y$rows) && !x$rows$counted && !y$rows$counted
  if (!named || identical(c(x$rows$names), c(y$rows$names))) {
    return(list(x = x, y = y))
  }
  found <- call_python("joined_names", labels = list(Y = y$rows$names, X = x$rows$names), primary = "Y")
  message(found$said)
  take <- function(curves, rows) {
    curves$values <- curves$values[as.integer(rows) + 1L, , drop = FALSE]
    rownames(curves$values) <- c(y$rows$names)[as.integer(found$rows$Y) + 1L]
    curves$rows <- row_labels(rownames(curves$values))
    curves
  }
  list(x = take(x, found$rows$X), y = take(y, found$rows$Y))
}

# Number of splines of a margin, which Python chooses where k is NULL.
basis_size <- function(k, margin) if (is.null(k)) "auto" else as_whole(k[margin])

# Fit in Python; what comes back is plain data and the bytes of the saved model.
fit_with <- function(x, y, settings, privacy = NULL, groups = NULL, rows = NULL) {
  path <- tempfile(fileext = ".npz")
  on.exit(unlink(path))
  fit <- call_python("fit",
    X = x$values, Y = y$values, s = x$grid, t = y$grid, path = path, settings = settings, privacy = privacy, groups = groups, labels = rows
  )
  one_dimensional <- c("edf", "criterion", "evalues", "pve", "mu", "residual.variance", "s", "t", "x.range")
  fit[one_dimensional] <- lapply(fit[one_dimensional], as.double)
  if (!is.null(fit$ledger)) fit$ledger <- as_ledger(fit$ledger)
  fit$y.labels <- y[intersect(c("labels", "backwards"), names(y))] # of columns
  fit$file <- readBin(path, "raw", file.size(path))
  structure(fit, class = "affr")
}

# Let Python do something with a fit, which it reads from the fit's own bytes.
call_on <- function(fit, .name, ...) {
  if (!inherits(fit, "affr") || !is.raw(fit$file)) input_error("object must be a fit of affr() or dp_affr(), got ", class(fit)[1])
  path <- tempfile(fileext = ".npz")
  on.exit(unlink(path))
  writeBin(fit$file, path)
  call_python(.name, path = path, ...)
}

# Both sides of Y ~ X, and the text of the right one, to look it up in new data. No environment is kept: it may hold data.
read_formula <- function(formula, data) {
  term <- if (length(formula) == 3) formula[[3]]
  several <- identical(term, quote(.)) || is.call(term) && as.character(term[[1]])[1] %in% c("+", "-", "*", ":", "/", "^", "|")
  if (is.null(term) || several) {
    input_error("formula must be of the form Y ~ X, with one functional predictor, got ", paste(deparse(formula), collapse = " "))
  }
  frame <- environment(formula)
  list(Y = eval(formula[[2]], data, frame), X = eval(term, data, frame), term = paste(deparse(term), collapse = " "))
}

as_called <- function(call, name = quote(affr)) {
  call[[1]] <- name
  call
}

as_groups <- function(groups) {
  if (is.null(groups)) {
    return(NULL)
  }
  groups <- c(if (is.factor(groups)) as.character(groups) else groups)
  missing <- array(is.na(groups), length(groups))
  list(ids = array(if (is.numeric(groups)) as.double(groups) else as.character(groups), length(groups)), missing = missing)
}

# R's NA would arrive in Python as TRUE or as a number.
no_na <- function(...) {
  given <- list(...)
  for (name in names(given)) {
    if (is.atomic(given[[name]]) && anyNA(given[[name]])) input_error(name, " must not be NA, got ", deparse(given[[name]])[1])
  }
}

as_array <- function(x, name) {
  if (!is.numeric(x)) input_error(name, " must be numbers, got ", class(x)[1])
  array(as.double(x), if (is.null(dim(x))) length(x) else dim(x))
}

one_of <- function(value, choices, name) {
  if (identical(value, choices)) {
    return(choices[1])
  }
  if (!is.character(value) || length(value) != 1 || !value %in% choices) {
    input_error(name, " must be one of ", paste0("'", choices, "'", collapse = ", "), ", got ", deparse(value)[1])
  }
  value
}

no_more <- function(...) {
  if (...length()) {
    names <- ...names()
    input_error("unused argument: ", if (is.null(names) || !nzchar(names[1])) "one without a name" else names[1])
  }
}
