"""The only folder that knows Linux: probes, programs, rulesets, netlink."""
