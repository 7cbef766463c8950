"""Values and settings that all packages share: ids, line ranges, errors, configuration."""
