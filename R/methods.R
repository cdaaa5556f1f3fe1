#' Predictions of an additive function-on-function regression
#'
#' @param object A fit of [affr()] or [dp_affr()].
#' @param newdata New predictor curves, in any form that [affr()] takes; for a fit by a formula also a data frame or list in
#'   which its term is found. Left out: the fitted values, which a private fit does not have.
#' @param s,t Grid of `newdata` (default: that of the fit), and where to predict, within the domain of Y.
#' @param se.fit Also give pointwise standard errors of the predicted mean curves?
#' @param interval `"prediction"`: also give pointwise prediction intervals for new curves. In a private fit they are wide enough
#'   for the added noise too.
#' @param level Nominal coverage of the intervals.
#' @param ... Not used.
#' @return A matrix with one predicted curve a row; with `se.fit` or `interval` a list of matrices `fit`, `se.fit`, `lwr`, `upr`.
#' @examples
#' if (fdadp_available()) {
#'   weather <- canadian_weather()
#'   test <- seq(3, 35, by = 5)
#'   fit <- affr(weather$Y[-test, ], weather$X[-test, ], s = weather$s, t = weather$t)
#'   new <- suppressWarnings(predict(fit, weather$X[test, ], se.fit = TRUE, interval = "prediction"))
#'   print(rmspe(weather$Y[test, ], new$fit))
#'   print(coverage(weather$Y[test, ], new$lwr, new$upr))
#' }
#' @export
predict.affr <- function(object, newdata, t = NULL, s = NULL, se.fit = FALSE, interval = c("none", "prediction"), level = 0.95, ...) {
  no_more(...)
  no_na(t = t, s = s, se.fit = se.fit, level = level)
  interval <- one_of(interval, c("none", "prediction"), "interval")
  if (missing(newdata)) {
    fitted <- stats::fitted(object) # an error, where the fit is private
    if (is.null(t) && !se.fit && interval == "none") {
      return(fitted)
    }
    input_error("newdata must be given where more than the fitted values is asked for: the fit does not keep X")
  }
  x <- as_curves(new_curves(object, newdata), s, "X", private = FALSE)
  result <- call_on(object, "predict",
    X = x$values, t = as_vector(t, "t"), s = x$grid, se = isTRUE(se.fit), level = if (interval == "none") NULL else level
  )
  result <- lapply(result, function(values) {
    rownames(values) <- rownames(x$values)
    if (is.null(t)) as_labelled(values, object$y.labels) else values
  })
  if (length(result) == 1) result$fit else result
}

new_curves <- function(object, newdata) {
  by_name <- !is.null(object$term) && is.list(newdata) && !inherits(newdata, "fd")
  if (!by_name) {
    return(newdata)
  }
  term <- str2lang(object$term)
  absent <- setdiff(all.vars(term), names(newdata))
  if (length(absent)) input_error("newdata must hold ", absent[1], ", of which the formula speaks, got ", paste(names(newdata), collapse = ", "))
  eval(term, newdata, baseenv())
}

#' The fitted surface F
#'
#' @param object A fit of [affr()] or [dp_affr()].
#' @param x,s,t Values of the predictor and points of the domains of X and Y: where to evaluate.
#' @param se.fit Give standard errors, too; those of private fits count the noise of privacy.
#' @return `surface()` returns the array F\[x, s, t\], centred. For each (s, t) it has mean zero over the training
#'   curves, or in a private fit over those of the public prior. With `se.fit` it is a list of this array (`fit`) and of
#'   such an array of standard errors (`se.fit`). `coef()` returns the array (component, x, s) of the values from which
#'   it is made.
#' @examples
#' if (fdadp_available()) {
#'   weather <- canadian_weather()
#'   fit <- affr(weather$Y, weather$X, npc = 2)
#'   dim(surface(fit, x = c(-10, 0, 10), s = 0.5, t = c(0, 1)))
#' }
#' @export
surface <- function(object, x, s, t, se.fit = FALSE) {
  no_na(x = x, s = s, t = t)
  found <- call_on(object, "surface", x = as_vector(x, "x"), s = as_vector(s, "s"), t = as_vector(t, "t"), se = se.fit)
  if (se.fit) found else found$fit
}

