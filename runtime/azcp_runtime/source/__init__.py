"""What is distributed: where it lies, its listing, and the names its files get."""
