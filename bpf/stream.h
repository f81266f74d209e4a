/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Judges TCP connections to shared endpoints by the server name in their ClientHello. What has been read undecided is let
 * pass: no server answers a part of a hello. The packet that completes it is the one that is refused, with all that follow.
 * Names are compared byte for byte. Of a connection that was let pass nothing is read but a second hello (retry.h).
 */
#ifndef AGENTSH_STREAM_H
#define AGENTSH_STREAM_H

#define AGENTSH_OPTION_BYTES 40
#define AGENTSH_OPTION_MPTCP 30

struct agentsh_segment {
	__u32 sequence; /* of the first byte */
	__u32 options;  /* where the options begin in the packet */
	__u32 at;       /* where the bytes do */
	__u32 length;   /* of the bytes */
	__u16 source_port;
	__u8 flags;
};

/* Whose packet it is, and whether the rule is for them. */
GLOBAL int is_concerned(struct __sk_buff *skb, struct agentsh_packet *packet)
{
	struct agentsh_audience who = {};
	struct agentsh_config *current;
	struct bpf_sock *socket;
	__u32 slot = 0;

	if (!packet)
		return 1;
	current = find_config(&slot);
	if (!current)
		return 1;
	if (packet->fate == AGENTSH_UNDECLARED && !(current->switches & AGENTSH_EGRESS_REFUSE))
		return 0;
	audience_of_socket(&who, current, skb);
	packet->session = who.session;
	if (who.session && strays_by_packet(skb, packet, current)) {
		packet->fate = AGENTSH_UNDECLARED;
		return 1;
	}
	if (packet->fate == AGENTSH_UNDECLARED)
		return 0;
	if (concerns(&who, current, packet->fate))
		return 1;
	if (bare(packet->fate) == AGENTSH_DENY)
		return 0;
	socket = stream_socket(skb);
	return socket && find_stream(socket) != 0;
}

/* All that the verifier knows of a packet is forgotten: it follows the loop below once for each thing it knows. */
INLINE void forget_packet(struct __sk_buff *skb, struct agentsh_packet *packet)
{
	__u32 *word = (__u32 *)packet->key.address;
	__u64 unknown = bpf_get_socket_cookie(skb);

	word[0] = forget(word[0], unknown);
	word[1] = forget(word[1], unknown);
	word[2] = forget(word[2], unknown);
	word[3] = forget(word[3], unknown);
	word[4] = forget(word[4], unknown); /* port, reserved */
	packet->where.offset = forget(packet->where.offset, unknown);
	packet->where.protocol = forget(packet->where.protocol, unknown);
	packet->session = forget(packet->session, unknown);
	packet->fate = forget(bare(packet->fate), unknown);
	packet->maker.pid = forget(packet->maker.pid, unknown);
	packet->maker.tid = forget(packet->maker.tid, unknown);
	word = (__u32 *)packet->maker.comm;
	word[0] = forget(word[0], unknown);
	word[1] = forget(word[1], unknown);
	word[2] = forget(word[2], unknown);
	word[3] = forget(word[3], unknown);
}

/* Say whether the packet has a TCP header. */
INLINE int find_segment(struct __sk_buff *skb, struct agentsh_transport *where, struct agentsh_segment *segment)
{
	__u8 head[20];

	if (where->protocol != AGENTSH_TCP || !where->offset || bpf_skb_load_bytes(skb, where->offset, head, sizeof(head)))
		return 0;
	segment->source_port = *(__u16 *)head;
	segment->sequence = bpf_ntohl(*(__u32 *)(head + 4));
	segment->flags = head[13];
	segment->options = where->offset + sizeof(head);
	segment->at = where->offset + (head[12] >> 4) * 4;
	segment->length = skb->len > segment->at ? skb->len - segment->at : 0;
	if (segment->flags & AGENTSH_TCP_SYN) /* it counts as a byte; what it carries (Fast Open) follows */
		segment->sequence++;
	return 1;
}

/*
 * Say whether a client's server has answered nothing yet: then the hello is still to come, and nothing is known of the stream
 * for want of memory, or because the rule is younger than its SYN. (Whoever is connected to has no SYN of its own acknowledged
 * at first.)
 */
INLINE int is_unanswered(struct __sk_buff *skb)
{
	struct bpf_sock *socket = skb->sk;
	struct bpf_tcp_sock *tcp;

	if (!socket)
		return 0;
	tcp = bpf_tcp_sock(socket);
	return tcp && !tcp->bytes_received && tcp->bytes_acked;
}

