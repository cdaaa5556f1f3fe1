# Recorded cases: scalar on function (pfr, fpcr) and function on scalar (fosr).

pfr_curve <- function(fit) {
  co <- coef(fit)
  list(grid = as.matrix(co[, !(names(co) %in% c("value", "se")), drop = FALSE]),
       value = as.numeric(co$value), se = as.numeric(co$se), used_Vc = as.numeric(!is.null(fit$Vc)),
       Vc = fit$Vc)
}

pfr_case <- function(name, y, X, kind, k, argvals = unit_grid(ncol(X)),
                     yname = "pasat", xname = "cca") {
  d <- list(y = y, X = X)
  n <- length(y)
  fit <- if (kind == "lf") pfr(y ~ lf(X, argvals = argvals, k = k, bs = "ps"), data = d) else
    pfr(y ~ af(X, argvals = argvals, k = k, bs = "ps"), data = d)
  trap <- if (kind == "lf")
    pfr(y ~ lf(X, argvals = argvals, k = k, bs = "ps", integration = "trapezoidal"), data = d) else
    pfr(y ~ af(X, argvals = argvals, k = k, bs = "ps", integration = "trapezoidal"), data = d)
  one <- function(fit) {
    class(fit) <- setdiff(class(fit), "pfr")
    g <- gam_parts(fit)
    class(fit) <- c("pfr", class(fit))
    c(g, list(fitted = fit$fitted.values, curve = pfr_curve(fit)))
  }
  record(name, paste0("pfr(", yname, " ~ ", kind, "(", xname, ", k=", deparse(k),
                      ", bs='ps'))  default Simpson, and integration='trapezoidal'"),
         input = list(y = y, X = X, argvals = argvals, k = k,
                      weights_simpson = simpson_refund(argvals),
                      weights_trapezoidal = trapezoid(argvals)),
         output = list(simpson = one(fit), trapezoidal = one(trap)))
}


simpson_refund <- function(x) {          # refund 0.1-38: divides by n, not n - 1
  n <- length(x)
  (x[n] - x[1]) / n / 3 * c(1, rep(c(4, 2), length.out = n - 2), 1)
}

case_pfr_lf_dti <- function() {
  d <- dti_pasat()
  pfr_case("pfr_lf_dti", d$pasat, unclass(d$cca), "lf", 20)
}

case_pfr_af_dti <- function() {
  d <- dti_pasat()
  pfr_case("pfr_af_dti", d$pasat, unclass(d$cca), "af", c(8, 8))
}

case_fosr_dti <- function() {
  d <- dti_visit1()
  Y <- unclass(d$cca)
  X <- cbind(1, d$case, as.numeric(d$sex == "female"))
  argvals <- unit_grid(93)
  one <- function(rows, ...) {
    utils::capture.output(
      f <- fosr(Y = Y[rows, ], X = X[rows, ], argvals = argvals, multi.sp = FALSE, ...))
    drop_null(list(est = f$est.func, se = f$se.func, yhat = f$yhat, lambda = f$lambda,
                   edf = f$edf, coef = f$fd$coefs, roughness = f$roughness, cv = f$cv))
  }
  grid <- 10^seq(-7, -1, by = 1)
  cv_table <- {
    B <- eval.basis(argvals, create.bspline.basis(c(0, 1), nbasis = 15, norder = 4))
    P <- getbasispenalty(create.bspline.basis(c(0, 1), nbasis = 15, norder = 4), 2)
    utils::capture.output(tab <- refund:::lofocv(Y[1:90, ], X[1:90, ] %x% B, S1 = diag(3) %x% P,
                                                 argvals = argvals, lamvec = grid))
    tab
  }
  record("fosr_dti", "fosr(Y=cca, X=cbind(1, case, female), method='OLS' | 'GLS', multi.sp=FALSE)",
         input = list(Y = Y, X = X, argvals = argvals, nbasis = 15, norder = 4, pen_order = 2,
                      fixed_lambda = 1e-3, rows90 = 1:90, lambda_grid = grid),
         output = list(ols_fixed = one(1:141, method = "OLS", lambda = 1e-3),
                       ols_cv_90 = one(1:90, method = "OLS"),
                       ols_cv_table_90 = cv_table,
                       gls = one(1:141, method = "GLS")),
         note = paste("GLS: naive covariance, one iteration. The leave-one-curve-out weights of",
                      "refund 0.1-38 are those of the grid, so ols_cv_* use 90 curves (at most the",
                      "93 grid points); with more curves the criterion is NA."))
}

case_fpcr_dti <- function() {
  d <- dti_pasat()
  X <- unclass(d$cca); argvals <- unit_grid(93)
  one <- function(...) {
    set.seed(1)
    utils::capture.output(f <- fpcr(y = d$pasat, xfuncs = X, argvals = argvals, ...))
    list(fhat = as.numeric(f$fhat), se = as.numeric(f$se), fitted = f$fitted.values,
         undecor_coef = as.numeric(f$undecor.coef), ncomp = f$ncomp, nbasis = f$nbasis,
         sp = f$sp, full_sp = f$full.sp, sig2 = f$sig2, score = as.numeric(f$gcv.ubre),
         edf = f$edf, coefficients = f$coefficients, Vp = f$Vp)
  }
  record("fpcr_dti", "fpcr(pasat, cca, nbasis=30, ncomp=8) and default pve=0.99, nbasis=40",
         input = list(y = d$pasat, X = X, argvals = argvals),
         output = list(ncomp8 = drop_null(one(nbasis = 30, ncomp = 8)),
                       default = drop_null(one())))
}
