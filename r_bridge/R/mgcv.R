# The additive function-on-function core by mgcv: gam(y ~ te(X, S, by = L)).

core_data <- function(X, s, weights) {
  n <- nrow(X)
  list(X = X, S = matrix(s, n, length(s), byrow = TRUE), L = matrix(weights, n, length(s), byrow = TRUE))
}

gam_core <- function(y, X, s, weights, k, m, degree, method, sp = NULL, period = NULL) {
  data <- c(list(y = y), core_data(X, s, weights))
  margin <- c(degree - 1, m)
  points <- list(x = seq(min(X), max(X), length.out = k[1]), s = seq(min(s), max(s), length.out = k[2]))
  knots <- NULL
  formula <- y ~ te(X, S, by = L, bs = "ps", k = k, m = list(margin, margin))
  if (!is.null(period)) {                                  # the last of mgcv's knots is the first again
    knots <- list(S = seq(min(s), min(s) + period, length.out = k[2] + 1))
    points$s <- knots$S[1:k[2]]
    formula <- y ~ te(X, S, by = L, bs = c("ps", "cc"), k = c(k[1], k[2] + 1), m = list(margin, NA))
  }
  fit <- if (is.null(sp)) mgcv::gam(formula, data = data, method = method, knots = knots) else
    mgcv::gam(formula, data = data, method = method, sp = sp, knots = knots)
  smooth <- fit$smooth[[1]]
  own <- smooth$first.para:smooth$last.para
  grid <- expand.grid(S = points$s, X = points$x)         # s fastest, as in the coefficients
  grid$L <- 1
  parts <- smooth_parts(smooth)
  pairs <- mgcv::uniquecombs(cbind(as.vector(data$X), as.vector(data$S)))
  list(key = keep(list(fit = fit, s = s, weights = weights)),
       coefficients = as.numeric(fit$coefficients),
       smoothing_parameters = as.numeric(if (length(fit$sp)) fit$sp else fit$full.sp),
       values = matrix(mgcv::PredictMat(smooth, grid) %*% fit$coefficients[own], k[1], k[2], byrow = TRUE),
       points_x = points$x, points_s = points$s,
       fitted = as.numeric(fit$fitted.values), edf = as.numeric(fit$edf), edf_total = sum(fit$edf),
       noise_variance = as.numeric(fit$sig2), score = as.numeric(fit$gcv.ubre), method = as.character(fit$method)[1],
       reml_scale = if (is.null(fit$reml.scale)) NA_real_ else as.numeric(fit$reml.scale),
       covariance = fit$Vp, constraint = as.numeric(parts$constraint), Z = parts$Z, penalty_scales = parts$S_scale,
       n_dropped = length(parts$del_index),
       packed = nrow(pairs) < 0.9 * length(data$X),
       version = as.character(packageVersion("mgcv")))
}

cyclic_margin <- function(x, knots) {
  smooth <- mgcv::smoothCon(mgcv::s(x, bs = "cc", k = length(knots)), data = data.frame(x = x),
                            knots = list(x = knots), scale.penalty = FALSE)[[1]]
  list(X = unname(smooth$X), S = unname(smooth$S[[1]]))
}

gam_core_predict <- function(key, X) {
  object <- get_kept(key)
  p <- predict(object$fit, newdata = core_data(X, object$s, object$weights), se.fit = TRUE)
  list(fit = as.numeric(p$fit), se = as.numeric(p$se.fit))
}

rlaplace <- function(n, location, scale, seed = NULL) {
  seeded(seed)
  VGAM::rlaplace(n, location, scale)
}
