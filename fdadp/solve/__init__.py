"""From sums over curves to penalised least-squares solutions."""
