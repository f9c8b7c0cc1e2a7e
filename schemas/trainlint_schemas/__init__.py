"""Data only: schemas, key histories, facts and architectures. No code."""
