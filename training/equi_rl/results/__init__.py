"""Learning curves, tables, reports and videos of finished runs."""
