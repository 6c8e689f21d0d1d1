"""From files and tables to rows of attributes, with every bad row set aside."""
