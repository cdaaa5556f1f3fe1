#' The ledger of a private fit
#'
#' What was released, with which noise, under which assumptions, and what is not protected: all that a data custodian needs to
#' judge a fit.
#'
#' @param object A fit of [dp_affr()], [dp_fdadp()], [mfpca()] or [survival_regression()], or what [private_survival()] released.
#' @param x A ledger.
#' @param ... Not used.
#' @return A list of class `fdadp_ledger`, or `NULL` for a fit without privacy. It has:
#'   * `headline`, `mechanism`, `private`, `for.release`, `epsilon` and `delta`;
#'   * `mu` and `curve`, for fits with a `delta`: the guarantee in Gaussian DP, and what it is at other `delta`;
#'   * `statement` and `details`;
#'   * `releases`: a data frame, one release a row;
#'   * `unnoised`: what is part of the output without noise;
#'   * the whole as `text` and as `json`.
#' @inherit dp_affr examples
#' @export
ledger <- function(object) {
  kept <- c("affr", "dp_fdadp", "fdadp_mfpca", "fdadp_survival", "fdadp_private_survival")
  if (!inherits(object, kept)) input_error("object must be a fit of dp_affr(), dp_fdadp(), mfpca() or survival_regression(), got ", class(object)[1])
  object$ledger
}

as_ledger <- function(entry) {
  entry$releases <- as.data.frame(lapply(entry$releases, unlist), stringsAsFactors = FALSE)
  entry$unnoised <- as.character(unlist(entry$unnoised))
  entry$details <- unlist(entry$details)
  structure(entry, class = "fdadp_ledger")
}

#' @rdname ledger
#' @export
print.fdadp_ledger <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}
