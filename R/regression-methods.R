#' Predictions of a regression on several terms
#'
#' @param object A fit of [fdadp()].
#' @param newdata A data frame or list with the columns that the formula names. Left out: the training rows.
#' @param type One of:
#'   * `"response"`: the mean, for family `"ordered"` the expected number of the category;
#'   * `"link"`: the linear predictor;
#'   * `"terms"`: what each term adds to the linear predictor;
#'   * `"sd"`: standard deviations of new numbers about their means, which vary in fits with `variance = ~ s(x)`;
#'   * `"probs"`: probabilities of the classes of families `"binomial"` and `"ordered"`.
#' @param se.fit Also give pointwise standard errors (of the linear predictor, with `type = "link"`, or of probabilities, with `type = "probs"`)?
#' @param t Where to predict, within the domain of the response; default its grid.
#' @param grids Grids of new matrices by column; default those of the fit.
#' @param interval `"prediction"`: also give pointwise prediction intervals for new responses.
#' @param level Nominal coverage of the intervals.
#' @param se What standard errors assume of residuals: `"curve"`, `"cluster"` (needs groups), `"iid"`,
#'   `"unconditional"`; default that of the fit.
#' @param unconditional `TRUE` is `se = "unconditional"`, as in mgcv: errors are independent, and smoothing parameters
#'   estimated (Gaussian fits by REML). Standard errors by curves and groups always include that they are estimated.
#' @param simultaneous Shall prediction intervals hold a whole new curve at once, not each point? They do in the share `level` of new curves (conformal prediction), or of new persons
#'   where the fit had groups.
#' @param exclude Names of terms to leave out of the predictor, as in mgcv: `"re(id)"` for a new person. Not with standard errors or intervals.
#' @param ... Not used.
#' @return A matrix with one predicted curve a row, or a vector where the response is a number; with `se.fit` or `interval` a list with `fit`, `se.fit`,
#'   `lwr`, `upr`. With `type = "terms"` a list of them by the names of the terms (a matrix with one column a term where the response is a number); with
#'   `type = "probs"` matrices with one column a class.
#' @examples
#' if (fdadp_available()) {
#'   sim <- simulate_affr(n = 60, n_points = 31)
#'   fit <- fdadp(Y ~ ff(X), data = sim)
#'   new <- predict(fit, list(X = sim$X[1:3, ]), se.fit = TRUE)
#'   dim(new$se.fit)
#' }
#' @export
predict.fdadp_regression <- function(object, newdata, type = c("response", "link", "terms", "sd", "probs"), se.fit = FALSE, t = NULL, grids = list(),
                                     interval = c("none", "prediction"), level = 0.95, se = NULL, unconditional = FALSE, exclude = NULL,
                                     simultaneous = FALSE, ...) {
  no_more(...)
  no_na(t = t, se.fit = se.fit, level = level)
  type <- one_of(type, c("response", "link", "terms", "sd", "probs"), "type")
  interval <- one_of(interval, c("none", "prediction"), "interval")
  if (type != "response" && interval != "none" || !type %in% c("response", "link", "probs") && se.fit) {
    input_error("type must be 'response' where intervals are asked for, and 'response', 'link' or 'probs' with se.fit, got '", type, "'")
  }
  if (!is.null(exclude) && !is.character(exclude)) input_error("exclude must be names of terms, got ", class(exclude)[1])
  if (length(exclude) && (se.fit || interval != "none" || type %in% c("sd", "probs"))) {
    input_error("exclude must be NULL with se.fit, interval or type = \"sd\" or \"probs\"")
  }
  if (type %in% c("sd", "probs") && !object$spec$scalar) input_error("type must be another than \"", type, "\" where the response is a curve")
  if (missing(newdata)) {
    columns <- object$spec$columns[names(object$expressions)]
    if (!length(columns)) columns <- list(rows = as_column(rep(0, object$n), "rows"))
    rows <- if (is.null(object$spec$long)) names_of(object$fitted.values) else row_names_of(NULL, columns)
    offset <- object$spec$offset
  } else {
    new <- new_columns(object, newdata, grids)
    columns <- new$columns
    rows <- new$rows
    offset <- new$offset
  }
  found <- call_on_fit("predict_terms", object,
    columns = columns, offset = offset, t = as_vector(t, "t"), kind = type, se = isTRUE(se.fit), errors = believed(object, se, unconditional), level = if (interval == "prediction") level,
    exclude = as.list(exclude), simultaneous = isTRUE(simultaneous)
  )
  if (type == "probs") {
    parts <- lapply(found[names(found) != "classes"], structure, dimnames = list(rows, unlist(found$classes)))
    return(if (isTRUE(se.fit)) parts else parts$fit)
  }
  response <- if (is.null(t)) object$spec$columns[[object$spec$response]]
  if (type == "terms") {
    parts <- lapply(found$terms, shaped, object$spec, response, rows)
    return(if (object$spec$scalar) do.call(cbind, parts) else parts)
  }
  found <- lapply(found, shaped, object$spec, response, rows)
  if (length(found) == 1) found$fit else found
}

