"""From files to a table of quotes, with every bad row set aside."""
