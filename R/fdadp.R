#' Regression of curves, or numbers, on curves, numbers and factors
#'
#' Fits \eqn{E[Y_i(t)] = \mu(t) + \sum_j f_j(X_{ij}, t)} by penalised splines, the family of models of refund's `pffr()` (and, where the response
#' is a number, of `pfr()`), with smoothing parameters by REML. Sums over curves stand for the long table of all points, so that
#' time and memory hardly grow with the number of curves. **Not private**; see [dp_affr()].
#'
#' @section Terms:
#' | in the formula | effect | refund, mgcv |
#' |---|---|---|
#' | `ff(X)`, `ff(X, limits = "s<=t")` | \eqn{\int X(s) \beta(s, t) ds}; historical | `ff()` |
#' | `sff(X)` | \eqn{\int F\{X(s), s, t\} ds} | `sff()` |
#' | `ffpc(X)` | scores of principal components times curves | `ffpc()` |
#' | `X`, a matrix; `concurrent(X)` | \eqn{X(t) \beta(t)} | `X` |
#' | `x`, a number | \eqn{x \beta(t)} | `x` |
#' | `region`, a factor | a curve for each level but the first | (`pffr` has no level means) |
#' | `s(age)`, `te(a, b)` | \eqn{f(age, t)} | `s()`, `te()` |
#' | `s(g, bs = "re")`, `re(g)` | a random curve, or number, for each level | `s(g, bs = "re")`, `c(s(g, bs = "re"))` |
#' | `re(g, covariance = "free")`, `re(g, slopes = x)` | a curve for each person, and a slope, with any covariance; rows with smooth errors | none |
#' | `c(x)`, `c(s(age))` | the same at all t | `c()` |
#' | `region:ff(X)`, `s(age, by = x)` | an effect for each level; times x | `by =` |
#' | `lf(X)`, `af(X)`, `fpcr(X)` | for a response that is a number | `lf()`, `af()`, `fpcr()` |
#' | `offset(z)` | known | `offset()` |
#'
#' Arguments are those of Python's terms: `k`, `m` as in mgcv (`m = list(c(2, 1), c(2, 1))`), `rule` of the integral (`"trapezoid"`; refund's default
#' is `"simpson_legacy"`), `limits`, `bs`. `xind`, `argvals`, `integration` and `npc` are known by refund's names: `integration = "simpson"` gives refund's
#' weights. Arguments are evaluated in R.
#'
#' @section Several curves a person:
#' `re(id, covariance = "free")` gives each person a curve, and rows smooth errors, both with any covariance. REML finds
#' both covariances from sums over the rows of persons, so that 70,000 rows take some seconds. [ranef()][fdadp-methods]
#' gives the curves of persons. `fit$persons` has the shares of the variance (`icc`, with noise `icc.noise`, along t
#' `icc.curve`). Predictions of persons of the fit have their own curves, those of others are the population's. Standard
#' errors then assume both covariances and count that smoothing parameters are estimated (`se = "unconditional"`). With
#' `groups = id` they assume only that persons are independent. `re(id, slopes = week)` are curves and slopes of
#' persons, lme4's `(1 + week | id)`, without the curves with `intercept = FALSE`; `re(site, covariance = "free") +
#' re(id, covariance = "free")` persons within sites.
#'
#' @param formula `Y ~ ff(X1) + s(age) + region`; `0 +` leaves out the constant and the mean curve.
#' @param data A data frame with matrix columns, or a list of columns: matrices or `fd` objects with one curve a row, numbers, factors.
#'   Rows of a data frame belong together as they stand, and a matrix with other row names is refused. Two files: [merge()] first, then make the matrix.
#' @param family One of:
#'   * `"gaussian"`, `"binomial"`, `"poisson"`, `"gamma"`, or R's family objects of these with the links identity,
#'     logit, log and log;
#'   * `"negative_binomial"` (mgcv's `nb()`) with theta by REML, or `"negative_binomial(2)"` (`negbin(2)`);
#'   * `"scaled_t"` (`scat()`) with nu and sigma by REML, or `"scaled_t(4, 0.5)"`;
#'   * `"ordered"` (`ocat()`) for numbers of ordered categories or an ordered factor, with cut points by REML, or
#'     `"ordered(-1, 0.5, 2)"`.
#' @param subset Which rows to use: row numbers, or `TRUE` and `FALSE`, evaluated in `data`. It holds for every column, `groups`, `weights` and
#'   `offset`, also for those that are not in `data`. Not with `ydata`.
#' @param person_rows With groups, what the fit is about: `"mean"`, the default, counts each person once, by the mean of its rows; `"sum"` counts each
#'   row once, as events and hazards want.
#' @param groups The person of each row, where people have several curves: a column of `data`, as `id` or `"id"`, or a vector. Standard errors, bands and tests then allow for errors that
#'   depend within a person.
#' @param weights,offset One a row, or a matrix with one a point.
#' @param smoothing `"reml"`, `"gcv"`, or smoothing parameters on mgcv's scale: the mean curve's first, then each term's in order. For predictions of
#'   curves with smooth errors also `"curves"`, or `"groups"` with `groups`: what predicts curves, or persons, left out of the fit best.
#' @param grids Grids of matrices by column, `list(X1 = s)`; a matrix may also have one as attribute `"grid"` or as its column names: numbers
#'   (`"0.5"`, `"h07"`), ISO dates and times (`"2024-03-01"`, `"2024-03-01 08:00"`) or times of day (`"08:00"`). Points may be a `Date` or `POSIXct`.
#'   Default, also for column names 0, 1, ... that only count: even on \[0, 1\], as a message says where names were not used.
#' @param yind Grid of the response, likewise.
#' @param ydata Curves observed at points of their own: a data frame of `.obs` (number of the row in `data`), `.index` and `.value`, as in refund; the left side
#'   of the formula is then a name alone. Fitted values and residuals are then one for each row of `ydata`, predictions curves.
#' @param se What standard errors, bands and tests assume of residuals:
#'   * `"curve"`: they may depend within a curve (the default);
#'   * `"cluster"`: they may depend within a group (the default with `groups`);
#'   * `"iid"`: they are independent, as refund has it (the default where the response is a number).
#' @param errors What estimates assume of errors along a curve:
#'   * `"iid"`: least squares as in refund;
#'   * `"curve"`: weighted by a smooth covariance along the curve, which is more accurate where errors are smooth, with
#'     larger bases along the response.
#' @param response_basis What effects are of t:
#'   * `"splines"`: penalised, each term its own, as in refund;
#'   * `"eigen"`: combinations of the leading eigenfunctions of the responses. Their scores are regressions of numbers
#'     with smoothing parameters of their own. `fdadp(Y ~ sff(X), response_basis = "eigen")` is the model of [affr()].
#'     `sp` is then a matrix with one row an eigenfunction.
#' @param npc With `"eigen"`: number of eigenfunctions, or the share of variance that they must explain, in (0, 1].
#'
#' @param missing What to do about `NA` in covariates:
#'   * `"raise"` an error;
#'   * of all curves fill gaps by straight lines (`"linear"`), or `"smooth"` each curve;
#'   * of all curves use the components of the training curves (`"fpca"`), or replace sparse curves by what is expected
#'     of them (`"pace"`);
#'   * of all numbers fill in the mean and add a term that says where (`"indicator"`).
#'
#'   By column: `list(X = "linear", age = "indicator")`.
#' @param k Of terms that give no number of functions along the response:
#'   * `"auto"`: 15 or as many as it has points, and curves are centred about their mean curve;
#'   * `"refund"`: 5 functions and curves as they are, as in refund.
#' @param t_period Where t is a circle, its length, such as 24 for hours of a day: the mean curve and all effects are then periodic along t, mgcv's
#'   `bs = "cc"`. Along s it is `ff(X, period = 24)`.
#' @param variance Of a number: terms of the logarithm of its variance, `~ s(x)`, for Gaussian rows without groups. Mean and variance are fitted in turn, so that
#'   `logLik()` and `AIC()` are refused; `predict(type = "sd")` gives standard deviations, and prediction intervals follow them. Of curves what prediction intervals
#'   believe of the variance: it varies over t (`"t"`), also with the covariates (`"model"`, the default), or not at all (`"constant"`).
#' @return An object of class `fdadp_regression`, plain R data: `fitted.values`, `residuals`, `sp`, `edf`, `term.edf`, `sigma2`, `criterion`, `r.sq`,
#'   `dev.expl`, `t`, of curves of persons `persons`, and the columns, as other model objects of R hold them. It survives [saveRDS()]. Methods:
#'   [predict][predict.fdadp_regression], [plot][plot.fdadp_regression] and [those of other models][fdadp-methods].
#' @references Ivanescu, Staicu, Scheipl and Greven (2015), Penalized function-on-function regression, *Computational Statistics* 30, 539-568.
#'   \doi{10.1007/s00180-014-0548-4}
#' @seealso [affr()], [dp_affr()]
#' @examples
#' if (fdadp_available()) {
#'   weather <- canadian_weather()
#'   stations <- weather$stations
#'   stations$temperature <- weather$X
#'   stations$rain <- weather$Y
#'   fit <- fdadp(rain ~ ff(temperature) + region,
#'                data = stations, grids = list(temperature = weather$s), yind = weather$t)
#'   print(fit)
#'   anova(fit)
#'   head(coef(fit, "region"))
#'   dim(predict(fit, stations[1:3, ]))
#' }
#' @export
fdadp <- function(formula, data = NULL, family = "gaussian", subset = NULL, groups = NULL, weights = NULL, offset = NULL, smoothing = "reml",
                  grids = list(), yind = NULL, ydata = NULL, se = NULL,
                  errors = c("iid", "curve"), response_basis = c("splines", "eigen"), npc = 0.99, person_rows = NULL,
                  k = c("auto", "refund"), missing = "raise", t_period = NULL, variance = NULL) {
  no_na(npc = npc, person_rows = person_rows)
  if (!is.null(data) && !is.list(data)) input_error("data must be a data frame or a list of columns, got ", class(data)[1])
  own <- substitute(list(groups = groups, weights = weights, offset = offset))
  rows <- eval(substitute(subset), data, parent.frame())
  if (!is.null(rows) && !is.null(ydata)) input_error("subset must be NULL with ydata, whose .obs are numbers of rows")
  own <- lapply(as.list(own)[-1], eval, data, parent.frame())
  own["groups"] <- list(column_of(own$groups, data))
  own <- lapply(own, only, rows)
  if (length(grids) && (!is.list(grids) || is.null(names(grids)))) input_error("grids must be a list with the columns' names, got ", class(grids)[1])
  model <- read_model(formula, data, grids, yind, ydata, rows, variance)
  settings <- list(
    family = family_name(family), intercept = model$intercept, progress = if (interactive()) "auto" else FALSE,
    missing = treatments(missing, c("raise", "linear", "smooth", "fpca", "pace", "indicator"))
  )
  if (is.null(se)) se <- if (!is.null(own$groups)) "cluster" else if (model$spec$scalar) "iid" else "curve"
  se <- one_of(se, c("curve", "cluster", "iid"), "se")
  if (se == "cluster" && is.null(own$groups)) input_error("se must be \"curve\" or \"iid\" without groups, got \"cluster\"; groups = id says whose each row is")
  if (!model$spec$scalar) settings <- c(settings, list(se = if (se == "iid") "iid" else "curve", errors = one_of(errors, c("iid", "curve"), "errors")))
  basis <- one_of(response_basis, c("splines", "eigen"), "response_basis")
  if (basis == "eigen" && model$spec$scalar) input_error("response_basis must be \"splines\" where the response is a number, got \"eigen\"")
  if (basis == "eigen") settings <- c(settings, list(response_basis = basis, n_components = as_whole(npc)))
  if (!model$spec$scalar) settings$k <- one_of(k, c("auto", "refund"), "k")
  if (!is.null(t_period) && model$spec$scalar) input_error("t_period must be NULL where the response is a number, got ", t_period)
  if (!is.null(t_period)) settings$t_period <- t_period
  if (!is.null(model$variance)) settings$variance <- model$variance
  asked <- as.list(substitute(list(groups = groups, weights = weights, offset = offset)))[-1]
  given <- names(Filter(Negate(is.null), own))
  beside <- lapply(stats::setNames(nm = given), function(name) list(value = own[[name]], rows = labels_of(asked[[name]], own[[name]], data, rows)))
  if (!is.null(model$offset)) beside$of_formula <- list(value = model$offset, rows = labels_of(model$offset_call, model$offset, data, rows))
  if (is.null(ydata)) {
    found <- joined(model$spec, beside)
    model$spec <- found$spec
    own[given] <- found$beside[given]
    model$offset <- found$beside$of_formula
    if (!is.null(found$rows)) model$rows <- found$rows
  }
  if (!is.null(person_rows)) settings <- c(settings, list(person_rows = person_rows))
  spec <- c(model$spec, list(settings = settings))
  spec$weights <- per_row(own$weights, "weights")
  spec$offset <- per_row(if (is.null(own$offset)) model$offset else if (is.null(model$offset)) own$offset else own$offset + model$offset, "offset")
  spec$groups <- if (!is.null(own$groups)) array(as.character(own$groups), length(own$groups))
  fit <- call_python("fit_terms", spec = spec, smoothing = if (is.character(smoothing)) smoothing else as_array(smoothing, "smoothing"))
  fit$offsets <- c(model$offsets, if (!is.null(own$offset)) text_of(substitute(offset)))
  fit$term.edf <- stats::setNames(as.double(fit$term.edf), fit$term.names)
  if (!is.null(fit$theta)) fit$theta <- as.double(fit$theta)
  fit$sp <- with_names(fit$sp, unlist(fit$sp.names))
  fit$coefficient.names <- unlist(fit$coefficient.names)
  if (!is.null(fit$persons)) {
    fit$persons <- as_persons(fit$persons)
    if (se == "curve") se <- "unconditional" # the covariances of both levels are known
  }
  response <- spec$columns[[spec$response]]
  for (name in c("fitted.values", "residuals")) {
    fit[[name]] <- if (is.null(ydata)) shaped(fit[[name]], spec, response, model$rows) else in_order_of(fit[[name]], spec$long)
  }
  fit[c("sp.names", "term.names")] <- NULL
  if (!is.null(fit$t)) fit$t <- as.double(fit$t)
  fit$n <- if (is.null(ydata)) NROW(fit$fitted.values) else length(unique(spec$long$row))
  structure(
    c(fit, list(
      formula = plain_formula(formula), call = as_called(match.call(), quote(fdadp)), family = sub("[(].*", "", settings$family), spec = spec,
      expressions = model$expressions, se = se, smoothing = if (is.character(smoothing)) smoothing else "given"
    )),
    class = "fdadp_regression"
  )
}