names_of <- function(values) if (is.matrix(values)) rownames(values) else names(values)

#' Looking at a regression on several terms
#'
#' `coef()` without a term gives all coefficients, and `vcov()` gives their covariance. Their coordinates are those in
#' which penalties are diagonal, not mgcv's. With a term `coef()` gives its coefficient function on a grid with bands,
#' such as \eqn{\beta(s, t)} of `ff(X)`. `confint()` does so for several terms. `anova()` of one fit tests each term,
#' and of two nested fits those by which they differ. Both are Wald tests with the covariance of the fit (`se`), because
#' errors along a curve are seldom independent.
#'
#' @param object,x A fit of [fdadp()], or its summary.
#' @param ... Of `coef()` points of the axes, such as `s = c(0, 0.5), t = 0.2`, or `id = "p7"` of the curves of persons.
#'   Of `anova()` another fit. Else not used.
#' @param level Of the bands.
#' @param simultaneous Shall the band hold the whole function, not each point?
#' @param parm Name of a term, as `print()` shows it: `"ff(X)"`, `"s(t)"` (the mean curve), `"(Intercept)"`; of `confint()` names of terms, default
#'   all.
#' @param se What standard errors assume of residuals: `"curve"`, `"cluster"` (needs groups), `"iid"` (refund's),
#'   `"unconditional"`; default that of the fit.
#' @param unconditional `TRUE` is `se = "unconditional"`, as in mgcv: errors are independent, and smoothing parameters estimated (Gaussian fits by REML).
#' @param type Of residuals: `"response"`, `"pearson"`.
#' @param nsim,seed Number of simulated responses, and the seed (`NULL`: R's generator as it stands).
#' @return By method:
#'   * `coef()`: a named vector, or a data frame of coordinates, `value`, `se`, `lower` and `upper`.
#'   * `confint()`: a list of such data frames, which prints in a few lines a term.
#'   * `summary()`: a list with `terms`, a table of the tests, and `coefficients`, a matrix of those
#'     that are numbers.
#'   * `logLik()` takes points as independent, and `AIC()` and `BIC()` with it, as mgcv does.
#'   * `simulate()`: a list of responses like the training ones. Gaussian errors are whole residual curves drawn with
#'     replacement, so that they depend along the curve as those do.
#'   * `nobs()`: the number of rows.
#'   * `deviance()`: of the family, and for Gaussian responses the sum of squared residuals, over all points.
#'   * `df.residual()`: the number of points less `edf`.
#'   * `terms()`: R's terms object of the formula.
#'   * `family()`: R's family with the link of the fit.
#'   * `ranef()`, a generic of package nlme that lme4 hands on, gives the curves of persons of `re(id, covariance =
#'     "free")`. They are a matrix with one curve a person, named by their ids, at `t` (default: the grid of the
#'     response). `ranef(fit, se.fit = TRUE)` is a list of this matrix (`fit`) and of pointwise standard errors
#'     (`se.fit`). With slopes or sites it is a list of these by term, as `"re(id)"` and `"re(id):week"`.
#' @name fdadp-methods
#' @examples
#' if (fdadp_available()) {
#'   sim <- simulate_affr(n = 60, n_points = 31)
#'   fit <- fdadp(Y ~ ff(X), data = sim)
#'   summary(fit)
#'   head(confint(fit, "ff(X)", simultaneous = TRUE)[[1]])
#'   AIC(fit)
#' }
NULL

