"""The LLM proxy: what agents ask of providers and what these answer, read, judged and passed on."""
