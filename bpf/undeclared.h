/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Sessions that reach only what is declared (network.egress): what `rules` calls so at an address or at one port of it, what
 * `prefixes` holds, and this host. Everybody else is not concerned, and a denial is one whatever is declared. While this is on,
 * the sieve has the tag's bit for every address, so that nobody asks for the switch where it is off.
 */
#ifndef AGENTSH_UNDECLARED_H
#define AGENTSH_UNDECLARED_H

#define AGENTSH_EGRESS_ON (AGENTSH_EGRESS_TELL | AGENTSH_EGRESS_REFUSE)

/* Say whether an address is in a prefix that is declared for this port, or for every port. */
INLINE int in_prefix(struct agentsh_key *key, __u16 port)
{
	struct agentsh_prefix place = {.bits = AGENTSH_PREFIX_BITS, .port = port};

	__builtin_memcpy(place.address, key->address, sizeof(place.address));
	if (find_prefix(&place))
		return 1;
	place.port = 0;
	return find_prefix(&place) != 0;
}

/* The session (0: none) whose task connects where nothing is declared. `fate` is what the rules say. */
INLINE __u64 strays(struct agentsh_key *key, __u16 port, __u32 fate, struct agentsh_config *current)
{
	struct agentsh_audience who = {};

	if (!(current->switches & AGENTSH_EGRESS_ON) || (fate & AGENTSH_DECLARED) || bare(fate) == AGENTSH_DENY)
		return 0;
	audience_of_task(&who, current);
	return who.session && !in_prefix(key, port) ? who.session : 0;
}

#endif