#' Looking at a fit
#'
#' `summary()` gives what `print()` shows as a list with a table of the components.
#'
#' @param object,x A fit of [affr()] or [dp_affr()], or its summary.
#' @param nsim,seed Number of simulated responses, and the seed (`NULL`: R's generator as it stands).
#' @param ... Not used.
#' @return By method:
#'   * `coef()`: the array (component, x, s) of values of the surface's components at evenly spread points.
#'   * `fitted()` and `residuals()`: matrices, one training curve a row. For a private fit they are an error, as it
#'     keeps neither.
#'   * `deviance()`: the sum of squares of the residuals. It is an error for a private fit, too.
#'   * `sigma()`: the residual standard deviation, over all t.
#'   * `nobs()`: the number of curves.
#'   * `df.residual()`: that less `edf`, for each component.
#'   * `formula()` and `terms()`: of a fit by a formula.
#'   * `simulate()`: a list of responses, with whole residual curves drawn with replacement.
#'
#'   Likelihood and tests are there for the same model by [fdadp()], with `response_basis = "eigen"`.
#' @name affr-methods
NULL

#' @rdname affr-methods
#' @export
summary.affr <- function(object, ...) {
  k <- length(object$edf)
  components <- data.frame(pve = object$pve, edf = object$edf, row.names = paste("component", seq_len(k)))
  if (!inherits(object, "dp_affr") || object$method == "published") {
    components$lambda.x <- object$sp[, 1]
    components$lambda.s <- object$sp[, 2]
  }
  keep <- c("call", "method", "n", "s", "t", "x.range", "r.sq", "sigma2", "private", "adjacency", "epsilon", "delta", "ledger")
  structure(c(unclass(object)[intersect(keep, names(object))], list(
    components = components, text = call_on(object, "summary")$text
  )), class = "summary.affr")
}

#' @rdname affr-methods
#' @export
print.summary.affr <- function(x, ...) {
  print_head(x)
  cat("\nCurves: ", x$n, "; X on ", grid_text(x$s), ", values ", paste(signif(x$x.range, 4), collapse = " to "), "; Y on ",
    grid_text(x$t), "\n\n",
    sep = ""
  )
  print(signif(x$components, 4))
  cat("\nR-sq. = ", format(x$r.sq, digits = 4), "   noise variance = ", format(x$sigma2, digits = 4),
    "   smoothing: ", x$method, "\n",
    sep = ""
  )
  invisible(x)
}

#' @rdname affr-methods
#' @export
print.affr <- function(x, ...) {
  print_head(x)
  cat("\nn = ", x$n, ", ", length(x$edf), " components, edf ", paste(format(x$edf, digits = 4), collapse = " "),
    "; R-sq. = ", format(x$r.sq, digits = 4), "\n",
    sep = ""
  )
  invisible(x)
}

print_head <- function(x) {
  cat("Additive function-on-function regression\n")
  if (!is.null(x$call)) cat(deparse(x$call), sep = "\n")
  if (is.null(x$ledger)) cat("Fitted without privacy: do not release.\n") else cat(x$ledger$headline, "\n", sep = "")
}

grid_text <- function(grid) paste0(length(grid), " points on [", signif(min(grid), 4), ", ", signif(max(grid), 4), "]")

#' @rdname affr-methods
#' @export
coef.affr <- function(object, ...) object$coefficients

#' @rdname affr-methods
#' @export
fitted.affr <- function(object, ...) object$fitted.values

#' @rdname affr-methods
#' @export
residuals.affr <- function(object, ...) object$residuals

#' @rdname affr-methods
#' @export
fitted.dp_affr <- function(object, ...) {
  privacy_error(
    "fitted values of the training curves are not kept by a private fit: they would not be private; ",
    "give new curves to predict()"
  )
}

#' @rdname affr-methods
#' @export
residuals.dp_affr <- function(object, ...) {
  privacy_error("residuals of the training curves are not kept by a private fit: they would not be private")
}

