# Any model of mgcv's by its formula.

gam_by_formula <- function(formula, data, new, sp, family, weights, tolerance, combine = NULL, knots = NULL) {
  formula <- if (length(formula) > 1) lapply(formula, as.formula) else as.formula(formula)
  given <- list(formula = formula, family = eval(parse(text = family)), data = data, method = "REML",
                sp = sp, control = mgcv::gam.control(epsilon = 1e-11, newton = list(conv.tol = tolerance, maxHalf = 50)))
  given <- c(given, if (!is.null(weights)) list(weights = weights), if (!is.null(knots)) list(knots = knots))
  fit <- do.call(mgcv::gam, given)
  found <- list(sp = as.numeric(fit$sp), fitted = as.numeric(fit$fitted.values), edf_total = sum(fit$edf),
                sig2 = as.numeric(fit$sig2), score = as.numeric(fit$gcv.ubre),
                deviance = as.numeric(fit$deviance), null_deviance = as.numeric(fit$null.deviance), aic = AIC(fit))
  if (!is.null(fit$family$n.theta) && fit$family$n.theta > 0) found$theta <- as.numeric(fit$family$getTheta(TRUE))
  if (is.null(new)) return(found)
  p <- predict(fit, newdata = new, se.fit = TRUE, type = "response")
  both <- list(predicted = as.numeric(p$fit), predicted_se = as.numeric(p$se.fit))
  if (!is.null(fit$Vc)) # that knows that smoothing parameters were chosen
    both$unconditional_se <- as.numeric(predict(fit, newdata = new, se.fit = TRUE, type = "response", unconditional = TRUE)$se.fit)
  if (!is.null(combine)) { # combinations of the means of new rows, by the delta method
    rows <- predict(fit, newdata = new, type = "lpmatrix")
    eta <- as.numeric(rows %*% coef(fit)) + if (is.null(attr(rows, "model.offset"))) 0 else attr(rows, "model.offset")
    gradient <- combine %*% (fit$family$mu.eta(eta) * rows)
    both$combined <- as.numeric(combine %*% fit$family$linkinv(eta))
    both$combined_se <- sqrt(rowSums((gradient %*% fit$Vp) * gradient))
  }
  c(found, both)
}
