#' How good predicted curves and their intervals are
#'
#' These functions read the data they are given: on private records the numbers they return are not private.
#'
#' @param Y,Yhat Observed and predicted curves, one a row.
#' @param lower,upper Limits of intervals.
#' @return `rmspe()`: root mean squared prediction error, in the unit of Y. `coverage()`: share of the values between the
#'   limits.
#' @examples
#' if (fdadp_available()) {
#'   rmspe(matrix(0, 2, 2), matrix(c(1, 1, 1, -1), 2))
#'   coverage(matrix(c(0, 2), 1), matrix(-1, 1, 2), matrix(1, 1, 2))
#' }
#' @export
rmspe <- function(Y, Yhat) {
  call_python("rmspe", Y = as_curves(Y, NULL, "Y")$values, Y_hat = as_curves(Yhat, NULL, "Yhat")$values)$value
}

#' @rdname rmspe
#' @export
coverage <- function(Y, lower, upper) {
  values <- lapply(list(Y = Y, lower = lower, upper = upper), function(x) as_curves(x, NULL, "curves")$values)
  do.call(call_python, c("coverage", values))$value
}
