"""Who may ask, how much and how often: keys (`auth`, `key_limits`), browsers (`origins`), held memory (`budget`)."""
