"""What an application imports: publish, subscribe, stay connected."""
