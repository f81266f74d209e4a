"""Private kernel sandboxes for tests: nothing in here touches the machine's own cgroups, rules or network."""