/* RFC 8684: every segment of MPTCP with bytes has such an option. A server that does not speak it is spoken to by TCP. */
INLINE int is_multipath(struct __sk_buff *skb, struct agentsh_segment *segment)
{
	__u32 at = segment->options;
	__u8 option[2];
	int i;

#pragma clang loop unroll(disable)
	for (i = 0; i < AGENTSH_OPTION_BYTES; i++) {
		asm volatile("" : "+r"(at) : : "memory");
		if (at + 2 > segment->at || bpf_skb_load_bytes(skb, at, option, sizeof(option)) || !option[0])
			return 0;
		if (option[0] == AGENTSH_OPTION_MPTCP)
			return 1;
		at += option[0] == 1 || option[1] < 2 ? 1 : option[1];
	}
	return 0;
}

/*
 * A SYN begins a stream; one that is sent again does not begin it anew. NULL: there is no memory for it. That is not known by its
 * number alone: a server can have a socket that is connected anew begin where it began before.
 */
INLINE struct agentsh_stream *begin_stream(struct bpf_sock *socket, struct agentsh_segment *segment)
{
	struct agentsh_stream *stream = find_stream(socket);
	struct bpf_tcp_sock *tcp = bpf_tcp_sock(socket);

	if (stream && stream->start == segment->sequence && tcp && tcp->segs_out > 1)
		return stream;
	stream = new_stream(socket);
	if (stream) {
		stream->start = segment->sequence;
		stream->next = segment->sequence;
	}
	return stream;
}

/* Say whether the bytes of a connection that passed are to be read: 0, or AGENTSH_FOUND, or AGENTSH_UNCLEAR. */
INLINE int read_on(struct __sk_buff *skb, struct agentsh_stream *stream, struct agentsh_segment *segment, __u32 at, __u32 end)
{
	int progress;

	stream->at = at;
	if (stream->marks & AGENTSH_MARK_AGAIN)
		return AGENTSH_FOUND;
	progress = find_retry(skb, stream, end);
	if (progress == AGENTSH_NEVER || segment->sequence - stream->start > AGENTSH_RETRY_BYTES) {
		stream->marks |= AGENTSH_MARK_LAST;
		return 0;
	}
	if (progress == AGENTSH_FOUND)
		begin_again(stream);
	return progress;
}

/* What these bytes say: an agentsh_finding, or 0 where that is not known yet, or nothing new. */
INLINE int read_stream(struct __sk_buff *skb, struct agentsh_stream *stream, struct agentsh_segment *segment)
{
	__u32 known = stream->next - segment->sequence; /* bytes that were sent before */
	__u32 at = segment->at + known, end = segment->at + segment->length;
	int progress;

	if (segment->flags & AGENTSH_TCP_URG)
		return AGENTSH_URGENT;
	if (is_multipath(skb, segment))
		return AGENTSH_MULTIPATH;
	if (known >> 31) /* negative: bytes are missing */
		return AGENTSH_UNSEEN;
	if (known >= segment->length)
		return 0;
	stream->next = segment->sequence + segment->length;
	if (stream->verdict == AGENTSH_PASSED) {
		progress = read_on(skb, stream, segment, at, end);
		if (progress != AGENTSH_FOUND)
			return progress ? AGENTSH_NO_HELLO : 0;
		at = stream->at;
	}
	at = forget(at, bpf_get_socket_cookie(skb));
	progress = read_hello(skb, stream, at, end);
	if (progress == AGENTSH_MORE)
		return 0;
	if (progress == AGENTSH_BROKEN)
		return AGENTSH_NO_HELLO;
	if (stream->marks & AGENTSH_MARK_AGAIN) /* RFC 8446, 4.1.4: once */
		stream->marks |= AGENTSH_MARK_LAST;
	else if (stream->at < end) {
		progress = find_retry(skb, stream, end);
		if (progress == AGENTSH_FOUND || progress == AGENTSH_UNCLEAR) /* nobody can have asked for it yet */
			return AGENTSH_NO_HELLO;
		if (progress == AGENTSH_NEVER)
			stream->marks |= AGENTSH_MARK_LAST;
	}
	return stream->length ? AGENTSH_NAMED : AGENTSH_NAMELESS;
}

/* What policy says of a name: of the server at this port, or at every port. */
INLINE __u32 fate_of_name(struct agentsh_stream *stream, __u16 port)
{
	struct agentsh_rule *rule;

	stream->name.port = port;
	rule = find_name(&stream->name);
	if (rule)
		return rule->fate;
	stream->name.port = 0;
	rule = find_name(&stream->name);
	return rule ? rule->fate : AGENTSH_NONE;
}

INLINE void record_hello(struct __sk_buff *skb, struct agentsh_config *current, struct agentsh_packet *packet,
			 struct agentsh_segment *segment, struct agentsh_stream *stream, __u32 fate, __u32 finding)
{
	struct agentsh_hello_record *hello = reserve_hello();
	__u32 *source;

