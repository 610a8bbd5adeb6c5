"""Learning curves, tables, reports and films of finished runs."""
