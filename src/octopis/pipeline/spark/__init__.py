"""The Spark session, its Java, its progress and its failures."""
