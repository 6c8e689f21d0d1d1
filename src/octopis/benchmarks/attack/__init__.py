"""`octopis bench attack`: what unrelated clients notice while one client does its worst."""