	count(fate == AGENTSH_DENY ? AGENTSH_DENIED : AGENTSH_TAGGED);
	if (!hello) {
		count(AGENTSH_LOST);
		return;
	}
	describe(&hello->record, current, &packet->key, packet->key.port);
	describe_packet(&hello->record, skb, packet);
	hello->record.fate = fate;
	hello->record.hook = AGENTSH_HELLO;
	hello->source_port = segment->source_port;
	hello->finding = finding;
	hello->reserved = 0;
	source = (__u32 *)hello->source;
	source[0] = 0;
	source[1] = 0;
	source[2] = bpf_htonl(0x0000ffff);
	source[3] = 0;
	if (skb->protocol == bpf_htons(AGENTSH_ETH_IP))
		bpf_skb_load_bytes(skb, 12, hello->source + 12, 4);
	else
		bpf_skb_load_bytes(skb, 8, hello->source, 16);
	if (stream && finding != AGENTSH_NO_HELLO)
		__builtin_memcpy(hello->name, stream->name.name, AGENTSH_NAME_BYTES);
	else
		__builtin_memset(hello->name, 0, AGENTSH_NAME_BYTES);
	submit_hello(hello);
}

GLOBAL int judge_stream(struct __sk_buff *skb, struct agentsh_packet *packet)
{
	struct agentsh_stream *stream = 0;
	struct agentsh_segment segment = {};
	struct agentsh_config *current;
	struct bpf_sock *socket;
	__u32 unknown, fate, finding, enforce, slot = 0;

	if (!packet)
		return AGENTSH_REFUSE;
	current = find_config(&slot);
	if (!current)
		return AGENTSH_REFUSE;
	enforce = current->switches & AGENTSH_ENFORCE;
	if (!find_segment(skb, &packet->where, &segment)) {
		if (packet->fate == AGENTSH_SNI_OPEN)
			return AGENTSH_PASS;
		count(AGENTSH_DENIED);
		record_packet(skb, current, packet);
		return enforce ? AGENTSH_REFUSE : AGENTSH_PASS;
	}
	socket = stream_socket(skb);
	if (!socket) {
		if (!segment.length) /* the kernel's own acknowledgements and resets */
			return AGENTSH_PASS;
		finding = AGENTSH_FORGED;
	} else {
		stream = segment.flags & AGENTSH_TCP_SYN ? begin_stream(socket, &segment) : find_stream(socket);
		if (!segment.length)
			return AGENTSH_PASS;
		if (stream && stream->verdict == AGENTSH_PASSED && (stream->marks & AGENTSH_MARK_LAST))
			return AGENTSH_PASS;
		if (stream && stream->verdict == AGENTSH_REFUSED)
			return enforce ? AGENTSH_REFUSE : AGENTSH_PASS;
		if (!stream && !enforce) /* who enforces until now knows it */
			return AGENTSH_PASS;
		finding = stream ? read_stream(skb, stream, &segment) : AGENTSH_UNSEEN;
		/* Or the verifier of Linux 6.1 follows what comes now once for each way that leads here: more than it may. */
		finding = forget(finding, bpf_get_socket_cookie(skb));
		if (!finding)
			return AGENTSH_PASS;
	}
	unknown = packet->fate == AGENTSH_SNI ? AGENTSH_DENY : AGENTSH_TAG;
	fate = unknown;
	if (stream && finding == AGENTSH_NAMED) {
		fate = fate_of_name(stream, packet->key.port);
		if (fate == AGENTSH_NONE && (stream->marks & AGENTSH_MARK_ENCRYPTED)) {
			finding = AGENTSH_ENCRYPTED;
			fate = unknown;
		}
	}
	if (finding == AGENTSH_UNSEEN && fate == AGENTSH_TAG) /* most are of a server here, which answers a client there */
		fate = !stream && (segment.flags & AGENTSH_TCP_SYN || is_unanswered(skb)) ? AGENTSH_DENY : AGENTSH_NONE;
	if (finding == AGENTSH_UNSEEN && !stream) /* from here on it is known */
		stream = begin_stream(socket, &segment);
	if (stream) {
		stream->verdict = fate == AGENTSH_DENY ? AGENTSH_REFUSED : AGENTSH_PASSED;
		if (finding != AGENTSH_NAMED)
			stream->marks |= AGENTSH_MARK_LAST;
	}
	if (fate == AGENTSH_TAG && finding == AGENTSH_NAMED && stream && (stream->marks & AGENTSH_MARK_AGAIN)) /* told of with the first */
		return AGENTSH_PASS;
	if (fate != AGENTSH_NONE)
		record_hello(skb, current, packet, &segment, stream, fate, finding);
	return fate == AGENTSH_DENY && enforce ? AGENTSH_REFUSE : AGENTSH_PASS;
}

#endif
