"""Query analysis: tokenizing, spelling, time expressions, path patterns and secrets in queries."""
