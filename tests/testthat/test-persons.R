# Several curves a person: re(id, covariance = "free") in formulas, and components of persons and of rows.

repeated <- function() {
  if (is.null(cache$repeated)) {
    set.seed(1)
    id <- rep(paste0("p", 1:60), each = 4)
    t <- seq(0, 1, length.out = 24)
    own <- matrix(rnorm(120), 60) %*% rbind(1, cos(2 * pi * t))
    age <- runif(240)
    Y <- own[rep(1:60, each = 4), ] + outer(age, t) + outer(rnorm(240), sin(2 * pi * t)) + 0.3 * matrix(rnorm(240 * 24), 240)
    cache$repeated <- list(Y = Y, age = age, id = id)
  }
  cache$repeated
}

to_python <- function() {
  d <- repeated()
  reticulate::py_run_string("
import numpy as np
from fdadp import FunctionalRegression, MultilevelFPCA
", convert = FALSE)
  main <- reticulate::import_main(convert = FALSE)
  main$own_Y <- d$Y
  main$own_age <- d$age
  main$own_id <- d$id
}

persons_fit <- function() {
  if (is.null(cache$persons)) cache$persons <- fdadp(Y ~ age + re(id, covariance = "free"), data = repeated())
  cache$persons
}

test_that("curves of persons in a formula are those of Python", {
  skip_without_python()
  d <- repeated()
  fit <- persons_fit()
  to_python()
  found <- from_python("
own = {'Y': np.array(own_Y, order='C'), 'age': np.array(own_age), 'id': [str(i) for i in own_id]}
model = FunctionalRegression(\"Y ~ age + re(id, covariance='free')\").fit(own)
new = {'age': np.array([0.5, 0.5]), 'id': ['p1', 'stranger']}
curves = model.coef('re(id)', se=True, t=model.t_)
lower, upper = model.predict_interval(new, 0.9)
found = {'fitted': model.fitted_values_, 'edf': list(model.term_edf_.values()), 'icc': model.persons_.icc(),
  'curves': curves['value'].to_numpy().reshape(60, -1), 'se': curves['se'].to_numpy().reshape(60, -1), 'new': model.predict(new),
  'new_se': model.predict_se(new), 'upper': upper, 'who': list(model.persons_.persons.levels), 'age_se': model.coef('age', se=True)['se'].to_numpy()}
", "found")
  expect_same(fitted(fit), found$fitted, tolerance = 1e-6)
  expect_same(unname(fit$term.edf), unlist(found$edf), tolerance = 1e-4)
  expect_equal(fit$persons$icc, found$icc, tolerance = 1e-6)
  expect_identical(names(fit$term.edf), c("(Intercept)", "s(t)", "age"))
  curves <- ranef(fit, se.fit = TRUE)
  expect_identical(rownames(curves$fit), unlist(found$who))
  expect_same(curves$fit, found$curves, tolerance = 1e-6)
  expect_same(curves$se.fit, found$se, tolerance = 1e-6)
  expect_same(ranef(fit, t = c(0, 1)), found$curves[, c(1, 24)], tolerance = 1e-6)
  new <- list(age = c(0.5, 0.5), id = c("p1", "stranger"))
  predicted <- predict(fit, new, se.fit = TRUE, interval = "prediction", level = 0.9)
  expect_same(predicted$fit, found$new, tolerance = 1e-6)
  expect_same(predicted$se.fit, found$new_se, tolerance = 1e-5)
  expect_same(predicted$upr, found$upper, tolerance = 1e-5)
  expect_same(coef(fit, "age")$se, found$age_se, tolerance = 1e-5)
})

test_that("persons have curves of their own, strangers those of the population, also after saving", {
  skip_without_python()
  fit <- persons_fit()
  new <- list(age = c(0.5, 0.5), id = c("p1", "stranger"))
  own <- predict(fit, new)
  expect_same(own[1, ] - own[2, ], ranef(fit)["p1", ], tolerance = 1e-8)
  without <- predict(fit, new, exclude = "re(id)")
  expect_same(without, rbind(own[2, ], own[2, ]), tolerance = 1e-8)
  parts <- predict(fit, new, type = "terms")
  expect_same(parts[["re(id)"]][2, ], rep(0, 24))
  saved <- unserialize(serialize(fit, NULL))
  saved$key <- "of another session"
  expect_same(predict(saved, new), own, tolerance = 1e-5)
  frame <- coef(fit, "re(id)", id = c("p3", "p1"), t = 0.5)
  expect_identical(frame$id, c("p3", "p1"))
  expect_error(coef(fit, "re(id)", id = "stranger"), "stranger", class = "fdadp_input_error")
  expect_error(ranef(terms_fit()), "must be a fit with re(id, covariance", fixed = TRUE, class = "fdadp_input_error")
})

test_that("summaries, tests, bands and pictures know of persons", {
  skip_without_python()
  fit <- persons_fit()
  expect_identical(rownames(anova(fit)), c("s(t)", "age", "re(id)"))
  expect_output(print(summary(fit)), "person .*row .*noise .*covariances of persons and rows are free")
  expect_identical(names(confint(fit)), c("(Intercept)", "s(t)", "age"))
  expect_error(confint(fit, "re(id)", simultaneous = TRUE), "re(id)", fixed = TRUE, class = "fdadp_input_error")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_length(plot(fit, "re(id)"), 1)
  expect_length(plot(fit), 2)
  clustered <- fdadp(Y ~ age + re(id, covariance = "free"), data = repeated(), groups = repeated()$id)
  expect_identical(clustered$se, "cluster")
  expect_gt(max(abs(coef(clustered, "age")$se - coef(fit, "age")$se)), 1e-4)
})

test_that("persons have slopes, and belong to sites", {
  skip_without_python()
  d <- repeated()
  set.seed(2)
  d$week <- runif(240, 0, 3)
  slope <- rnorm(60)
  d$Y <- d$Y + (d$week * slope[rep(1:60, each = 4)])
  sloped <- fdadp(Y ~ age + week + re(id, slopes = week, k = 6), data = d)
  curves <- ranef(sloped)
  expect_named(curves, c("re(id)", "re(id):week"))
  expect_gt(stats::cor(rowMeans(curves[["re(id):week"]])[unique(d$id)], slope), 0.95)
  new <- list(age = c(0.5, 0.5), week = c(2, 2), id = c("p1", "stranger"))
  gained <- predict(sloped, new)
  own <- lapply(curves, function(values) values["p1", ])
  expect_same(gained[1, ] - gained[2, ], own[[1]] + 2 * own[[2]], tolerance = 1e-7)
  alone <- fdadp(Y ~ age + week + re(id, slopes = c(week), intercept = FALSE, k = 6), data = d)
  expect_identical(rownames(ranef(alone)), sort(unique(d$id)))
  d$site <- paste0("site", (match(d$id, unique(d$id)) - 1) %/% 6)
  nested <- fdadp(Y ~ age + re(site, covariance = "free", k = 6) + re(id, covariance = "free", k = 6), data = d)
  curves <- ranef(nested, se.fit = TRUE)
  expect_identical(dim(curves[["re(site)"]]$se.fit), c(10L, 24L))
  expect_identical(rownames(nested$persons$variances), c("site", "person", "row", "noise"))
})

test_that("mfpca is refund's mfpca.face on DTI as recorded", {
  path <- file.path("..", "reference", "mfpca_dti.rds")
  skip_if_not(file.exists(path), "tests/reference: this is not the repository")
  skip_without_python()
  recorded <- readRDS(path)
  wanted <- recorded$output
  fit <- with(recorded$input, mfpca(Y, id, method = "face", knots = 30, quadrature = "equal"))
  expect_identical(unlist(fit$npc), c(person = 14L, row = 21L))
  signs <- lapply(1:2, function(j) sign(colSums(fit$efunctions[[j]] * wanted$efunctions[[j]])))
  # What differs within persons does not depend on the mean curve.
  expect_same(fit$efunctions$row %*% diag(signs[[2]]), wanted$efunctions[[2]], tolerance = 1e-10)
  expect_same(fit$evalues$row / wanted$evalues[[2]], rep(1, 21), tolerance = 1e-10)
  # Between persons all depends on it, and ours is smoothed by a criterion of its own (largest difference 3e-4).
  expect_same(fit$mu, wanted$mu, tolerance = 5e-4)
  expect_same((fit$efunctions$person %*% diag(signs[[1]]))[, 1:3], wanted$efunctions[[1]][, 1:3], tolerance = 5e-3)
  expect_same(fit$evalues$person / wanted$evalues[[1]], rep(1, 14), tolerance = 0.02)
  expect_same(fit$scores$person %*% diag(signs[[1]]), wanted$scores1, tolerance = 5e-4)
  expect_same(fit$scores$row[1:50, ] %*% diag(signs[[2]]), wanted$scores2, tolerance = 1e-4)
  expect_identical(rownames(fit$scores$person), as.character(unique(recorded$input$id)))
})

test_that("each visit may have a mean curve of its own", {
  skip_without_python()
  d <- repeated()
  visit <- rep(1:4, 60)
  Y <- d$Y + outer(visit - 2.5, seq(0, 1, length.out = 24))
  fit <- mfpca(Y, d$id, npc = 2, method = "face", visit = visit)
  expect_identical(dim(fit$coefficients), c(24L, 4L))
  expect_gt(mean(fit$coefficients[, 4] - fit$coefficients[, 1]), 1)
  again <- predict(fit, Y, d$id, newvisit = visit)
  expect_same(again, fit$Yhat, tolerance = 1e-8)
  left <- Y - fit$Yhat
  expect_lt(max(abs(colMeans(left[visit == 4, ]))), 0.2)
  expect_error(predict(fit, Y, d$id), "visits must be given", class = "fdadp_input_error")
  expect_error(mfpca(Y, d$id, visit = visit), "visits must be left out with method='reml'", class = "fdadp_input_error")
})

test_that("mfpca is Python's class, in rows of any order", {
  skip_without_python()
  d <- repeated()
  to_python()
  found <- from_python("
model = MultilevelFPCA(n_components=(2, 1)).fit(np.array(own_Y, order='C'), groups=[str(i) for i in own_id], covariates=np.array(own_age))
person, row = model.transform(np.array(own_Y, order='C'), groups=[str(i) for i in own_id], covariates=np.array(own_age))
found = {'person': model.eigenfunctions_['person'], 'icc': model.icc_, 'effect': model.coefficients_, 'person_scores': person.to_numpy(), 'row_scores': row,
  'first': model.basis_.means(np.array(own_age)[:, None])}
", "found")
  fit <- mfpca(d$Y, d$id, npc = c(2, 1), covariates = d$age)
  expect_same(fit$efunctions$person, t(found$person), tolerance = 1e-7)
  expect_equal(fit$icc, found$icc, tolerance = 1e-8)
  expect_same(fit$scores$person, found$person_scores, tolerance = 1e-7)
  expect_same(t(fit$coefficients), found$effect, tolerance = 1e-7)
  whole <- found$first + fit$scores$person[d$id, ] %*% t(fit$efunctions$person) + fit$scores$row %*% t(fit$efunctions$row)
  expect_same(fit$Yhat, whole, tolerance = 1e-7)
  set.seed(3)
  o <- sample(240)
  again <- mfpca(d$Y[o, ], d$id[o], npc = c(2, 1), covariates = d$age[o])
  expect_same(again$efunctions$person, fit$efunctions$person, tolerance = 1e-6)
  expect_same(again$scores$person[rownames(fit$scores$person), ], fit$scores$person, tolerance = 1e-5)
  expect_same(again$Yhat, fit$Yhat[o, ], tolerance = 1e-5)
  rows <- paste("row", 1:240)
  named <- `rownames<-`(d$Y, rows)
  expect_message(joined <- mfpca(named, stats::setNames(d$id, rows)[o], npc = c(2, 1)), "joined 240 of 240 by row label")
  expect_same(joined$icc, mfpca(d$Y, d$id, npc = c(2, 1))$icc, tolerance = 1e-8)
  expect_error(mfpca(named, d$id, covariates = `rownames<-`(cbind(d$age), rev(rows))), "same row labels", class = "fdadp_input_error")
})

test_that("mfpca predicts for known and new persons, fills gaps, and survives saving", {
  skip_without_python()
  d <- repeated()
  fit <- unserialize(serialize(mfpca(d$Y, d$id, npc = c(2, 1)), NULL))
  same <- predict(fit, d$Y[1:8, ], d$id[1:8])
  expect_same(same, fit$Yhat[1:8, ], tolerance = 1e-8)
  gaps <- d$Y[1:8, ]
  gaps[1, 5:9] <- NA
  filled <- predict(fit, gaps, rep(c("someone", "other"), each = 4), type = "complete")
  expect_identical(is.na(filled), matrix(FALSE, 8, 24))
  expect_identical(filled[!is.na(gaps)], gaps[!is.na(gaps)])
  expect_lt(max(abs(filled[1, 5:9] - d$Y[1, 5:9])), 1.2)
  expect_identical(rownames(predict(fit, gaps, rep(c("someone", "other"), each = 4), type = "person")), c("someone", "other"))
  expect_output(print(fit), "ICC .*Fitted without privacy")
  expect_output(print(summary(fit)), "Multilevel functional principal components")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(plot(fit, level = "row"), fit)
  expect_error(mfpca(d$Y), "id must say of each row whose it is", class = "fdadp_input_error")
  expect_error(mfpca(d$Y, d$id[1:3]), "groups must have 240 entries", class = "fdadp_input_error")
  expect_error(predict(fit, d$Y), "newdata and newid must be given", class = "fdadp_input_error")
})

test_that("private components of persons are Python's, keep no row, and have a ledger", {
  skip_without_python()
  set.seed(1)
  id <- rep(1:1000, each = 4)
  t <- seq(0, 1, length.out = 40)
  Y <- outer(rnorm(1000)[id], sin(pi * t)) + outer(rnorm(4000), cos(pi * t)) + 0.3 * matrix(rnorm(4000 * 40), 4000)
  privacy <- list(epsilon = 1, delta = 1e-6, n = 1000, seed = 1)
  fit <- mfpca(Y, id, t, npc = 1, privacy = privacy, bounds = c(-6, 6), max_rows = 4)
  main <- reticulate::import_main(convert = FALSE)
  main$own_Y <- Y
  main$own_id <- id
  found <- from_python("
import numpy as np
from fdadp import Privacy
from fdadp.summaries import PrivateMultilevelFPCA
model = PrivateMultilevelFPCA(n_components=1, privacy=Privacy(1.0, 1e-6, n=1000, random_state=0 + 1), bounds=(-6, 6), max_rows=4)
model.fit(np.array(own_Y, order='C'), groups=np.array(own_id), t=np.linspace(0, 1, 40))
found = {'person': model.eigenfunctions_['person'], 'icc': list(model.icc_interval())}
", "found")
  expect_same(fit$efunctions$person, t(found$person), tolerance = 1e-8)
  expect_equal(fit$icc.interval, unlist(found$icc), tolerance = 1e-8)
  expect_match(ledger(fit)$headline, "differentially private end to end, epsilon = 1")
  expect_null(fit$scores)
  expect_lt(length(serialize(fit, NULL)), 2e5) # no rows: those are 1.3 MB
  expect_identical(dim(predict(fit, Y[1:8, ], id[1:8], type = "scores")$person), c(2L, 1L))
  expect_output(print(summary(fit)), "Private multilevel functional principal components")
  expect_error(mfpca(Y, id, t, privacy = privacy, bounds = c(-6, 6)), "max_rows", class = "fdadp_privacy_error")
  expect_error(mfpca(Y, id, t, k = 5, privacy = privacy, bounds = c(-6, 6), max_rows = 4), "k must be left out with privacy", class = "fdadp_input_error")
  expect_error(mfpca(Y, id, t, privacy = 1), "privacy must be a list", class = "fdadp_privacy_error")
})
