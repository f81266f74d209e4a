/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Packets of sessions that reach only what is declared (undeclared.h), by whichever socket they leave: those that no connect hook
 * sees, and what was connected before. Included by connect.bpf.c, after what finds a packet's ports.
 */
#ifndef AGENTSH_UNDECLARED_PACKET_H
#define AGENTSH_UNDECLARED_PACKET_H

/*
 * Whom a packet is for as its sender asked: a TCP socket knows whom it was connected to, of whatever else the packet tells it,
 * behind the translation of addresses. Where a port cannot be read it is 0.
 */
INLINE void asked_for(struct __sk_buff *skb, struct agentsh_packet *packet)
{
	struct bpf_sock *socket = stream_socket(skb);
	struct agentsh_key *key = &packet->key;
	__u32 a = 0, b = 0, c = 0, d = 0;
	__u32 word[4] = {};
	__u16 port = 0;

	__builtin_memset(&packet->where, 0, sizeof(packet->where));
	if (skb->protocol == bpf_htons(AGENTSH_ETH_IP)) {
		find_transport_v4(skb, &packet->where);
		bpf_skb_load_bytes(skb, 16, word, 4);
		if (socket)
			a = socket->dst_ip4;
		key_from_v4(key, a ? a : word[0]);
	} else {
		find_transport_v6(skb, &packet->where);
		bpf_skb_load_bytes(skb, 24, word, sizeof(word));
		if (socket) {
			a = socket->dst_ip6[0];
			b = socket->dst_ip6[1];
			c = socket->dst_ip6[2];
			d = socket->dst_ip6[3];
		}
		if (a | b | c | d)
			key_from_v6(key, a, b, c, d);
		else
			key_from_v6(key, word[0], word[1], word[2], word[3]);
	}
	hides_port(skb, &packet->where, &port);
	if (socket && (a | b | c | d))
		port = socket->dst_port;
	key->port = port;
}

/*
 * What a network namespace says to its neighbours by itself: neighbour and router discovery, groups (RFC 4861, 2710, 3810), IGMP. By a
 * socket of the kernel's, which is of the cgroup of whoever made the namespace; those of processes have a maker.
 */
INLINE int is_link_message(struct __sk_buff *skb, struct agentsh_transport *where)
{
	struct agentsh_maker maker = {};
	__u8 type = 0;

	if (where->protocol != AGENTSH_ICMP6 && where->protocol != AGENTSH_IGMP)
		return 0;
	find_out_maker(skb, &maker);
	if (maker.pid || where->protocol == AGENTSH_IGMP)
		return !maker.pid;
	if (!where->offset || bpf_skb_load_bytes(skb, where->offset, &type, sizeof(type)))
		return 0;
	return (type >= 130 && type <= 136) || type == 143;
}

/* Say whether a session's packet goes where nothing is declared; `packet` tells where it does. */
INLINE int strays_by_packet(struct __sk_buff *skb, struct agentsh_packet *packet, struct agentsh_config *current)
{
	struct agentsh_packet asked = {};
	__u16 port;
	__u32 fate;

	if (!(current->switches & AGENTSH_EGRESS_REFUSE) || (packet->fate & AGENTSH_DECLARED) || bare(packet->fate) == AGENTSH_DENY)
		return 0;
	if (skb->ifindex == AGENTSH_LOOPBACK_DEVICE)
		return 0;
	asked_for(skb, &asked);
	if (is_link_message(skb, &asked.where))
		return 0;
	port = asked.key.port;
	asked.key.port = 0;
	fate = fate_of(&asked.key, port);
	if ((fate & AGENTSH_DECLARED) || in_prefix(&asked.key, port))
		return 0;
	packet->where = asked.where;
	packet->key = asked.key;
	packet->key.port = port;
	return 1;
}

#endif
