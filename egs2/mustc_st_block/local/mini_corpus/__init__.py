"""A synthetic MuST-C: talks from a small grammar in English, German, Spanish and French, spoken by a synthesiser."""
