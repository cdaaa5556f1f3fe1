#' Tables for broom
#'
#' Methods of `tidy()`, `glance()` and `augment()`, generics of package generics, which broom hands on: they are there once it is loaded, and
#' this package does not need it.
#'
#' @param x A fit of [fdadp()] or [dp_fdadp()]; `glance()` and `augment()` also of [affr()].
#' @param conf.int `tidy()`: give bands of coefficient functions instead, one row a point?
#' @param conf.level Their level.
#' @param data Data frame with one row a curve, or number, to which columns are added; default: the columns of the fit that are numbers or labels.
#' @param ... Not used.
#' @return Data frames:
#'   * `tidy()`: a row for each term, with `edf`, `statistic`, `df` and `p.value`. A private fit has its share of what
#'     is explained, `importance`. With `conf.int` there is a row for each point of each coefficient function. It has
#'     `term`, its axes, `estimate`, `std.error`, `conf.low` and `conf.high`.
#'   * `glance()`: one row.
#'   * `augment()`: `data` with `.fitted` and `.resid`, matrices where responses are curves; of a private fit an error.
#' @name fdadp-tidy
#' @examples
#' if (fdadp_available()) {
#'   sim <- simulate_affr(n = 60, n_points = 31)
#'   fit <- fdadp(Y ~ ff(X), data = sim)
#'   # library(broom); tidy(fit); tidy(fit, conf.int = TRUE); glance(fit); augment(fit)
#'   fit
#' }
NULL

# Called when this package is loaded: methods for generics of packages that need not be there.
register_methods <- function() {
  methods <- list(
    generics = list(
      tidy = list(fdadp_regression = tidy_regression, dp_fdadp = tidy_private),
      glance = list(fdadp_regression = glance_regression, affr = glance_affr, dp_fdadp = glance_private),
      augment = list(fdadp_regression = augment_fit, affr = augment_fit, dp_fdadp = augment_fit)
    ),
    nlme = list(ranef = list(fdadp_regression = curves_of_persons))
  )
  for (package in names(methods)) register_with(package, methods[[package]])
}

# Now, or when the package is loaded.
register_with <- function(package, methods) {
  register <- function(...) {
    for (generic in names(methods)) {
      for (class in names(methods[[generic]])) {
        registerS3method(generic, class, methods[[generic]][[class]], envir = asNamespace(package))
      }
    }
  }
  if (isNamespaceLoaded(package)) register() else setHook(packageEvent(package, "onLoad"), register)
}

tidy_regression <- function(x, conf.int = FALSE, conf.level = 0.95, ...) {
  no_more(...)
  if (isTRUE(conf.int)) {
    return(tidy_bands(x, conf.level))
  }
  found <- tests_of(x)
  table <- data.frame(term = rownames(found), edf = found$edf, row.names = NULL)
  table$statistic <- found$statistic
  table$df <- found$df
  table$p.value <- found[["Pr(>Wald)"]]
  table
}

tidy_private <- function(x, conf.int = FALSE, conf.level = 0.95, ...) {
  no_more(...)
  if (isTRUE(conf.int)) {
    return(tidy_bands(x, conf.level))
  }
  data.frame(term = x$term.names, importance = unname(x$importances[x$term.names]))
}

# Bands of all terms, one under another; axes that a term does not have are NA.
tidy_bands <- function(x, level) {
  bands <- stats::confint(x, level = level)
  own <- c(value = "estimate", se = "std.error", lower = "conf.low", upper = "conf.high")
  axes <- unique(unlist(lapply(bands, function(b) setdiff(names(b), names(own)))))
  rows <- lapply(names(bands), function(term) {
    band <- bands[[term]]
    band[setdiff(axes, names(band))] <- NA
    found <- data.frame(term = rep(term, nrow(band)), band[axes], band[names(own)], check.names = FALSE)
    stats::setNames(found, c("term", axes, own))
  })
  do.call(rbind, rows)
}

glance_regression <- function(x, ...) {
  no_more(...)
  data.frame(
    r.squared = x$r.sq, deviance.explained = x$dev.expl, sigma = stats::sigma(x), edf = x$edf, logLik = as.numeric(stats::logLik(x)),
    AIC = stats::AIC(x), BIC = stats::BIC(x), deviance = stats::deviance(x), df.residual = stats::df.residual(x), nobs = stats::nobs(x)
  )
}

glance_affr <- function(x, ...) {
  no_more(...)
  table <- data.frame(r.squared = x$r.sq, sigma = stats::sigma(x), edf = sum(x$edf), components = length(x$edf), nobs = stats::nobs(x))
  if (!is.null(x$ledger)) table$epsilon <- x$ledger$epsilon
  table
}

glance_private <- function(x, ...) {
  no_more(...)
  delta <- if (is.null(x$ledger$delta)) NA_real_ else x$ledger$delta
  data.frame(r.squared = x$r.sq, sigma = stats::sigma(x), nobs = stats::nobs(x), epsilon = x$ledger$epsilon, delta = delta)
}

augment_fit <- function(x, data = NULL, ...) {
  no_more(...)
  fitted <- stats::fitted(x) # an error, where the fit is private
  if (is.null(data)) {
    plain <- Filter(function(column) column$kind != "curves", x$spec$columns)
    data <- as.data.frame(lapply(plain, function(column) c(column$values)), check.names = FALSE, optional = TRUE)
    if (!length(plain)) data <- data.frame(row.names = seq_len(NROW(fitted)))
  }
  if (NROW(data) != NROW(fitted)) input_error("data must have ", NROW(fitted), " rows, as the fit has, got ", NROW(data))
  data$.fitted <- fitted
  data$.resid <- stats::residuals(x)
  data
}
