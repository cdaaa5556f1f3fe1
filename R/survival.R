#' Regression of the time to an event
#'
#' `Surv(time, event) ~ terms` explains the hazard by curves, numbers and factors: some persons had the event, the others are censored. Each person
#' has a row for each period that it was seen in, and a regression of these person-periods is fitted. With `family = "poisson"` and the default times it is
#' Cox's regression with Breslow's ties. **Not private**, unless `privacy` is given.
#'
#' @param formula `Surv(months, died) ~ lf(X) + age`: two columns of `data`, how long each person was seen, and whether that ended with the event (1 or
#'   `TRUE`) or not (0 or `FALSE`). `Surv(entry, months, died)` says from when on a row was seen: for late entry, and for covariates that change, where
#'   a person has a row for each stretch of time. Terms are those of [fdadp()] for a response that is a number, of columns of `data`; their arguments are numbers,
#'   text, `c()` of them, `TRUE` and `FALSE`. `age:period` is an effect that changes in time; `period` counts the periods.
#' @param data A data frame with matrix columns, or a list of columns. A row a person, or a stretch of time of one.
#' @param times Increasing: where time begins, and the end of each of at most 100 periods. Default: 0 and the times of events; of
#'   more than 100 their quantiles, but for Cox's regression. Required with `privacy`, and then chosen without the data.
#' @param family `"binomial"` models the log-odds of the event in a period, and `"poisson"` proportional hazards.
#' @param baseline How the hazard depends on the period: `"factor"` (a constant for each), `"smooth"` or `"linear"`;
#'   `"auto"` chooses.
#' @param smoothing `"reml"` or `"gcv"`.
#' @param missing As in [fdadp()], or of a private fit as in [dp_fdadp()]; default `"raise"`, with `privacy` `"linear"`.
#' @param grids Grids of matrices by column, `list(X = s)`.
#' @param groups The person of each row, where persons have several.
#' @param privacy `list(epsilon = 1, delta = 1e-6, n = 3000)`, the guarantee, as in [mfpca()]. All rows of a person are protected together.
#' @param bounds With `privacy`: what is public of each covariate, as in [dp_fdadp()]. Those of time and event follow from `times`.
#' @param object,x A fit.
#' @param newdata A data frame or list with the columns that the right side of the formula names. Without it `plot()`
#'   shows the baseline.
#' @param type `"risk"` is the probability of the event until the last of the times. `"survival"` gives curves.
#'   `"hazard"` and `"link"` are by period.
#' @param terms,level Of `plot()`: names of terms whose effects are shown instead. Level of bands.
#' @param parm Name of a term, such as `"lf(X)"`; of `confint()` names of terms, default all.
#' @param ... Of `coef()` points of the axes, and of `plot()` passed on to [graphics::matplot()]; else not used.
#' @return By function:
#'   * `survival_regression()`: an object of class `fdadp_survival`, plain R data. It has `times`, `term.names`,
#'     `coefficients`, `edf`, and `ledger` with privacy. `baseline` is a data frame of periods with `start`, `end`,
#'     `hazard`, `survival`, where all other terms are 0.
#'   * `predict()`: a vector (`"risk"`), or a matrix with a row a person and the times as column names.
#'   * `coef()`: all coefficients without a term, and with one its function with a band.
#' @references Cox (1972), \doi{10.1111/j.2517-6161.1972.tb00899.x}; Breslow (1974), \doi{10.2307/2529620}.
#' @seealso [private_survival()], [concordance()]
#' @examples
#' if (fdadp_available()) {
#'   age <- runif(500, -1, 1)
#'   time <- rexp(500, exp(0.5 * age) / 6)
#'   end <- runif(500, 2, 16)
#'   people <- data.frame(age, months = pmin(time, end), died = time <= end)
#'   fit <- survival_regression(Surv(months, died) ~ age, people, times = 0:8)
#'   fit
#'   predict(fit, data.frame(age = c(-1, 1)), type = "survival", times = c(1, 4, 8))
#'   concordance(people$months, people$died, predict(fit, people))
#' }
#' @export
survival_regression <- function(formula, data, times = NULL, family = c("binomial", "poisson"), baseline = c("auto", "factor", "smooth", "linear"),
                                smoothing = "reml", missing = NULL, grids = list(), groups = NULL, privacy = NULL, bounds = NULL) {
  read <- surv_formula(formula)
  private <- !is.null(privacy)
  no_na(times = times, smoothing = smoothing)
  privacy <- privacy_of(privacy)
  if (!private && !is.null(bounds)) input_error("bounds must be left out without privacy")
  if (!is.list(data)) input_error("data must be a data frame or a list of columns, got ", class(data)[1])
  if (private && !is.null(bounds) && (!is.list(bounds) || is.null(names(bounds)))) privacy_error("bounds must be a list by column, got ", class(bounds)[1])
  known <- if (private) c("linear", "smooth", "indicator") else c("raise", "linear", "smooth", "fpca", "pace", "indicator")
  settings <- list(
    formula = read$text, times = as_vector(times, "times"), family = one_of(family, c("binomial", "poisson"), "family"),
    baseline = one_of(baseline, c("auto", "factor", "smooth", "linear"), "baseline"), smoothing = one_of(smoothing, c("reml", "gcv"), "smoothing"),
    missing = if (is.null(missing)) "auto" else treatments(missing, known)
  )
  if (private) settings["bounds"] <- list(lapply(bounds, as_bounds))
  columns <- survival_columns(data, c(read$covariates, read$followed), grids, private)
  path <- tempfile(fileext = ".npz")
  on.exit(unlink(path))
  fit <- call_python("fit_survival", columns = columns, settings = settings, groups = as_groups(groups), privacy = privacy, path = path)
  fit$times <- as.double(fit$times)
  fit[c("term.names", "coefficient.names")] <- lapply(fit[c("term.names", "coefficient.names")], function(v) as.character(unlist(v)))
  fit$coefficients <- stats::setNames(as.double(fit$coefficients), fit$coefficient.names)
  fit$coefficient.names <- NULL
  fit$baseline <- as_frame(fit$baseline)
  if (!is.null(fit$ledger)) fit$ledger <- as_ledger(fit$ledger)
  own <- list(formula = plain_formula(formula), time = read$time, covariates = read$covariates, family = settings$family, file = readBin(path, "raw", file.size(path)))
  structure(c(fit[!vapply(fit, is.null, TRUE)], own), class = "fdadp_survival")
}

