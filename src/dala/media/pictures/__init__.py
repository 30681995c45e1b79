"""What picture files hold beyond eight bits of RGB: color keys, profiles, sixteen bits."""
