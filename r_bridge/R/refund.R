# refund's models with plain lists in and out; refund must be attached (its formulas look its functions up).

# A formula that finds the data's grids, then refund's functions.
as_formula <- function(text, grids) stats::as.formula(text, env = list2env(as.list(grids), parent = globalenv()))

# Run `call` where `formula`, `data` and `yind` are variables: refund evaluates the names in its own call.
run_fit <- function(fun, options, formula, data, yind = NULL) {
  here <- list2env(list(formula = formula, data = data, yind = yind), parent = globalenv())
  arguments <- c(list(formula = quote(formula), data = quote(data)), if (!is.null(yind)) list(yind = quote(yind)), options)
  eval(as.call(c(fun, arguments)), here)
}

gam_summary <- function(fit) {
  list(coefficients = as.numeric(fit$coefficients),
       smoothing_parameters = as.numeric(if (length(fit$sp)) fit$sp else fit$full.sp),
       edf = as.numeric(fit$edf), edf_total = sum(fit$edf), noise_variance = as.numeric(fit$sig2),
       score = as.numeric(fit$gcv.ubre), covariance = fit$Vp)
}

pffr_fit <- function(formula, data, grids, yind, options) {
  fit <- run_fit(quote(refund::pffr), options, as_formula(formula, grids), data, yind)
  c(list(key = keep(fit), fitted = unname(as.matrix(fitted(fit)))), gam_summary(fit))
}

pffr_predict <- function(key, data) {
  p <- predict(get_kept(key), newdata = data, se.fit = TRUE)
  list(fit = unname(as.matrix(p$fit)), se = unname(as.matrix(p$se.fit)))
}

# Estimated coefficient functions on refund's grids (n1 points for curves, n2 x n2 for surfaces, n3^3 beyond).
pffr_surfaces <- function(key, n1, n2, n3) {
  terms <- coef(get_kept(key), n1 = n1, n2 = n2, n3 = n3)$smterms
  lapply(unname(terms), function(sm) drop_null(list(
    label = as.character(sm$main), dim = sm$dim, x = as.numeric(sm$x),
    y = if (is.null(sm$y)) NULL else as.numeric(sm$y), z = if (is.null(sm$z)) NULL else as.numeric(sm$z),
    value = as.numeric(sm$value), se = as.numeric(sm$se))))
}

pfr_fit <- function(formula, data, grids, options) {
  fit <- run_fit(quote(refund::pfr), options, as_formula(formula, grids), data)
  c(list(key = keep(fit), fitted = as.numeric(fit$fitted.values)), gam_summary(fit))
}

pfr_predict <- function(key, data) {
  p <- predict(get_kept(key), newdata = data, se.fit = TRUE, type = "response")
  list(fit = as.numeric(p$fit), se = as.numeric(p$se.fit))
}

pfr_curve <- function(key) {
  curve <- coef(get_kept(key))
  grid <- !(names(curve) %in% c("value", "se"))
  list(grid = unname(as.matrix(curve[, grid, drop = FALSE])), names = names(curve)[grid],
       value = as.numeric(curve$value), se = as.numeric(curve$se))
}

fpca_fit <- function(method, Y, argvals, options) {
  arguments <- c(list(Y = Y, argvals = argvals), options)
  fit <- do.call(getExportedValue("refund", method), arguments)
  c(list(key = keep(list(method = method, arguments = arguments))), fpca_plain(fit))
}

fpca_plain <- function(fit) {
  list(mean = as.numeric(fit$mu), functions = t(as.matrix(fit$efunctions)), values = as.numeric(fit$evalues),
       scores = unname(as.matrix(fit$scores)), n_components = as.numeric(fit$npc),
       fitted = unname(as.matrix(fit$Yhat)),
       noise_variance = if (is.null(fit$sigma2)) NA_real_ else as.numeric(fit$sigma2))
}

# refund has no predict for FPCA: the same decomposition is made again, with Y.pred.
fpca_predict <- function(key, Y) {
  made <- get_kept(key)
  fpca_plain(do.call(getExportedValue("refund", made$method), c(made$arguments, list(Y.pred = Y))))
}

fosr_fit <- function(Y, X, argvals, options) {
  fit <- do.call(refund::fosr, c(list(Y = Y, X = X, argvals = argvals), options))
  list(coefficients = t(fit$est.func), se = t(fit$se.func), argvals = as.numeric(fit$argvals),
       fitted = unname(as.matrix(if (inherits(fit$yhat, "fd")) t(fda::eval.fd(argvals, fit$yhat)) else fit$yhat)),
       lambda = as.numeric(fit$lambda), edf = if (is.null(fit$edf)) NA_real_ else as.numeric(fit$edf))
}