# Surv(time, event) ~ terms, or Surv(entry, time, event): its columns, those of the terms, and the formula as Python reads it.
surv_formula <- function(formula) {
  left <- if (inherits(formula, "formula") && length(formula) == 3) formula[[2]]
  called <- is.call(left) && text_of(left[[1]]) %in% c("Surv", "survival::Surv")
  if (!called || !length(left) %in% 3:4 || !all(vapply(as.list(left)[-1], is.name, TRUE))) {
    input_error("formula must be of the form Surv(time, event) ~ terms or Surv(entry, time, event) ~ terms, of columns, got ", paste(deparse(formula), collapse = " "))
  }
  columns <- as.list(left)[-1]
  followed <- vapply(columns, as.character, "")
  text <- paste0("Surv(", paste(vapply(columns, as_python, ""), collapse = ", "), ") ~ ", as_python(formula[[3]]))
  list(followed = followed, time = rev(followed)[2], covariates = setdiff(all.vars(formula[[3]]), "period"), text = text)
}

# Columns by name; of an ordinary fit joined by the names of their rows, where a list has some.
survival_columns <- function(data, names, grids, private) {
  absent <- setdiff(names, names(data))
  if (length(absent)) input_error("data must have the column ", absent[1], ", got ", paste(names(data), collapse = ", "))
  names <- stats::setNames(nm = names)
  if (private) {
    return(lapply(names, function(name) private_column(data, name, grids[[name]])))
  }
  columns <- lapply(names, function(name) {
    c(as_column(data[[name]], name, grids[[name]]), list(rows = labels_of(as.name(name), data[[name]], data)))
  })
  joined(list(columns = columns, response = names[[length(names)]]), list(), every = TRUE)$spec$columns
}

