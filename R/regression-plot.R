#' Pictures of a regression on several terms
#'
#' Draws each term's coefficient function. Curves have their bands, and the levels of a factor stand side by side.
#' Surfaces are heat maps with contour lines and a key of colours; of more arguments, they are drawn at the middle of
#' the others. A heat map is hatched where its band holds zero: there not even the sign is known.
#'
#' @param x A fit of [fdadp()] or [dp_fdadp()], whose bands include the noise.
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
  draw_effects(stats::confint(x, terms, level = level, simultaneous = simultaneous), level, ...)
}

#' @rdname plot.fdadp_regression
#' @export
plot.dp_fdadp <- function(x, terms = NULL, level = 0.95, ...) {
  if (is.null(terms)) terms <- setdiff(x$term.names, "(Intercept)")
  draw_effects(stats::confint(x, terms, level = level), level, ...)
}

draw_effects <- function(shown, level, ...) {
  if (length(shown) > 1) {
    old <- graphics::par(mfrow = rev(grDevices::n2mfrow(length(shown))), mar = c(4, 4, 2, 1))
    on.exit(graphics::par(old))
  }
  for (term in names(shown)) draw_effect(shown[[term]], term, level, ...)
  invisible(shown)
}

draw_effect <- function(frame, title, level, ...) {
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
    draw_points(frame, if (length(axes)) as.character(frame[[axes[1]]]) else "", title, level)
  } else if (length(numeric) == 1) {
    draw_curves(frame, numeric, groups, title, level, ...)
  } else {
    if (any(nzchar(groups))) title <- paste0(title, ", ", groups[1])
    draw_surface(frame[groups == groups[1], ], numeric, title, level, ...)
  }
}

band_text <- function(level) paste0(format(100 * level), " % band")

draw_points <- function(frame, labels, title, level) {
  at <- seq_len(nrow(frame))
  graphics::plot(at, frame$value,
    ylim = range(frame$lower, frame$upper), xlim = c(0.5, nrow(frame) + 0.5), xaxt = "n", xlab = "", ylab = "", main = title, pch = 19
  )
  graphics::axis(1, at, labels)
  graphics::segments(at, frame$lower, at, frame$upper)
  graphics::legend("topright", c("estimate", band_text(level)), pch = c(19, NA), lty = c(NA, 1), bty = "n", cex = 0.8)
}

MOST_CURVES <- 12L

draw_curves <- function(frame, axis, groups, title, level, ...) {
  levels <- unique(groups)
  parts <- split(frame, factor(groups, levels))
  several <- length(levels) > 1
  if (length(levels) > MOST_CURVES) { # of many persons: their curves alone
    ys <- do.call(cbind, lapply(parts, `[[`, "value"))
    graphics::matplot(parts[[1]][[axis]], ys, type = "l", lty = 1, col = "grey40", xlab = axis, ylab = "", main = title, ...)
    return(invisible())
  }
  colours <- if (several) grDevices::hcl.colors(length(levels), "Dark 3") else "black"
  ys <- do.call(cbind, lapply(parts, function(p) cbind(p$value, p$lower, p$upper)))
  graphics::matplot(parts[[1]][[axis]], ys,
    type = "l", lty = c(1, 2, 2), col = rep(colours, each = 3), xlab = axis, ylab = "", main = title, ...
  )
  graphics::legend("topright", c(if (several) levels else "estimate", band_text(level)),
    col = c(colours, "black"), lty = c(rep(1, length(levels)), 2), bty = "n", cex = 0.8
  )
}

draw_surface <- function(frame, axes, title, level, ...) {
  frame <- frame[order(frame[[axes[2]]], frame[[axes[1]]]), ]
  x <- sort(unique(frame[[axes[1]]]))
  y <- sort(unique(frame[[axes[2]]]))
  unsure <- matrix(frame$lower <= 0 & frame$upper >= 0, length(x))
  heat_map(x, y, matrix(frame$value, length(x)), axes, title, hatched = unsure, why = paste(band_text(level), "holds 0"), ...)
}

# Red above and blue below zero, with a key at the right; hatched where told, and why is said under the title.
heat_map <- function(x, y, z, axes, title, limit = max(abs(z), 1e-300, na.rm = TRUE), hatched = NULL, why = "", ...) {
  colours <- grDevices::hcl.colors(64, "Blue-Red 3")
  old <- graphics::par(mar = graphics::par("mar") + c(0, 0, 0, 3))
  on.exit(graphics::par(mar = old$mar))
  graphics::image(x, y, z, zlim = c(-limit, limit), col = colours, xlab = axes[1], ylab = axes[2], main = title, ...)
  if (any(hatched, na.rm = TRUE)) {
    hatch(x, y, hatched)
    graphics::mtext(paste("hatched:", why), side = 1, line = 3, adj = 1, cex = 0.6)
  }
  graphics::contour(x, y, z, add = TRUE)
  key(colours, limit)
}

# A short stroke in each cell, so that strokes of neighbours make lines.
hatch <- function(x, y, where) {
  at <- which(where, arr.ind = TRUE)
  half <- function(points) if (length(points) > 1) stats::median(diff(points)) / 2 else 0.5
  graphics::segments(x[at[, 1]] - half(x), y[at[, 2]] - half(y), x[at[, 1]] + half(x), y[at[, 2]] + half(y), col = "grey45", lwd = 0.6)
}

# Colours and their values, in the right margin.
key <- function(colours, limit) {
  box <- graphics::par("usr")
  wide <- box[2] - box[1]
  at <- seq(box[3], box[4], length.out = length(colours) + 1)
  graphics::rect(box[2] + 0.03 * wide, utils::head(at, -1), box[2] + 0.07 * wide, at[-1], col = colours, border = NA, xpd = NA)
  ticks <- pretty(c(-limit, limit), 4)
  ticks <- ticks[abs(ticks) <= limit]
  where <- box[3] + (ticks + limit) / (2 * limit) * (box[4] - box[3])
  graphics::text(box[2] + 0.08 * wide, where, format(ticks), adj = c(0, 0.5), cex = 0.7, xpd = NA)
}
