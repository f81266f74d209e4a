"""JSON values: read as any peer might read them, compared, hashed, and rewritten without touching what need not change; tables of few."""
