#' Pictures of a regression on several terms
#'
#' A picture of each term's coefficient function: curves with their bands, surfaces as heat maps with contour lines (of more arguments, at the
#' middle of the others), the levels of a factor side by side.
#'
#' @param x A fit of [fdadp()].
#' @param terms Names of terms; default all but the constant.
#' @param level Of the bands, pointwise unless `simultaneous`.
#' @param simultaneous Shall the band hold the whole function?
#' @param ... Passed on to [graphics::matplot()] or [graphics::image()].
#' @return The list of data frames that is shown, as [coef()][fdadp-methods] gives them, invisibly.
#' @examples
#' if (fdadp_available()) {
#'   sim <- simulate_affr(n = 60, n_points = 31)
#'   plot(fdadp(Y ~ ff(X), data = sim))
#' }
#' @export
plot.fdadp_regression <- function(x, terms = NULL, level = 0.95, simultaneous = FALSE, ...) {
  if (is.null(terms)) terms <- setdiff(names(x$term.edf), "(Intercept)")
  shown <- confint(x, terms, level = level, simultaneous = simultaneous)
  if (length(shown) > 1) {
    old <- graphics::par(mfrow = rev(grDevices::n2mfrow(length(shown))), mar = c(4, 4, 2, 1))
    on.exit(graphics::par(old))
  }
  for (term in names(shown)) draw_effect(shown[[term]], term, ...)
  invisible(shown)
}

draw_effect <- function(frame, title, ...) {
  axes <- setdiff(names(frame), c("value", "se", "lower", "upper"))
  numeric <- axes[vapply(frame[axes], is.numeric, TRUE)]
  groups <- if (length(axes) > length(numeric)) frame[[setdiff(axes, numeric)[1]]] else rep("", nrow(frame))
  for (axis in utils::head(numeric, -2)) { # of more than two, at the middle
    at <- unique(frame[[axis]])
    keep <- frame[[axis]] == at[ceiling(length(at) / 2)]
    frame <- frame[keep, ]
    groups <- groups[keep]
  }
  numeric <- utils::tail(numeric, 2)
  if (!length(numeric)) {
    at <- seq_len(nrow(frame))
    graphics::plot(at, frame$value,
      ylim = range(frame$lower, frame$upper), xlim = c(0.5, nrow(frame) + 0.5), xaxt = "n", xlab = "", ylab = "", main = title, pch = 19
    )
    graphics::axis(1, at, if (length(axes)) as.character(frame[[axes[1]]]) else "")
    graphics::segments(at, frame$lower, at, frame$upper)
  } else if (length(numeric) == 1) {
    levels <- unique(groups)
    parts <- split(frame, factor(groups, levels))
    colours <- if (length(levels) > 1) grDevices::hcl.colors(length(levels), "Dark 3") else "black"
    ys <- do.call(cbind, lapply(parts, function(p) cbind(p$value, p$lower, p$upper)))
    graphics::matplot(parts[[1]][[numeric]], ys,
      type = "l", lty = c(1, 2, 2), col = rep(colours, each = 3), xlab = numeric, ylab = "", main = title, ...
    )
    if (length(levels) > 1) graphics::legend("topright", levels, col = colours, lty = 1, bty = "n", cex = 0.8)
  } else {
    if (any(nzchar(groups))) frame <- frame[groups == groups[1], ]
    frame <- frame[order(frame[[numeric[2]]], frame[[numeric[1]]]), ]
    x <- sort(unique(frame[[numeric[1]]]))
    y <- sort(unique(frame[[numeric[2]]]))
    z <- matrix(frame$value, length(x))
    graphics::image(x, y, z,
      zlim = c(-1, 1) * max(abs(z), 1e-300, na.rm = TRUE), col = grDevices::hcl.colors(64, "Blue-Red 3"), xlab = numeric[1], ylab = numeric[2],
      main = title, ...
    )
    graphics::contour(x, y, z, add = TRUE)
  }
}