#' @rdname fdadp-methods
#' @export
coef.fdadp_regression <- function(object, parm = NULL, ..., level = 0.95, simultaneous = FALSE, se = NULL) {
  if (is.null(parm)) {
    no_more(...)
    values <- call_on_fit("coefficients_of", object)$coefficients
    return(stats::setNames(as.double(values), object$coefficient.names))
  }
  found <- call_on_fit("coefficient_function", object,
    term = if (is.character(parm)) factor_of(object, parm) else parm, points = axis_points(...), level = level, errors = believed(object, se), simultaneous = isTRUE(simultaneous)
  )
  as_frame(found)
}

# ranef(), of package nlme.
curves_of_persons <- function(object, t = NULL, se.fit = FALSE, ...) {
  no_more(...)
  own <- object$persons$levels
  if (is.null(own)) input_error("object must be a fit with re(id, covariance = \"free\") to have curves of persons")
  t <- if (is.null(t)) object$t else as.double(as_vector(t, "t"))
  response <- if (identical(t, object$t)) object$spec$columns[[object$spec$response]]
  found <- lapply(stats::setNames(nm = names(own)), function(term) {
    frame <- as_frame(call_on_fit("coefficient_function", object,
      term = term, points = list(t = array(t, length(t))), level = 0.95, errors = believed(object, NULL), simultaneous = FALSE
    ))
    as_rows <- function(values) as_labelled(matrix(values, length(own[[term]]), byrow = TRUE, dimnames = list(own[[term]], NULL)), response)
    if (isTRUE(se.fit)) list(fit = as_rows(frame$value), se.fit = as_rows(frame$se)) else as_rows(frame$value)
  })
  if (length(found) == 1) found[[1]] else found
}

# Points of axes by name, for Python.
axis_points <- function(...) {
  points <- list(...)
  if (!length(points)) {
    return(empty())
  }
  if (is.null(names(points)) || !all(nzchar(names(points)))) input_error("points must have the names of axes, got one without")
  lapply(points, function(v) if (is.numeric(v)) array(as.double(v), length(v)) else array(as.character(v), length(v)))
}

as_frame <- function(found) {
  as.data.frame(lapply(found, function(column) if (is.list(column)) unlist(lapply(column, function(v) if (is.null(v)) NA else v)) else as.vector(column)),
    stringsAsFactors = FALSE, check.names = FALSE, optional = TRUE
  )
}

#' @rdname fdadp-methods
#' @importFrom stats confint
#' @export
confint.fdadp_regression <- function(object, parm = NULL, level = 0.95, simultaneous = FALSE, se = NULL, ...) {
  no_more(...)
  if (is.null(parm)) parm <- names(object$term.edf)
  as_effects(lapply(stats::setNames(nm = parm), function(term) coef(object, term, level = level, simultaneous = simultaneous, se = se)))
}

as_effects <- function(frames) structure(frames, class = "fdadp_effects")

#' @export
print.fdadp_effects <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  for (term in names(x)) print_effect(term, x[[term]], digits)
  if (any(vapply(x, nrow, 1L) > 1L)) cat("\nAll points of a term are a data frame: [[\"", names(x)[which.max(vapply(x, nrow, 1L))], "\"]]\n", sep = "")
  invisible(x)
}