#' @rdname affr-methods
#' @importFrom stats deviance sigma nobs
#' @export
deviance.affr <- function(object, ...) sum(stats::residuals(object)^2, na.rm = TRUE)

#' @rdname affr-methods
#' @export
sigma.affr <- function(object, ...) sqrt(mean(object$residual.variance))

#' @rdname affr-methods
#' @export
nobs.affr <- function(object, ...) object$n

#' Pictures of a fit
#'
#' @param x A fit of [affr()] or [dp_affr()].
#' @param t Points of the domain of Y at which F(x, s, t) is shown; default: three, evenly spread.
#' @param type One of:
#'   * `"image"`: heat maps with contour lines and a key of colours, hatched where no training curve was (of a private
#'     fit that is not known);
#'   * `"persp"`: in perspective;
#'   * `"components"`: mean and eigenfunctions.
#' @param n Number of grid points in x and in s.
#' @param ... Passed on to [graphics::image()], [graphics::persp()] or [graphics::matplot()].
#' @return The array of surfaces (or the matrix of functions) that is shown, invisibly.
#' @examples
#' if (fdadp_available()) {
#'   weather <- canadian_weather()
#'   fit <- affr(weather$Y, weather$X, s = weather$s, t = weather$t, npc = 2)
#'   plot(fit, t = c(0.1, 0.5))
#' }
#' @export
plot.affr <- function(x, t = NULL, type = c("image", "persp", "components"), n = 40, ...) {
  type <- one_of(type, c("image", "persp", "components"), "type")
  if (type == "components") {
    functions <- cbind(mean = x$mu, x$efunctions)
    colnames(functions) <- c("mean", paste0("phi", seq_len(ncol(x$efunctions))))
    old <- graphics::par(mfrow = c(1, 2))
    on.exit(graphics::par(old))
    graphics::matplot(x$t, functions[, 1], type = "l", xlab = "t", ylab = "mean of Y", ...)
    graphics::matplot(x$t, functions[, -1], type = "l", xlab = "t", ylab = "eigenfunctions of Y", ...)
    shares <- paste0("component ", seq_along(x$pve), ", ", format(100 * x$pve, digits = 3), " %")
    graphics::legend("topright", shares, col = seq_along(shares), lty = seq_along(shares), bty = "n", cex = 0.7)
    return(invisible(functions))
  }
  if (is.null(t)) t <- stats::quantile(range(x$t), c(0.1, 0.5, 0.9), names = FALSE)
  at_x <- seq(x$x.range[1], x$x.range[2], length.out = n)
  at_s <- seq(min(x$s), max(x$s), length.out = n)
  values <- surface(x, at_x, at_s, t)
  old <- graphics::par(mfrow = rev(grDevices::n2mfrow(length(t))), mar = if (type == "persp") c(1, 1, 2, 1) else c(4, 4, 2, 1))
  on.exit(graphics::par(old))
  limits <- c(-1, 1) * max(abs(values))
  for (j in seq_along(t)) {
    title <- paste0("F(x, s, ", signif(t[j], 3), ")")
    shown <- base::t(values[, , j])
    if (type == "persp") {
      graphics::persp(at_s, at_x, shown,
        zlim = limits, theta = -40, phi = 25, xlab = "s", ylab = "x", zlab = "F", main = title,
        ticktype = "detailed", col = "grey95", border = "grey40", cex.axis = 0.7, ...
      )
    } else {
      heat_map(at_s, at_x, shown, c("s", "x"), title, limits[2], hatched = unseen(x, at_s, at_x), why = "no curve was there", ...)
    }
  }
  invisible(values)
}

# Where no training curve came: outside of their values at s. A private fit does not know.
unseen <- function(fit, s, x) {
  if (is.null(fit$x.seen)) {
    return(NULL)
  }
  low <- stats::approx(fit$s, fit$x.seen[1, ], s, rule = 2)$y
  high <- stats::approx(fit$s, fit$x.seen[2, ], s, rule = 2)$y
  outer(low, x, `>`) | outer(high, x, `<`)
}
