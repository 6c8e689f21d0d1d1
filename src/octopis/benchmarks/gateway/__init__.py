"""What a gateway carries, from HTTP clients to a broker and back."""
