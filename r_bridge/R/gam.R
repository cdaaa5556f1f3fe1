# Any model of mgcv's by its formula.

gam_by_formula <- function(formula, data, new, sp, family, weights) {
  data$weights_of_rows <- if (is.null(weights)) rep(1, nrow(data)) else weights
  fit <- mgcv::gam(as.formula(formula), family = eval(parse(text = family)), data = data, method = "REML", sp = sp,
                   weights = weights_of_rows, control = mgcv::gam.control(epsilon = 1e-13))
  found <- list(sp = as.numeric(fit$sp), fitted = as.numeric(fit$fitted.values), edf_total = sum(fit$edf),
                sig2 = as.numeric(fit$sig2), score = as.numeric(fit$gcv.ubre),
                deviance = as.numeric(fit$deviance))
  if (is.null(new)) return(found)
  p <- predict(fit, newdata = new, se.fit = TRUE, type = "response")
  c(found, list(predicted = as.numeric(p$fit), predicted_se = as.numeric(p$se.fit)))
}
