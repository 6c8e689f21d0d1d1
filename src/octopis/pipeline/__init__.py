"""All data work, on Spark: quotes to scenarios, scenarios to truth, runs to metrics."""
