"""What is known of devices, models, cloud instances and the frameworks' keys: data, read when first asked for."""
