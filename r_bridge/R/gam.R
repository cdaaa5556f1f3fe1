# Any model of mgcv's by its formula.

gam_by_formula <- function(formula, data, new, sp) {
  fit <- mgcv::gam(as.formula(formula), data = data, method = "REML", sp = sp)
  found <- list(sp = as.numeric(fit$sp), fitted = as.numeric(fit$fitted.values), edf_total = sum(fit$edf),
                sig2 = as.numeric(fit$sig2), score = as.numeric(fit$gcv.ubre))
  if (is.null(new)) return(found)
  p <- predict(fit, newdata = new, se.fit = TRUE)
  c(found, list(predicted = as.numeric(p$fit), predicted_se = as.numeric(p$se.fit)))
}
