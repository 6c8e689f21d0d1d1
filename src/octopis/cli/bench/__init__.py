"""`octopis bench`: what can be measured here."""