# A term in few lines: a number with its interval, levels as a table, of a function what it is over and where its band is without zero.
print_effect <- function(term, frame, digits) {
  shown <- c("value", "se", "lower", "upper")
  axes <- setdiff(names(frame), shown)
  cat("\n", term, "\n", sep = "")
  if (nrow(frame) <= 12L) {
    print(format(frame, digits = digits), row.names = FALSE)
    return(invisible())
  }
  span <- function(v) if (is.numeric(v)) paste(format(range(v), digits = digits, trim = TRUE), collapse = " to ") else paste(unique(v), collapse = ", ")
  cat("  over ", paste0(axes, " (", vapply(frame[axes], span, ""), ")", collapse = " and "), ", ", nrow(frame), " points\n", sep = "")
  known <- frame[!is.na(frame$value), ]
  cat("  values ", span(known$value), "; bands ", span(c(known$lower, known$upper)), "\n", sep = "")
  cat("  the band is without zero at ", round(100 * mean(known$lower > 0 | known$upper < 0)), " % of the points\n", sep = "")
}

#' @rdname fdadp-methods
#' @importFrom stats vcov
#' @export
vcov.fdadp_regression <- function(object, se = NULL, unconditional = FALSE, ...) {
  no_more(...)
  found <- call_on_fit("covariance_of_coefficients", object, errors = believed(object, se, unconditional))$covariance
  dimnames(found) <- list(object$coefficient.names, object$coefficient.names)
  found
}

#' @rdname fdadp-methods
#' @importFrom stats anova
#' @export
anova.fdadp_regression <- function(object, ..., se = NULL) {
  others <- list(...)
  if (!length(others)) {
    return(tests_of(object, se))
  }
  if (length(others) > 1 || !inherits(others[[1]], "fdadp_regression")) input_error("anova() must have one fit of fdadp() or two")
  found <- as_frame(call_on_fit("compare_models", object, other = as_handle(others[[1]]), errors = believed(object, se)))
  rownames(found) <- c("smaller", "larger")
  as_test(found, "Wald test of the terms by which the models differ")
}

tests_of <- function(object, se = NULL) {
  found <- as_frame(call_on_fit("tests_of_terms", object, errors = believed(object, se)))
  rownames(found) <- found$term
  as_test(found[names(found) != "term"], paste0("Wald tests of the terms, errors '", if (is.null(se)) object$se else se, "'"))
}

as_test <- function(table, heading) {
  names(table)[names(table) == "p"] <- "Pr(>Wald)" # so print.anova() knows it
  table[] <- lapply(table, function(column) replace(column, is.nan(column), NA)) # which it leaves blank
  structure(table, heading = heading, class = c("anova", "data.frame"))
}

#' @rdname fdadp-methods
#' @export
summary.fdadp_regression <- function(object, ...) {
  found <- call_on_fit("coefficient_table", object)
  keep <- c("call", "formula", "family", "n", "t", "edf", "r.sq", "dev.expl", "sigma2", "criterion", "sp", "smoothing", "se", "persons")
  structure(c(unclass(object)[intersect(keep, names(object))], list(
    terms = tests_of(object), coefficients = coefficient_table(found$table), notes = as.character(found$notes)
  )), class = "summary.fdadp_regression")
}

coefficient_table <- function(found) {
  columns <- c("estimate", "std. error", "t", "Pr(>|t|)") # printCoefmat() knows the last
  matrix(as.double(unlist(found[columns])), ncol = 4, dimnames = list(unlist(found$name), columns))
}

#' @rdname fdadp-methods
#' @export
print.summary.fdadp_regression <- function(x, ...) {
  regression_head(x)
  cat("\n")
  if (nrow(x$coefficients)) {
    stats::printCoefmat(x$coefficients, signif.stars = FALSE, has.Pvalue = TRUE)
    cat("\n")
  }
  print(x$terms)
  cat("\nR-sq. = ", format(x$r.sq, digits = 4), "   deviance explained = ", format(100 * x$dev.expl, digits = 4), " %\n", x$smoothing, " = ",
    format(x$criterion, digits = 6), "   scale = ", format(x$sigma2, digits = 4), "   n = ", x$n, if (length(x$t)) paste(" curves on", grid_text(x$t)), "\n",
    sep = ""
  )
  writeLines(x$notes)
  if (!is.null(x$persons)) {
    cat("\n")
    print(x$persons$variances, digits = 4)
    writeLines(strwrap(x$persons$notes, exdent = 2))
  }
  invisible(x)
}

