#' Questions to a fitted regression: contrasts of levels, average slopes, differences of means
#'
#' `level_contrasts()` compares the levels of a factor, `average_slopes()` says by how much the mean changes with a number, `mean_difference()` how far apart
#' the means of two sets of rows are. Where responses are curves all of it is along t. Ordinary fits of [fdadp()] and private ones of [dp_fdadp()]; of a private fit
#' the answers come from what was released, and nothing more is spent.
#'
#' @param object A fit.
#' @param column Name of a factor (`level_contrasts()`) or of a column of numbers (`average_slopes()`).
#' @param how Each pair of levels, each level less the first, each less the mean of all, or each less the one before.
#' @param newdata,newdata1,newdata2 Rows to average over, as of `predict()`, with all columns of the formula: that of the question is changed in them. Default: the training rows, which a private fit does not keep.
#' @param average Shall answers be averaged over the rows? Else there is one for each row.
#' @param t Points of the response; default its grid.
#' @param scale `"response"` is means, by the delta method where a family has a link, and `"link"` is the linear
#'   predictor.
#' @param level Of intervals and bands.
#' @param se What standard errors assume of residuals: `"curve"`, `"cluster"`, `"iid"`, `"unconditional"`; default that
#'   of the fit.
#' @param grids Grids of matrices by column.
#' @param twicing How often residuals are smoothed again, and what is found is added. The penalty biases averages over a smooth effect. Each time takes away
#'   more of the bias, and makes intervals wider.
#' @param x What one of these functions returned.
#' @param ... Not used; of `plot()`: passed on to [graphics::matplot()].
#' @return A data frame of class `fdadp_estimates`: what each row is of (`contrast`, `row`, `t`), `value`, `se`, the pointwise interval `lower`, `upper`, and
#'   `lower_all`, `upper_all`, which hold all of a curve, or all numbers, at once. Its attribute `test` has for each curve the largest ratio of the value to its
#'   standard error, and the p-value that belongs to the band.
#' @seealso [predict.fdadp_regression()], [fdadp-methods]
#' @examples
#' if (fdadp_available()) {
#'   arm <- rep(c("drug", "placebo"), 30)
#'   age <- runif(60, 20, 80)
#'   people <- data.frame(arm, age, y = (arm == "drug") + 0.02 * age + rnorm(60))
#'   fit <- fdadp(y ~ factor(arm) + s(age), data = people)
#'   level_contrasts(fit, "arm")
#'   average_slopes(fit, "age")
#'   mean_difference(fit, data.frame(arm = "drug", age = 60), data.frame(arm = "drug", age = 30))
#' }
#' @export
level_contrasts <- function(object, column, how = c("pairwise", "reference", "mean", "sequential"), newdata = NULL, t = NULL, scale = c("response", "link"),
                            level = 0.95, se = NULL, grids = list()) {
  how <- one_of(how, c("pairwise", "reference", "mean", "sequential"), "how")
  ask(object, "contrasts", list(column = column, how = how), list(new = newdata), t, scale, level, se, grids)
}

#' @rdname level_contrasts
#' @export
average_slopes <- function(object, column, newdata = NULL, average = TRUE, t = NULL, scale = c("response", "link"), level = 0.95, se = NULL, grids = list(),
                           twicing = 0) {
  ask(object, "slopes", list(column = column, average = average, twicing = as_whole(twicing)), list(new = newdata), t, scale, level, se, grids)
}

#' @rdname level_contrasts
#' @export
mean_difference <- function(object, newdata1, newdata2, average = FALSE, t = NULL, scale = c("response", "link"), level = 0.95, se = NULL, grids = list()) {
  ask(object, "difference", list(average = average), list(new1 = newdata1, new2 = newdata2), t, scale, level, se, grids)
}

