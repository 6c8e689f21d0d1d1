"""`octopis bench simulator`, `calibrate` and `faults`: overlays in virtual time."""
