"""What a training script says, read from its syntax tree: calls with literal arguments, the order of a loop's steps."""