#' Which of two fits predicts new curves better
#'
#' By the squared error of each curve (or number) in the fit without it, integrated along t and averaged over curves; with groups whole persons are left out. No
#' model is fitted again. `anova()` asks another question: whether the terms by which two fits differ have any effect.
#'
#' @param object,other Two fits of [fdadp()] to the same rows, Gaussian and without privacy, with any terms.
#' @return A data frame of a row for each fit, that of fewer degrees of freedom first. It has `edf`, and the error `loo`
#'   with its standard error `se`. The second row has the `gain` over the first, in pairs of curves or persons, and its
#'   standard error `gain_se`. `preferred` is the smaller fit, unless the gain is larger than its standard error.
#' @seealso [fdadp-methods]
#' @examples
#' if (fdadp_available()) {
#'   x <- rnorm(40)
#'   people <- data.frame(x, z = rnorm(40), y = x + rnorm(40))
#'   compare_predictions(fdadp(y ~ x, data = people), fdadp(y ~ x + z, data = people))
#' }
#' @export
compare_predictions <- function(object, other) {
  found <- as_frame(call_on_fit("compare_left_out", object, other = as_handle(other)))
  rownames(found) <- c("smaller", "larger")
  found
}

#' Does a random effect on numbers have any variance?
#'
#' The exact restricted likelihood ratio test, as of package RLRsim. `anova()` has the exact score test of the same hypothesis, which needs no draws; this one finds more
#' where groups differ in size. Smoothing parameters of the other terms count as known.
#'
#' @param object A fit of [fdadp()] to numbers, without groups.
#' @param term Name of a random effect, as `print()` shows it: `"re(g)"`.
#' @param draws Number of draws of the ratio from its distribution without the effect, at least 19.
#' @param seed Of the draws.
#' @return An object of class `htest`: `statistic` and `p.value`.
#' @references Crainiceanu and Ruppert (2004), Likelihood ratio tests in linear mixed models with one variance component, *Journal of the Royal Statistical Society* B 66,
#'   165-185. \doi{10.1111/j.1467-9868.2004.00438.x}
#' @seealso [fdadp-methods]
#' @examples
#' if (fdadp_available()) {
#'   g <- rep(1:12, each = 5)
#'   people <- data.frame(g = factor(g), y = rnorm(12)[g] + rnorm(60))
#'   variance_test(fdadp(y ~ re(g), data = people), "re(g)")
#' }
#' @export
variance_test <- function(object, term, draws = 9999, seed = 0) {
  found <- call_on_fit("test_of_variance", object, term = term, draws = draws, seed = seed)
  structure(
    list(
      statistic = c(RLRT = found$statistic), parameter = c(draws = draws), p.value = found$p, alternative = "the variance is above 0",
      method = "Exact restricted likelihood ratio test of a random effect", data.name = paste(term, "of", text_of(object$formula))
    ),
    class = "htest"
  )
}

# What a factor is called in the fit: the text of the formula, such as "factor(arm)", where it made one of a column.
factor_of <- function(object, column) {
  known <- if (inherits(object, "dp_fdadp")) c(object$term.names, object$columns) else names(object$expressions)
  bare <- sub("^(C|factor|as.factor)[(](.*)[)]$", "\\2", column)
  c(intersect(c(column, paste0(c("C(", "factor(", "as.factor("), bare, ")"), bare), known), column)[1]
}

# A question of Python's fdadp.inference: what it is told, and tables of rows by the names of its arguments.
ask <- function(object, question, told, tables, t, scale, level, se, grids) {
  no_na(t = t, level = level)
  scale <- one_of(scale, c("response", "link"), "scale")
  private <- inherits(object, "dp_fdadp")
  if (!private && !inherits(object, "fdadp_regression")) input_error("object must be a fit of fdadp() or dp_fdadp(), got ", class(object)[1])
  if (private && !is.null(se)) input_error("se must be left out of a private fit")
  if (private && !length(Filter(Negate(is.null), tables))) privacy_error("newdata must be given: a private fit keeps no training rows")
  column <- told$column
  if (question == "slopes" && identical(object$spec$columns[[column]]$kind, "curves")) {
    input_error(column, " is a curve, and slopes are of numbers: mean_difference() compares two curves")
  }
  if (question == "contrasts") told$column <- factor_of(object, column)
  new <- lapply(Filter(Negate(is.null), tables), function(rows) new_columns(object, rows, grids))
  if (!private && scale == "response" && length(object$offsets) && object$family != "gaussian") input_error("scale must be \"link\" for a fit with an offset")
  asked <- list(
    question = question, told = told, tables = lapply(new, `[[`, "columns"), rows = lapply(new, function(own) as.list(own$rows)),
    t = as_vector(t, "t"), scale = scale, level = level
  )
  found <- if (private) {
    do.call(call_on_private, c(list(object, "ask_private"), asked))
  } else {
    do.call(call_on_fit, c(list("ask_terms", object), asked, list(errors = believed(object, se))))
  }
  test <- as_frame(found$test)
  if (question == "contrasts") found$title <- sub(told$column, column, found$title, fixed = TRUE)
  structure(as_frame(found$frame), class = c("fdadp_estimates", "data.frame"), title = found$title, test = test)
}

