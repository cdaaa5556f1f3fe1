# Recorded cases: the additive function-on-function core, one gam per component of Y.

affr_fixed_sp <- function() list(c(1, 1), c(100, 0.1), c(0.01, 1000))

# One scalar response per eigenfunction of Y; the surface F_k(X(s), s).
affr_case <- function(name, X, Y, s, tt, pve = 0.95, max_k = 3, k = c(7, 7), m = c(2, 2),
                      xname = "X", yname = "Y",
                      pc = fpca.face(Y, argvals = tt, pve = pve, knots = min(35, length(tt) %/% 3))) {
  n <- nrow(X)
  train <- seq_len(floor(0.8 * n)); test <- setdiff(seq_len(n), train)
  K <- min(pc$npc, max_k)
  xi <- as.matrix(pc$scores)[, seq_len(K), drop = FALSE]
  w <- trapezoid(s)
  as_data <- function(i) list(X = X[i, , drop = FALSE],
                              S = matrix(s, length(i), length(s), byrow = TRUE),
                              L = matrix(w, length(i), length(s), byrow = TRUE))
  tr <- as_data(train); te_new <- as_data(test)
  gx <- seq(min(tr$X), max(tr$X), length.out = 11)
  gs <- seq(min(s), max(s), length.out = 11)
  grid <- expand.grid(X = gx, S = gs)
  grid$L <- 1
  one <- function(y, method, sp = NULL) {
    tr$y <- y[train]
    f <- y ~ te(X, S, by = L, bs = "ps", k = k, m = list(m, m))
    fit <- if (is.null(sp)) gam(f, data = tr, method = method) else
      gam(f, data = tr, method = method, sp = sp)
    p <- predict(fit, newdata = te_new, se.fit = TRUE)
    g <- gam_parts(fit, keep_design = FALSE)
    g$smooths <- NULL                       # the same for every fit: kept once
    sm <- fit$smooth[[1]]
    surface <- matrix(PredictMat(sm, grid) %*% fit$coefficients[sm$first.para:sm$last.para], 11)
    c(g, list(fitted = fit$fitted.values, predicted = p$fit, predicted_se = p$se.fit,
              surface = surface,
              surface_difference = surface - matrix(surface[6, ], 11, 11, byrow = TRUE)))
  }
  tr$y <- xi[train, 1]
  proto <- gam(y ~ te(X, S, by = L, bs = "ps", k = k, m = list(m, m)), data = tr,
               method = "REML")
  pairs <- uniquecombs(cbind(as.vector(tr$X), as.vector(tr$S)))
  sm <- smooth_parts(proto$smooth[[1]])
  fits <- lapply(seq_len(K), function(j) {
    y <- xi[, j]
    list(reml = one(y, "REML"), gcv = one(y, "GCV.Cp"),
         fixed = lapply(affr_fixed_sp(), function(sp) one(y, "REML", sp)))
  })
  record(name,
         paste0("gam(xi_k ~ te(X, S, by=L, bs='ps', k=c(", k[1], ",", k[2],
                "), m=list(c(2,2),c(2,2))), method='REML' | 'GCV.Cp' | 'REML' with sp)"),
         input = list(X = X, s = s, weights = w, Y = Y, t = tt, scores = xi,
                      train = train, test = test, k = k, m = m,
                      fixed_sp = affr_fixed_sp(), x_name = xname, y_name = yname),
         output = list(smooth = sm,
                       design_train = model.matrix(proto),
                       design_test = predict(proto, newdata = te_new, type = "lpmatrix"),
                       pairs_total = length(tr$X), pairs_unique = nrow(pairs),
                       pairs_packed = as.numeric(nrow(pairs) < 0.9 * length(tr$X)),
                       surface_x = gx, surface_s = gs,
                       fpca = drop_null(list(npc = pc$npc, mu = pc$mu,
                                             efunctions = as.matrix(pc$efunctions),
                                             evalues = pc$evalues)),
                       fits = fits),
         note = paste("design has the intercept in column 1; smooth$S belong to the remaining columns.",
                      "surface is F(x, s) (rows x, columns s), known only up to a function of s alone;",
                      "surface_difference = F(x, s) - F(x[6], s) is identified."))
}

case_affr_canadian <- function() {
  d <- canadian(365)
  affr_case("affr_canadian", d$temp, d$prec, d$argvals, d$argvals,
            xname = "daily temperature", yname = "log10 daily precipitation")
}

case_affr_dti2 <- function() {
  d <- dti2_complete()
  affr_case("affr_dti2", d$cca, d$rcst, unit_grid(93), unit_grid(55),
            xname = "cca", yname = "rcst")
}

case_affr_lip <- function() {
  d <- lip()
  affr_case("affr_lip", d$emg, d$acc, d$time, d$time, xname = "EMG", yname = "lip acceleration")
}

# Simulated curves with more rows than coefficients: mgcv 1.8 fits it too, and neither refund nor fda is needed.
case_affr_sim <- function() {
  d <- simulate_fof(100, 41, seed = 9, nonlinear = TRUE)
  mu <- colMeans(d$Y)
  u <- svd(sweep(d$Y, 2, mu), nu = 2, nv = 2)
  pc <- list(npc = 2, mu = mu, efunctions = u$v, scores = u$u %*% diag(u$d[1:2]))
  affr_case("affr_sim", d$X, d$Y, d$s, d$t, pc = pc, xname = "simulated X", yname = "simulated Y")
}
