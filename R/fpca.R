#' Functional principal components
#'
#' Returns what refund's `fpca.face()`, `fpca.sc()` and `fpca.ssvd()` return, under the same names, but with eigenfunctions of unit
#' L2 norm on `argvals`. **Not private.**
#'
#' @param Y Curves, in any form that [affr()] takes; `NA` only with `method = "sc"`.
#' @param argvals Grid of the curves; default even on \[0, 1\].
#' @param npc Number of components: a whole number, or below 1 the share of variance that they must explain. `NULL` with
#'   `method = "ssvd"`: chosen by a threshold.
#' @param method One of:
#'   * `"face"`: covariance smoothed by FACE;
#'   * `"dense"`: the plain covariance;
#'   * `"sc"`: sparse curves, by conditional expectation;
#'   * `"ssvd"`: smoothed singular value decomposition.
#' @param Y.pred Curves whose scores are wanted, on the same grid; default `Y`.
#' @param ... Settings of the Python class `FPCA`: `n_knots`, `n_basis`, `shrink`, `refine`, `quadrature`, `max_components`.
#' @param x An object of class `fdadp_fpca`.
#' @return A list of class `fdadp_fpca`: `mu`, `efunctions` (one a column), `evalues`, `npc`, `pve` (share of each), `sigma2`,
#'   `scores`, `Yhat`, `argvals`, `method`.
#' @examples
#' if (fdadp_available()) {
#'   weather <- canadian_weather()
#'   components <- fpca(weather$X, argvals = weather$s, npc = 0.99)
#'   components
#'   plot(components)
#' }
#' @export
fpca <- function(Y, argvals = NULL, npc = 0.95, method = c("face", "dense", "sc", "ssvd"), Y.pred = NULL, ...) {
  no_na(npc = npc, ...)
  method <- one_of(method, c("face", "dense", "sc", "ssvd"), "method")
  settings <- c(list(n_components = as_whole(npc), method = method), lapply(list(...), as_whole))
  y <- as_curves(Y, argvals, "Y")
  new <- if (!is.null(Y.pred)) as_curves(Y.pred, if (inherits(Y.pred, "fd")) y$grid, "Y.pred")$values
  result <- call_python("principal_components", Y = y$values, t = y$grid, settings = settings, Y_pred = new)
  vectors <- c("mu", "evalues", "pve", "argvals")
  result[vectors] <- lapply(result[vectors], as.double)
  structure(c(result, list(npc = length(result$evalues), method = method)), class = "fdadp_fpca")
}

#' @rdname fpca
#' @export
print.fdadp_fpca <- function(x, ...) {
  cat("Functional principal components (", x$method, "): ", x$npc, " on ", grid_text(x$argvals), "\n", sep = "")
  print(data.frame(eigenvalue = signif(x$evalues, 4), share = round(x$pve, 4)))
  cat("Noise variance:", format(x$sigma2, digits = 4), "\n")
  invisible(x)
}

#' @rdname fpca
#' @export
plot.fdadp_fpca <- function(x, ...) {
  graphics::matplot(x$argvals, x$efunctions, type = "l", xlab = "t", ylab = "eigenfunctions", ...)
  shares <- paste0("component ", seq_along(x$pve), ", ", format(100 * x$pve, digits = 3), " %")
  graphics::legend("topright", shares, col = seq_along(shares), lty = seq_along(shares), bty = "n", cex = 0.7)
  invisible(x)
}
