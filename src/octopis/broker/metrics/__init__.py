"""What a broker process tells Prometheus: delays that it samples, values it reads, and where."""
