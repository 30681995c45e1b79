"""Picture files beyond eight bits of RGB: color keys, profiles, sixteen bits."""
