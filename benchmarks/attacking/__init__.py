"""What attacks.py is made of: the memory limit, the watching, the attacks by what they aim at, and the table."""