call_on_survival <- function(.name, object, ...) {
  if (!inherits(object, "fdadp_survival") || !is.raw(object$file)) input_error("object must be a fit of survival_regression(), got ", class(object)[1])
  path <- tempfile(fileext = ".npz")
  on.exit(unlink(path))
  writeBin(object$file, path)
  call_python(.name, path = path, ...)
}

#' @rdname survival_regression
#' @export
predict.fdadp_survival <- function(object, newdata, type = c("risk", "survival", "hazard", "link"), times = NULL, grids = list(), ...) {
  no_more(...)
  no_na(times = times)
  type <- one_of(type, c("risk", "survival", "hazard", "link"), "type")
  if (missing(newdata)) input_error("newdata must be given: the fit keeps no rows of persons")
  if (type != "survival" && !is.null(times)) input_error("times must be left out with type = \"", type, "\"")
  new <- new_rows(newdata, lapply(stats::setNames(nm = object$covariates), as.name), function(value, name) as_column(value, name, grids[[name]]))
  found <- call_on_survival("predict_survival", object, columns = new$columns, kind = type, times = as_vector(times, "times"))
  if (type == "risk") {
    return(stats::setNames(as.double(found$fit), new$rows))
  }
  dimnames(found$fit) <- list(new$rows, format(as.double(found$times), digits = 15, trim = TRUE))
  found$fit
}

#' @rdname survival_regression
#' @export
coef.fdadp_survival <- function(object, parm = NULL, level = 0.95, ...) {
  if (is.null(parm)) {
    no_more(...)
    return(object$coefficients)
  }
  as_frame(call_on_survival("effect_on_survival", object, term = parm, level = level, at = axis_points(...)))
}

#' @rdname survival_regression
#' @export
confint.fdadp_survival <- function(object, parm = NULL, level = 0.95, ...) {
  no_more(...)
  if (is.null(parm)) parm <- object$term.names
  as_effects(lapply(stats::setNames(nm = parm), function(term) stats::coef(object, term, level = level)))
}

#' @rdname survival_regression
#' @export
logLik.fdadp_survival <- function(object, ...) {
  if (is.null(object$loglik)) not_of_a_private_fit("logLik()")
  structure(object$loglik, df = object$df, class = "logLik")
}

#' @rdname survival_regression
#' @export
summary.fdadp_survival <- function(object, ...) {
  no_more(...)
  structure(list(text = object$text), class = "summary.fdadp_survival")
}

#' @export
print.summary.fdadp_survival <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @rdname survival_regression
#' @export
print.fdadp_survival <- function(x, ...) {
  cat("Regression of the time to an event, family ", x$family, "\n", sep = "")
  cat(deparse(x$formula), sep = "\n")
  cat(length(x$times) - 1, " periods from ", format(x$times[1]), " to ", format(utils::tail(x$times, 1)), "\n", sep = "")
  cat(if (is.null(x$ledger)) "Fitted without privacy: do not release." else x$ledger$headline, "\n", sep = "")
  invisible(x)
}

#' @rdname survival_regression
#' @export
plot.fdadp_survival <- function(x, newdata = NULL, terms = NULL, level = 0.95, ...) {
  if (!is.null(terms)) {
    return(draw_effects(stats::confint(x, terms, level = level), level, ...))
  }
  curves <- if (is.null(newdata)) matrix(c(1, x$baseline$survival), 1) else stats::predict(x, newdata, type = "survival")
  graphics::matplot(x$times, t(curves),
    type = "s", lty = 1, ylim = c(0, 1), xlab = x$time, ylab = if (is.null(newdata)) "survival, baseline" else "survival", ...
  )
  invisible(curves)
}