#' @rdname fdadp-methods
#' @export
print.fdadp_regression <- function(x, ...) {
  regression_head(x)
  cat("\nEffective degrees of freedom:\n")
  print(signif(x$term.edf, 4))
  cat("total ", format(x$edf, digits = 4), "; R-sq. = ", format(x$r.sq, digits = 4), "; n = ", x$n, "\n", sep = "")
  invisible(x)
}

regression_head <- function(x) {
  cat("Functional regression, family ", x$family, "\n", sep = "")
  cat(deparse(x$formula), sep = "\n")
  cat("Fitted without privacy: do not release.\n")
}

#' @rdname fdadp-methods
#' @export
fitted.fdadp_regression <- function(object, ...) object$fitted.values

#' @rdname fdadp-methods
#' @export
residuals.fdadp_regression <- function(object, type = c("response", "pearson"), ...) {
  type <- one_of(type, c("response", "pearson"), "type")
  if (type == "response") {
    return(object$residuals)
  }
  mean <- if (object$family == "ordered") stats::predict(object, type = "link") else object$fitted.values
  object$residuals / sqrt(variance_of(object$family, mean, object$theta))
}

# By the mean; of ordered categories by the linear predictor.
variance_of <- function(family, mean, theta = NULL) {
  if (family == "ordered") {
    above <- stats::plogis(outer(mean, theta, "-"))
    return(drop(1 + above %*% (2 * seq_along(theta) + 1)) - (1 + rowSums(above))^2)
  }
  switch(family,
    gaussian = 1,
    binomial = mean * (1 - mean),
    poisson = mean,
    gamma = mean^2,
    negative_binomial = mean + mean^2 / theta,
    scaled_t = theta[2]^2 * theta[1] / (theta[1] - 2)
  )
}

#' @rdname fdadp-methods
#' @importFrom stats logLik
#' @export
logLik.fdadp_regression <- function(object, ...) {
  if (is.null(object$loglik)) input_error("object must be a fit without terms of the variance: mean and variance are fitted in turn, and no one criterion is minimised")
  structure(object$loglik, df = object$df, nobs = sum(!is.na(object$residuals)), class = "logLik")
}

#' @rdname fdadp-methods
#' @export
nobs.fdadp_regression <- function(object, ...) object$n

#' @rdname fdadp-methods
#' @importFrom stats sigma
#' @export
sigma.fdadp_regression <- function(object, ...) sqrt(object$sigma2)

#' @rdname fdadp-methods
#' @importFrom stats formula
#' @export
formula.fdadp_regression <- function(x, ...) x$formula

#' @rdname fdadp-methods
#' @importFrom stats simulate
#' @export
simulate.fdadp_regression <- function(object, nsim = 1, seed = NULL, ...) {
  no_more(...)
  if (!is.null(seed)) set.seed(seed)
  mean <- object$fitted.values
  size <- length(mean)
  draw <- switch(object$family,
    gaussian = function() {
      scale <- if (is.list(object$spec$settings$variance)) stats::predict(object, type = "sd") else sqrt(object$sigma2)
      left <- as.matrix(object$residuals / scale)
      wide <- sqrt(length(left) / sum(left^2)) # residuals are smaller than errors
      drawn <- left[sample(nrow(left), replace = TRUE), , drop = FALSE] * wide * scale
      if (object$spec$scalar) mean + c(drawn) else mean + unname(drawn)
    },
    binomial = function() mean * 0 + stats::rbinom(size, 1, mean),
    poisson = function() mean * 0 + stats::rpois(size, mean),
    gamma = function() mean * 0 + stats::rgamma(size, 1 / object$sigma2, scale = mean * object$sigma2),
    negative_binomial = function() mean * 0 + stats::rnbinom(size, object$theta, mu = mean),
    scaled_t = function() mean + object$theta[2] * stats::rt(size, object$theta[1]),
    ordered = function() mean * 0 + findInterval(stats::predict(object, type = "link") + stats::rlogis(size), object$theta) + 1
  )
  stats::setNames(replicate(nsim, draw(), simplify = FALSE), paste0("sim_", seq_len(nsim)))
}
