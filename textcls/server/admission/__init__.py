"""Who may ask, and how much: keys and their limits (`auth`, `key_limits`), browsers (`origins`), memory (`budget`)."""