#' A private survival curve
#'
#' Kaplan and Meier's curve from one private histogram of events and censored times, with limits that include the noise; also by group, with the
#' log-rank test where there are two.
#'
#' @param data A data frame or list of columns. Each row is a person, unless `groups` gives the person of each row.
#' @param time,event Names of columns: how long each person was seen, and whether that ended with the event (1 or `TRUE`) or not (0 or `FALSE`).
#' @param edges Public, increasing: where time begins, and the ends of at most 500 intervals. Survival is estimated at
#'   the ends.
#' @param by A curve for each public class of one column, `list(arm = c("drug", "placebo"))`.
#' @param privacy `list(epsilon = 1, n = 2000)`: the guarantee, as in [mfpca()].
#' @param groups The person of each row, where persons have several.
#' @param level Of the limits.
#' @param x What was released.
#' @param ... Of `plot()`: passed on to [graphics::matplot()]; else not used.
#' @return A list of class `fdadp_private_survival`: `table`, a data frame of `group`, `what` (`"survival"`, of the group `"difference"` of two classes also
#'   `"log-rank z"`), `time`, `value`, `low`, `high` and `noise_sd`; and `ledger`.
#' @seealso [survival_regression()]
#' @examples
#' if (fdadp_available()) {
#'   time <- rexp(2000, 1 / 10)
#'   end <- runif(2000, 5, 20)
#'   people <- data.frame(months = pmin(time, end), died = time <= end)
#'   privacy <- list(epsilon = 1, n = 2000)
#'   found <- private_survival(people, "months", "died", edges = 0:12, privacy = privacy)
#'   found
#'   plot(found)
#' }
#' @export
private_survival <- function(data, time, event, edges, by = NULL, privacy, groups = NULL, level = 0.95) {
  if (missing(privacy) || is.null(privacy)) privacy_error("privacy must be a list, as list(epsilon = 1, n = 2000), got nothing")
  no_na(edges = edges, level = level)
  if (!is.list(data)) input_error("data must be a data frame or a list of columns, got ", class(data)[1])
  if (!is.null(by) && (!is.list(by) || length(by) != 1 || is.null(names(by)))) {
    input_error("by must be the classes of one column, list(arm = c(\"drug\", \"placebo\")), got ", class(by)[1])
  }
  names <- c(time, event, names(by))
  found <- call_python("private_survival",
    columns = survival_columns(data, names, list(), private = TRUE), time = time, event = event, edges = as_vector(edges, "edges"),
    by = if (!is.null(by)) lapply(by, function(own) as.list(as.character(own))), groups = as_groups(groups), level = level, privacy = privacy_of(privacy)
  )
  structure(list(table = as_frame(found$table), ledger = as_ledger(found$ledger), time = time, level = level), class = "fdadp_private_survival")
}

#' @rdname private_survival
#' @export
print.fdadp_private_survival <- function(x, ...) {
  cat("Private survival curve, ", format(100 * x$level), " % limits\n", x$ledger$headline, "\n", sep = "")
  shown <- if (all(!nzchar(x$table$group))) names(x$table) != "group" else TRUE
  print(format(x$table[shown], digits = 3), row.names = FALSE)
  invisible(x)
}

#' @rdname private_survival
#' @export
plot.fdadp_private_survival <- function(x, ...) {
  shown <- x$table[x$table$what == "survival" & x$table$group != "difference", ]
  groups <- unique(shown$group)
  colours <- if (length(groups) > 1) grDevices::hcl.colors(length(groups), "Dark 3") else "black"
  parts <- split(shown, factor(shown$group, groups))
  ys <- do.call(cbind, lapply(parts, function(p) p[c("value", "low", "high")]))
  graphics::matplot(parts[[1]]$time, ys,
    type = "s", lty = c(1, 2, 2), col = rep(colours, each = 3), ylim = c(0, 1), xlab = x$time, ylab = "survival", ...
  )
  graphics::legend("bottomleft", c(if (length(groups) > 1) groups else "survival", paste(format(100 * x$level), "% limits")),
    col = c(colours, "black"), lty = c(rep(1, length(groups)), 2), bty = "n", cex = 0.8
  )
  invisible(shown)
}
