# Recorded cases: refund's pffr.

surface_parts <- function(sm) {
  drop_null(list(label = sm$main, dim = sm$dim, x = sm$x, y = sm$y, z = sm$z,
                 value = as.numeric(sm$value), se = as.numeric(sm$se)))
}

# n2 and n3 are coef.pffr's grid sizes for surfaces.
pffr_parts <- function(fit, newdata = NULL, n1 = 100, n2 = 40, n3 = 12, design_curves = 3) {
  rows <- seq_len(design_curves * fit$pffr$nyindex)
  g <- gam_parts(fit, rows = rows)
  utils::capture.output(co <- coef(fit, n1 = n1, n2 = n2, n3 = n3))
  utils::capture.output(co2 <- coef(fit, n1 = n1, n2 = n2, n3 = n3, seWithMean = FALSE))
  sm <- lapply(seq_along(co$smterms), function(i) {
    p <- surface_parts(co$smterms[[i]])
    p$se_without_mean <- as.numeric(co2$smterms[[i]]$se)
    if (is.null(co$smterms[[i]]$coef)) p else p
  })
  out <- c(g, list(fitted = fitted(fit), surfaces = sm,
                   parametric = as.matrix(co$pterms),
                   formula_used = paste(deparse(formula(fit), width.cutoff = 500), collapse = "")))
  if (!is.null(newdata)) {
    p <- predict(fit, newdata = newdata, se.fit = TRUE)
    tm <- predict(fit, newdata = newdata, type = "terms")
    out$predicted <- p$fit
    out$predicted_se <- p$se.fit
    out$predicted_terms <- lapply(unname(tm), function(x) matrix(as.numeric(x), nrow(x)))
    out$predicted_term_labels <- names(tm)
  }
  out
}

split_rows <- function(n) list(train = seq_len(floor(0.8 * n)), test = (floor(0.8 * n) + 1):n)

pffr_ff_case <- function(name, X, Y, ss, tt, k = c(7, 7), extra = list(), note = "") {
  i <- split_rows(nrow(X))
  d <- list(X = X[i$train, ], Y = Y[i$train, ])
  new <- list(X = X[i$test, ])
  fit0 <- suppressWarnings(pffr(Y ~ ff(X, xind = ss), yind = tt, data = d))
  sp_pars <- list(bs = "ps", m = list(c(2, 2), c(2, 2)), k = k)
  fit1 <- suppressWarnings(pffr(Y ~ ff(X, xind = ss, integration = "trapezoidal",
                                       splinepars = sp_pars), yind = tt, data = d))
  record(name,
         paste("default: pffr(Y ~ ff(X, xind=s), yind=t);",
               "trapezoidal: ff(..., integration='trapezoidal', splinepars=list(bs='ps', m=list(c(2,2),c(2,2)), k=k))"),
         input = c(list(X = X, Y = Y, s = ss, t = tt, train = i$train, test = i$test, k = k), extra),
         output = list(default = c(list(weights = fit0$pffr$ff[[1]]$L[1, ]), pffr_parts(fit0, new)),
                       trapezoidal = c(list(weights = fit1$pffr$ff[[1]]$L[1, ]), pffr_parts(fit1, new))),
         note = note)
}

pffr_sff_case <- function(name, X, Y, ss, tt, k = c(5, 5, 5), extra = list(), note = "") {
  i <- split_rows(nrow(X))
  d <- list(X = X[i$train, ], Y = Y[i$train, ])
  new <- list(X = X[i$test, ])
  sp_pars <- list(bs = "ps", m = c(2, 2, 2), k = k)
  fit <- suppressWarnings(pffr(Y ~ sff(X, xind = ss, integration = "trapezoidal",
                                       splinepars = sp_pars), yind = tt, data = d))
  record(name,
         "pffr(Y ~ sff(X, xind=s, integration='trapezoidal', splinepars=list(bs='ps', m=c(2,2,2), k=k)), yind=t)",
         input = c(list(X = X, Y = Y, s = ss, t = tt, train = i$train, test = i$test, k = k), extra),
         output = c(list(weights = fit$pffr$ff[[1]]$L[1, ]), pffr_parts(fit, new)),
         note = paste("margins in the order t, s, X.", note))
}

case_pffr_ff_canadian <- function() {
  d <- canadian(73)
  pffr_ff_case("pffr_ff_canadian", d$temp, d$prec, d$argvals, d$argvals)
}

case_pffr_ff_dti2 <- function() {
  d <- dti2_complete()
  pffr_ff_case("pffr_ff_dti2", d$cca, d$rcst, unit_grid(93), unit_grid(55))
}

case_pffr_ff_sim <- function() {
  d <- simulate_fof(60, 41, seed = 7)
  pffr_ff_case("pffr_ff_sim", d$X, d$Y, d$s, d$t,
               extra = list(true_beta = d$beta, true_mu = d$mu, seed = d$seed))
}

case_pffr_sff_canadian <- function() {
  d <- canadian(73)
  pffr_sff_case("pffr_sff_canadian", d$temp, d$prec, d$argvals, d$argvals, k = c(5, 5, 5))
}

case_pffr_sff_sim <- function() {
  d <- simulate_fof(50, 31, seed = 8, nonlinear = TRUE)
  pffr_sff_case("pffr_sff_sim", d$X, d$Y, d$s, d$t, k = c(5, 5, 5),
                extra = list(true_beta = d$beta, true_mu = d$mu, seed = d$seed),
                note = "truth: Y(t) = 1 + sin(pi t) + int beta(s,t) (sin X(s) + X(s)^2/4) ds + N(0, 0.1^2)")
}

case_pffr_fos_canadian <- function() {
  w <- canadian(73)
  tt <- w$argvals
  region <- factor(w$region)
  by_factor <- pffr(Y ~ region, yind = tt, data = list(Y = w$temp, region = region))
  levs <- levels(region)
  dummies <- lapply(levs[-1], function(l) as.numeric(region == l))
  names(dummies) <- levs[-1]
  by_dummy <- pffr(Y ~ Atlantic + Continental + Pacific, yind = tt,
                   data = c(list(Y = w$temp), dummies))
  new <- lapply(levs[-1], function(l) as.numeric(levs == l))
  names(new) <- levs[-1]
  record("pffr_fos_canadian",
         "factor: pffr(temp ~ region, yind=t); dummies: pffr(temp ~ Atlantic + Continental + Pacific, yind=t) with 0/1 columns",
         input = list(Y = w$temp, t = tt, region = as.character(region), region_levels = levs),
         output = list(factor = pffr_parts(by_factor, list(region = factor(levs, levels = levs))),
                       dummies = pffr_parts(by_dummy, new)),
         note = paste("predictions: one row per level. factor: every level's smooth is centred and no level",
                      "mean is in the model, so all curves have the same time average; dummies: the usual model"))
}

case_pffr_concurrent_canadian <- function() {
  w <- canadian(73)
  i <- split_rows(35)
  d <- list(Y = w$prec[i$train, ], X = w$temp[i$train, ])
  tt <- w$argvals
  fit <- pffr(Y ~ X, yind = tt, data = d)
  record("pffr_concurrent_canadian", "pffr(log10prec ~ temp, yind=t)",
         input = list(X = w$temp, Y = w$prec, t = tt, train = i$train, test = i$test),
         output = pffr_parts(fit, list(X = w$temp[i$test, ])))
}
