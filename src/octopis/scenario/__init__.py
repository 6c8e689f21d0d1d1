"""What a scenario means: overlay, clients, rates, faults and costs. No Spark, no virtual time."""
