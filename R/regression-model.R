# What every model object of R answers, of fits on several terms; those of other packages' generics are in regression-tidy.R.

#' @rdname fdadp-methods
#' @importFrom stats deviance
#' @export
deviance.fdadp_regression <- function(object, ...) {
  if (object$family == "ordered") {
    return(object$deviance)
  }
  mean <- c(object$fitted.values)
  observed <- mean + c(object$residuals)
  weights <- object$spec$weights
  weights <- if (is.null(weights)) 1 else rep_len(c(weights), length(mean)) # one a row, again for each point, or one a point
  sum(weights * unit_deviance(object$family, observed, mean, object$theta), na.rm = TRUE)
}

# Twice what the log-likelihood of an observation is below that of its saturated model, per unit of scale.
unit_deviance <- function(family, y, mean, theta = NULL) {
  ratio <- function(a, b) ifelse(a > 0, a * log(a / b), 0)
  switch(family,
    gaussian = (y - mean)^2,
    binomial = 2 * (ratio(y, mean) + ratio(1 - y, 1 - mean)),
    poisson = 2 * (ratio(y, mean) - (y - mean)),
    gamma = 2 * ((y - mean) / mean - log(y / mean)),
    negative_binomial = 2 * (ratio(y, mean) - (y + theta) * log((y + theta) / (mean + theta))),
    scaled_t = (theta[1] + 1) * log1p(((y - mean) / theta[2])^2 / theta[1])
  )
}

#' @rdname fdadp-methods
#' @importFrom stats df.residual
#' @export
df.residual.fdadp_regression <- function(object, ...) sum(!is.na(object$residuals)) - object$edf

#' @rdname fdadp-methods
#' @importFrom stats terms
#' @export
terms.fdadp_regression <- function(x, ...) terms_of(x$formula)

terms_of <- function(formula) stats::terms.formula(formula, specials = specials, keep.order = TRUE)

#' @rdname fdadp-methods
#' @importFrom stats family
#' @export
family.fdadp_regression <- function(object, ...) {
  switch(object$family,
    gaussian = stats::gaussian(),
    binomial = stats::binomial(),
    poisson = stats::poisson(),
    gamma = stats::Gamma("log"),
    negative_binomial = negative_binomial_of(object$theta),
    scaled_t = scaled_t_of(object$theta),
    ordered = ordered_of(object$theta)
  )
}

negative_binomial_of <- function(theta) {
  own <- list(
    family = sprintf("Negative Binomial(%s)", format(theta)), variance = function(mu) mu + mu^2 / theta,
    dev.resids = function(y, mu, wt) wt * unit_deviance("negative_binomial", y, mu, theta)
  )
  structure(utils::modifyList(stats::poisson()[c("link", "linkfun", "linkinv", "mu.eta", "valideta", "validmu")], own), class = "family")
}

scaled_t_of <- function(theta) {
  own <- list(
    family = sprintf("Scaled t(%s)", paste(format(theta), collapse = ",")), variance = function(mu) rep(variance_of("scaled_t", mu, theta), length(mu)),
    dev.resids = function(y, mu, wt) wt * unit_deviance("scaled_t", y, mu, theta)
  )
  structure(utils::modifyList(stats::gaussian()[c("link", "linkfun", "linkinv", "mu.eta", "valideta", "validmu")], own), class = "family")
}

# The mean is the expected number of the category.
ordered_of <- function(cuts) {
  above <- function(eta) stats::plogis(outer(eta, cuts, "-"))
  structure(list(
    family = sprintf("Ordered Categorical(%s)", paste(format(round(cuts, 2), trim = TRUE), collapse = ",")), link = "cumulative logit",
    linkinv = function(eta) 1 + rowSums(above(eta)), mu.eta = function(eta) rowSums(above(eta) * (1 - above(eta)))
  ), class = "family")
}

#' @rdname affr-methods
#' @importFrom stats df.residual
#' @export
df.residual.affr <- function(object, ...) object$n - object$edf

#' @rdname affr-methods
#' @importFrom stats formula
#' @export
formula.affr <- function(x, ...) {
  if (is.null(x$formula)) input_error("x must be a fit by a formula, got one of two tables of curves")
  x$formula
}

#' @rdname affr-methods
#' @importFrom stats terms
#' @export
terms.affr <- function(x, ...) terms_of(stats::formula(x))

#' @rdname affr-methods
#' @importFrom stats simulate
#' @export
simulate.affr <- function(object, nsim = 1, seed = NULL, ...) {
  no_more(...)
  if (!is.null(seed)) set.seed(seed)
  left <- stats::residuals(object) # an error, where the fit is private
  if (anyNA(left)) input_error("object must be a fit of curves without gaps to draw from its residual curves")
  wide <- sqrt(mean(object$residual.variance) / mean(left^2)) # residuals are smaller than errors
  draw <- function() stats::fitted(object) + unname(left[sample(nrow(left), replace = TRUE), , drop = FALSE]) * wide
  stats::setNames(replicate(nsim, draw(), simplify = FALSE), paste0("sim_", seq_len(nsim)))
}

#' @rdname dp_fdadp
#' @export
formula.dp_fdadp <- function(x, ...) x$formula

#' @rdname dp_fdadp
#' @export
terms.dp_fdadp <- function(x, ...) terms_of(x$formula)

#' @rdname dp_fdadp
#' @export
sigma.dp_fdadp <- function(object, ...) sqrt(object$sigma2)

#' @rdname dp_fdadp
#' @export
nobs.dp_fdadp <- function(object, ...) object$n

#' @rdname dp_fdadp
#' @export
confint.dp_fdadp <- function(object, parm = NULL, level = 0.95, ...) {
  no_more(...)
  if (is.null(parm)) parm <- object$term.names
  as_effects(lapply(stats::setNames(nm = parm), function(term) stats::coef(object, term, level = level)))
}

not_of_a_private_fit <- function(what) {
  privacy_error(what, " needs the training rows, which a private fit does not keep: it would not be private")
}

#' @export
deviance.dp_fdadp <- function(object, ...) not_of_a_private_fit("deviance()")

#' @export
logLik.dp_fdadp <- function(object, ...) not_of_a_private_fit("logLik()")

#' @export
df.residual.dp_fdadp <- function(object, ...) not_of_a_private_fit("df.residual()")
