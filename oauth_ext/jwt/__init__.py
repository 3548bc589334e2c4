"""Access tokens: `key_material` is pure, `keys` loads, `rotation` changes, `mint` signs, `verify` checks."""