# Shares of the variance of persons and rows, and what is said of them.
as_persons <- function(persons) {
  persons$notes <- as.character(unlist(persons$notes))
  persons$levels <- lapply(persons$levels, function(v) as.character(unlist(v)))
  variances <- as_frame(persons$variances)
  persons$variances <- data.frame(variances[names(variances) != "level"], row.names = variances$level)
  persons$icc.curve <- as.double(persons$icc.curve)
  persons
}

# What is done about gaps: a text for all columns, or a list (or a vector with names) of them by column.
treatments <- function(missing, known) {
  if (is.character(missing) && !is.null(names(missing))) missing <- as.list(missing)
  if (!is.list(missing)) {
    return(one_of(missing, known, "missing"))
  }
  if (is.null(names(missing)) || !all(nzchar(names(missing)))) input_error("missing must be one of ", paste(known, collapse = ", "), ", or a list of them by column")
  lapply(missing, one_of, known, "missing")
}

# Some rows of a column; its grid stays.
only <- function(value, rows) {
  if (is.null(value) || is.null(rows)) {
    return(value)
  }
  n <- if (inherits(value, "fd")) ncol(as.matrix(value$coefs)) else NROW(value)
  if (!(is.logical(rows) && length(rows) == n) && !(is.numeric(rows) && !anyNA(rows) && all(abs(rows) >= 1 & abs(rows) <= n))) {
    input_error("subset must be numbers of rows, or TRUE or FALSE for each of ", n, " rows, got ", class(rows)[1], " of length ", length(rows))
  }
  if (is.logical(rows)) rows <- which(rows)
  if (is.null(dim(value)) || inherits(value, "fd")) {
    return(value[rows])
  }
  kept <- value[rows, , drop = FALSE]
  attr(kept, "grid") <- attr(value, "grid")
  kept
}

