"""Mixed models of curves: the fit of terms beside random functions of persons, its laws, and curves with gaps."""
