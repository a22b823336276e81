"""What Python calls beyond answers; each function imports late what it needs."""
