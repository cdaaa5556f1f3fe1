#' Curves to try things with
#'
#' `canadian_weather()`: temperature and log10 precipitation of 35 Canadian weather stations, 365 days (bundled).
#' `simulate_affr()`: curves from an additive function-on-function model whose truth is known. `write_people()`: a file
#' of simulated patients, as people have them. It has semicolons, decimal commas, gaps, heart rates of a day, and days
#' in hospital.
#'
#' @param scenario 1 is nearly linear, 2 is strongly non-linear, and 3 is not separable.
#' @param n Number of pairs of curves, or of patients.
#' @param seed Of the simulation; R's own generator is not used.
#' @param n_points Points of the even grid on \[0, 1\].
#' @param path Of the file, for [read.csv2()].
#' @return A list with `X` and `Y` (one curve a row), their grids `s` and `t`, and `stations`, a data frame of place, province,
#'   region, latitude and longitude; or `mean_function`, the noiseless E\[Y | X\].
#'   `write_people()` returns the path, invisibly.
#' @source J. O. Ramsay and B. W. Silverman (2005), *Functional Data Analysis*, 2nd ed., Springer; R package fda, CanadianWeather.
#' @examples
#' if (fdadp_available()) {
#'   weather <- canadian_weather()
#'   matplot(weather$s, t(weather$X), type = "l", xlab = "year", ylab = "degrees C")
#'   str(simulate_affr(n = 10))
#'   people <- read.csv2(write_people(tempfile(fileext = ".csv"), n = 20))
#' }
#' @export
canadian_weather <- function() {
  weather <- call_python("canadian_weather")
  weather$stations <- as.data.frame(lapply(weather$stations, unlist), stringsAsFactors = FALSE)
  rownames(weather$X) <- rownames(weather$Y) <- weather$stations$place
  weather[c("s", "t")] <- lapply(weather[c("s", "t")], as.double)
  weather
}

#' @rdname canadian_weather
#' @export
simulate_affr <- function(scenario = 1, n = 200, seed = 0, n_points = 51) {
  sim <- call_python("simulate_affr",
    scenario = as_whole(scenario), n = as_whole(n), seed = as_whole(seed), n_points = as_whole(n_points)
  )
  sim[c("s", "t")] <- lapply(sim[c("s", "t")], as.double)
  sim
}

#' @rdname canadian_weather
#' @export
write_people <- function(path, n = 2000, seed = 1) {
  invisible(call_python("write_people", path = path.expand(path), n = as_whole(n), seed = as_whole(seed))$path)
}
