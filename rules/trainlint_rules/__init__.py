"""The rules that come with trainlint: a plugin like anybody's, seeing only `trainlint.api`."""
