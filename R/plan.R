#' What a private fit will be worth
#'
#' Predicts, before any data are touched, what [dp_affr()] will explain, by simulation from the public prior, and which n
#' or epsilon would do for a wanted accuracy. What is hopeless is an error that says what it takes.
#'
#' @param n Number of people; may be left out where `accuracy` is given.
#' @param epsilon,delta The budget; `delta` left out means pure epsilon.
#' @param accuracy Wanted share of the explainable variance, between 0 and 1.
#' @param adjacency `"zero-out"` (default), `"add-remove"` or `"replace"`, see [dp_affr()].
#' @param x A plan.
#' @param ... Not used.
#' @return A list of class `fdadp_plan`: `share` (of the explainable variance), `rmspe_ratio` and `width_ratio` (of prediction
#'   errors and intervals to those without privacy), `coverage`, `smallest_n` and `smallest_epsilon` for the wanted accuracy,
#'   data frames `by_n` and `by_epsilon`, and the whole as `text`.
#' @examples
#' if (fdadp_available()) {
#'   plan <- plan_dp(n = 1000, epsilon = 1, delta = 1e-6, accuracy = 0.9)
#'   plan$smallest_n
#'   plan
#' }
#' @export
plan_dp <- function(n = NULL, epsilon = 1, delta = NULL, accuracy = NULL, adjacency = NULL) {
  no_na(n = n, epsilon = epsilon, delta = delta, accuracy = accuracy, adjacency = adjacency)
  plan <- call_python("plan", n = as_whole(n), epsilon = epsilon, delta = delta, accuracy = accuracy, adjacency = adjacency)
  for (curve in c("by_n", "by_epsilon")) plan[[curve]] <- as.data.frame(lapply(plan[[curve]], unlist))
  structure(plan, class = "fdadp_plan")
}

#' @rdname plan_dp
#' @export
print.fdadp_plan <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}
