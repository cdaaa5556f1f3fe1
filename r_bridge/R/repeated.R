# Mixed models of repeated curves with plain values in and out: mgcv, nlme, lme4 and refund's multilevel components.

# gam with functions of features X (n, p) and random functions of persons, all on the basis B (T, k) with penalty S;
# persons have two penalties, a ridge and S. Curves in rows of Y (n, T). Smoothing parameters are fixed, or found by REML
# where they are NULL. Z (n, T) is a covariate that varies with t, of one more such function, after those of X.
repeated_gam <- function(Y, X, id, B, S, sp = NULL, sp_person = NULL, scale = -1, Z = NULL) {
  n <- nrow(Y); T <- ncol(Y); k <- ncol(B); id <- factor(id); I <- nlevels(id)
  long <- function(F) mgcv::tensor.prod.model.matrix(list(F[rep(seq_len(n), each = T), , drop = FALSE], B[rep(seq_len(T), n), ]))
  d <- list(y = c(t(Y)), Z = long(model.matrix(~ 0 + id)))
  for (j in seq_len(ncol(X))) d[[paste0("F", j)]] <- long(X[, j, drop = FALSE])
  pen <- lapply(seq_len(ncol(X)), function(j) drop_null(list(S, sp = sp[j])))
  names(pen) <- paste0("F", seq_len(ncol(X)))
  if (!is.null(Z)) {
    d$C <- c(t(Z)) * B[rep(seq_len(T), n), ]
    pen$C <- drop_null(list(S, sp = sp[ncol(X) + 1]))
  }
  pen$Z <- drop_null(list(diag(I * k), kronecker(diag(I), S), sp = sp_person))
  f <- as.formula(paste("y ~ 0 +", paste(names(pen), collapse = " + ")))
  g <- mgcv::gam(f, scale = scale, method = "REML", paraPen = pen, data = d)
  fixed <- seq_len((ncol(X) + !is.null(Z)) * k)
  list(fitted = matrix(fitted(g), n, byrow = TRUE), coefficients = matrix(coef(g), ncol = k, byrow = TRUE),
       covariance = unname(g$Vp[fixed, fixed]), sp = unname(g$sp), noise = g$sig2)
}

# Two responses C (n, 2) with free covariances of persons and rows.
repeated_lme <- function(C, x, id) {
  n <- nrow(C)
  L <- data.frame(y = c(t(C)), tr = factor(rep(1:2, n)), id = factor(rep(id, each = 2)), row = factor(rep(seq_len(n), each = 2)), x = rep(x, each = 2))
  m <- nlme::lme(y ~ 0 + tr + tr:x, random = ~ 0 + tr | id, correlation = nlme::corSymm(form = ~ as.integer(tr) | id/row),
                 weights = nlme::varIdent(form = ~ 1 | tr), data = L,
                 control = nlme::lmeControl(maxIter = 500, msMaxIter = 500, tolerance = 1e-10, msTol = 1e-12, opt = "nlminb", niterEM = 200))
  s <- m$sigma * c(1, coef(m$modelStruct$varStruct, unconstrained = FALSE))
  r <- coef(m$modelStruct$corStruct, unconstrained = FALSE)
  list(deviance = c(-2 * logLik(m)), G = unclass(unname(nlme::getVarCov(m)))[1:2, 1:2], R = diag(s) %*% matrix(c(1, r, r, 1), 2) %*% diag(s),
       fixed = matrix(nlme::fixef(m), 2, byrow = TRUE), se = matrix(sqrt(diag(vcov(m))), 2, byrow = TRUE))
}

# Numbers with a random intercept, and with a random slope of x if asked.
repeated_lmer <- function(y, x, id, slope) {
  d <- data.frame(y = y, x = x, id = factor(id))
  f <- if (slope) y ~ x + (x | id) else y ~ x + (1 | id)
  m <- suppressMessages(lme4::lmer(f, d, control = lme4::lmerControl(optCtrl = list(ftol_abs = 1e-14, xtol_abs = 1e-12))))
  list(G = matrix(lme4::VarCorr(m)$id, 1 + slope), R = sigma(m)^2, deviance = lme4::REMLcrit(m), fixed = unname(lme4::fixef(m)),
       se = unname(sqrt(diag(as.matrix(vcov(m))))), effects = unname(as.matrix(lme4::ranef(m)$id)))
}

repeated_mfpca <- function(Y, id, knots) {
  f <- refund::mfpca.face(Y = Y, id = id, twoway = FALSE, knots = knots)
  list(mean = f$mu, functions = unname(f$efunctions), values = unname(f$evalues), scores = unname(f$scores), noise = f$sigma2)
}

# Numbers with random intercepts and slopes of x of persons; or with random intercepts of sites and of persons in them.
repeated_levels <- function(y, x, id, site = NULL) {
  d <- data.frame(y = y, x = x, id = factor(id))
  own <- nlme::lmeControl(maxIter = 500, msMaxIter = 500, tolerance = 1e-12, msTol = 1e-14, niterEM = 200)
  if (is.null(site)) {
    m <- nlme::lme(y ~ x, random = ~ x | id, data = d, control = own)
    out <- list(G = matrix(as.numeric(nlme::getVarCov(m)), 2), effects = unname(as.matrix(nlme::ranef(m))))
  } else {
    d$site <- factor(site)
    m <- nlme::lme(y ~ x, random = ~ 1 | site/id, data = d, control = own)
    r <- nlme::ranef(m)
    v <- lapply(m$modelStruct$reStruct, function(s) m$sigma^2 * as.matrix(s)[1, 1])
    out <- list(S = v$site, G = v$id, sites = r$site[, 1], effects = r$id[, 1],
                persons = as.numeric(sub(".*/", "", rownames(r$id))))
  }
  c(out, list(R = m$sigma^2, deviance = c(-2 * logLik(m)), fixed = unname(nlme::fixef(m)), se = unname(sqrt(diag(vcov(m))))))
}
