"""The ways in and out: each file is one way to publish, to subscribe or to ask."""
