"""`octopis bench channels`: whether all that was accepted arrives, once and in order."""