# Columns of new rows for Python, with their names.
new_columns <- function(object, newdata, grids) UseMethod("new_columns")

#' @export
new_columns.fdadp_regression <- function(object, newdata, grids) {
  new_rows(newdata, lapply(object$expressions, str2lang), function(value, name) {
    known <- object$spec$columns[[name]]
    if (identical(known$kind, "curves") && is.numeric(value) && is.null(dim(value))) {
      input_error(name, " must be a matrix with one curve a row, got a vector: a curve is one row, matrix(x, 1)")
    }
    if (identical(known$kind, "labels") && !is.factor(value)) value <- as.character(value)
    as_column(value, name, grids[[name]], levels = unlist(known$levels))
  }, lapply(object$offsets, str2lang))
}

#' @export
new_columns.dp_fdadp <- function(object, newdata, grids) {
  new_rows(newdata, lapply(stats::setNames(nm = object$columns), as.name), function(value, name) private_column(newdata, name, grids[[name]]))
}

#' @rdname level_contrasts
#' @export
print.fdadp_estimates <- function(x, ...) {
  cat(attr(x, "title"), "\n", sep = "")
  shown <- as.data.frame(unclass(x)[names(x)], check.names = FALSE)
  print(format(utils::head(shown, 12), digits = 4), row.names = FALSE)
  if (nrow(x) > 12) cat("... ", nrow(x), " rows in all\n", sep = "")
  test <- attr(x, "test")
  if (!is.null(test)) {
    p <- ifelse(test$p == 1 / 4000, "p < 0.00025", sub("= <", "< ", paste("p =", format.pval(test$p, digits = 3)))) # the least of 4,000 draws
    cat(paste0(test$what, ": ", p, " that it is 0", if (!is.null(x$t)) " everywhere", collapse = "\n"), "\n", sep = "")
  }
  invisible(x)
}

#' @rdname level_contrasts
#' @export
plot.fdadp_estimates <- function(x, ...) {
  if (is.null(x$t)) {
    at <- rev(seq_len(nrow(x)))
    graphics::matplot(cbind(x$value, x$lower_all, x$upper_all), cbind(at, at, at), type = "n", xlab = attr(x, "title"), ylab = "", yaxt = "n", ...)
    graphics::segments(x$lower_all, at, x$upper_all, at)
    graphics::points(x$value, at, pch = 19)
    graphics::axis(2, at, if (is.null(x$contrast)) x$row else x$contrast, las = 1)
    graphics::abline(v = 0, col = "grey")
    return(invisible(x))
  }
  key <- if (!is.null(x$contrast)) x$contrast else if (!is.null(x$row)) x$row else rep("", nrow(x))
  parts <- split(as.data.frame(unclass(x)[names(x)]), factor(key, unique(key)))
  old <- graphics::par(mfrow = grDevices::n2mfrow(length(parts)))
  on.exit(graphics::par(old))
  for (name in names(parts)) {
    own <- parts[[name]]
    bands <- cbind(own$value, own$lower, own$upper, own$lower_all, own$upper_all)
    graphics::matplot(own$t, bands, type = "l", lty = c(1, 2, 2, 3, 3), col = 1, xlab = "t", ylab = attr(x, "title"), main = name, ...)
    graphics::abline(h = 0, col = "grey")
  }
  invisible(x)
}