# Smoothing parameters: a vector, or on eigenfunctions a matrix with one row each.
with_names <- function(sp, names) {
  if (is.matrix(sp)) {
    colnames(sp) <- names
    return(sp)
  }
  stats::setNames(as.double(sp), names)
}

# Curves with the names that the response had; numbers as a vector.
shaped <- function(values, spec, response = NULL, rows = NULL) {
  if (spec$scalar) {
    return(stats::setNames(as.double(values), rows))
  }
  rownames(values) <- rows
  as_labelled(values, response)
}

# Python has observations by row and point.
in_order_of <- function(values, long) {
  as.double(values)[order(order(long$row, long$t))]
}

per_row <- function(values, name) {
  if (is.null(values)) {
    return(NULL)
  }
  if (!is.numeric(values)) input_error(name, " must be numbers, got ", class(values)[1])
  array(as.double(values), if (is.matrix(values)) dim(values) else length(values))
}

# The environment of a formula may hold data.
plain_formula <- function(formula) {
  environment(formula) <- globalenv()
  formula
}

family_links <- c(
  gaussian = "identity", binomial = "logit", poisson = "log", gamma = "log", negative_binomial = "log", scaled_t = "identity"
)

family_name <- function(family) {
  if (is.function(family)) family <- family()
  if (!inherits(family, "family")) {
    if (length(family) == 1 && grepl("^(negative_binomial|scaled_t|ordered)[(].*[)]$", family)) {
      return(family) # Python reads the parameters
    }
    return(one_of(if (identical(family, "Gamma")) "gamma" else family, c(names(family_links), "ordered"), "family"))
  }
  if (startsWith(family$family, "Ordered Categorical") && is.function(family$getTheta)) { # mgcv's ocat()
    return(if (family$n.theta > 0) "ordered" else sprintf("ordered(%s)", paste(format(family$getTheta(TRUE), digits = 17, trim = TRUE), collapse = ", ")))
  }
  name <- gsub(" ", "_", tolower(family$family), fixed = TRUE)
  if (startsWith(name, "scaled_t") && !is.null(family$getTheta) && (name != "scaled_t" || family$n.theta == 0)) {
    name <- sprintf("scaled_t(%s)", paste(format(family$getTheta(TRUE), digits = 17), collapse = ", "))
  }
  links <- family_links
  if (grepl("(", name, fixed = TRUE) && identical(family$link, unname(links[sub("[(].*", "", name)]))) {
    return(name)
  }
  if (!name %in% names(links)) input_error("family must be one of ", paste(names(links), collapse = ", "), ", got ", family$family)
  if (family$link != links[[name]]) input_error("link of family ", family$family, " must be ", links[[name]], ", got ", family$link)
  name
}

# What is believed of errors, when not told: what the fit says.
believed <- function(object, se, unconditional = FALSE) {
  no_na(unconditional = unconditional)
  if (isTRUE(unconditional) && !is.null(se)) input_error("se must be NULL with unconditional = TRUE, got '", se, "'")
  if (isTRUE(unconditional)) se <- "unconditional"
  if (is.null(se)) object$se else one_of(se, c("curve", "cluster", "iid", "unconditional"), "se")
}

# Let Python do something with a fit: its model is there in this session, or is made again from what the fit holds. Its
# smoothing is chosen again as it was: at given parameters standard errors would not count that they were chosen.
call_on_fit <- function(.name, object, ...) call_python(.name, fit = as_handle(object), ...)

as_handle <- function(object) {
  if (!inherits(object, "fdadp_regression") || is.null(object$spec)) input_error("object must be a fit of fdadp(), got ", class(object)[1])
  handle <- list(key = object$key)
  sp <- if (object$smoothing == "given") unname(object$sp) else object$smoothing
  if (!call_python("has_model", key = object$key)$here) handle <- c(handle, list(spec = object$spec, sp = if (is.matrix(sp) || is.character(sp)) sp else array(sp, length(sp))))
  handle
}
