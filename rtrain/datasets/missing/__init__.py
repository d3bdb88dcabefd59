"""What errors about missing data say."""
