#' How good predicted curves and their intervals are
#'
#' These functions read the data they are given: on private records the numbers they return are not private.
#'
#' @param Y,Yhat Observed and predicted curves, one a row.
#' @param lower,upper Limits of intervals.
#' @param time,event,risk How long each person was seen, whether that ended with the event, and a risk that is higher where the event is expected
#'   earlier.
#' @param entry From when on each was seen: a pair is comparable only where the other had entered before the event. Default: all from the beginning.
#' @return `rmspe()`: root mean squared prediction error, in the unit of Y. `coverage()`: share of the values between the
#'   limits. `concordance()`: Harrell's C, the share of comparable pairs of persons in which the one with the earlier event has the higher risk.
#' @examples
#' if (fdadp_available()) {
#'   rmspe(matrix(0, 2, 2), matrix(c(1, 1, 1, -1), 2))
#'   coverage(matrix(c(0, 2), 1), matrix(-1, 1, 2), matrix(1, 1, 2))
#' }
#' @export
rmspe <- function(Y, Yhat) {
  y <- as_curves(Y, NULL, "Y")
  predicted <- as_curves(Yhat, NULL, "Yhat")
  call_python("rmspe", Y = y$values, Y_hat = predicted$values, labels = list(Y = y$rows, Yhat = predicted$rows))$value
}

#' @rdname rmspe
#' @export
coverage <- function(Y, lower, upper) {
  curves <- list(Y = as_curves(Y, NULL, "Y"), lower = as_curves(lower, NULL, "lower"), upper = as_curves(upper, NULL, "upper"))
  do.call(call_python, c("coverage", lapply(curves, `[[`, "values"), list(labels = lapply(curves, `[[`, "rows"))))$value
}

#' @rdname rmspe
#' @export
concordance <- function(time, event, risk, entry = NULL) {
  own <- list(time = time, event = event, risk = risk)
  if (!is.null(entry)) own$entry <- entry
  own <- lapply(own, function(v) if (is.logical(v)) as.double(v) else as_vector(v, "time, event, risk and entry"))
  do.call(call_python, c("concordance", lapply(own, function(v) array(v, length(v)))))$value
}
