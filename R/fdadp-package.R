#' fdadp: functional data regression with differential privacy
#'
#' Additive function-on-function regression, curves predicting curves: \deqn{Y_i(t) = \mu(t) + \int F\{X_i(s), s,
#' t\}\,ds + \varepsilon_i(t).} [fdadp()] fits curves, or numbers, on any terms. [affr()] fits the model above without
#' privacy. [dp_affr()] and [dp_fdadp()] fit with an end-to-end guarantee of differential privacy. [ledger()] says what
#' was released, and [plan_dp()] says what a private fit will be worth. The work is done by the Python package of the
#' same name, through
#' \pkg{reticulate}; [fdadp_config()] says whether it is there and, if not, what to do.
#'
#' Curves are matrices with one curve a row, data frames of numeric columns, matrix columns of
#' data frames, `fd` objects of package \pkg{fda}, or `tf` vectors of tidyfun. What comes back is plain R data: a fit
#' survives [saveRDS()], other sessions and other machines.
#'
#' Errors carry classes: all of them `fdadp_error`, and one of `fdadp_input_error`,
#' `fdadp_privacy_error`, `fdadp_config_error` (no Python, or not the right one),
#' `fdadp_file_format_error`, `fdadp_python_error` (anything unforeseen). Warnings are of class
#' `fdadp_warning`, among them `fdadp_extrapolation_warning` and `fdadp_not_private_warning`.
#'
#' @name fdadp-package
#' @docType package
#' @keywords internal
NULL

# What is known of this session: the Python module that does the work, once it is loaded.
the <- new.env(parent = emptyenv())
