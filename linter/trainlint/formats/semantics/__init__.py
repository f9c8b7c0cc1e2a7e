"""What the frameworks make of what is written: precision, sharding, adapters and defaults, by release."""
