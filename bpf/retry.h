/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * After a hello that passed a server may ask for another one (HelloRetryRequest, RFC 8446, 4.1.4), in which OpenSSL, for one, takes
 * another name for an answer. What a client sends is passed over, record by record, up to that hello, or to what none can follow.
 */
#ifndef AGENTSH_RETRY_H
#define AGENTSH_RETRY_H

#define AGENTSH_TLS_CIPHER_CHANGE 20
#define AGENTSH_TLS_ALERT 21
#define AGENTSH_TLS_DATA 23
#define AGENTSH_CIPHER_BYTES (16384 + 256) /* RFC 8446, 5.2 */
/* Records within one packet. A client sends one change of cipher here, and its early data in a few. */
#define AGENTSH_RETRY_RECORDS 8
/* A server passes over 16 KiB of early data that it does not take (OpenSSL, BoringSSL). */
#define AGENTSH_RETRY_BYTES 65536
/* What OpenSSL takes for a hello; the first bytes of an encrypted message are of any value. */
#define AGENTSH_RETRY_HELLO_BYTES 131396

enum agentsh_retry {
	AGENTSH_WAITING = 0, /* for what comes with the next packet */
	AGENTSH_FOUND = 1,   /* it begins at `at` */
	AGENTSH_NEVER = 2,   /* none can follow */
	AGENTSH_UNCLEAR = 3, /* it cannot be told: a record that is cut in its header, or too many */
};

/* What a record of a handshake begins with. */
INLINE int is_hello(struct __sk_buff *skb, __u32 at)
{
	__u8 head[4];

	if (bpf_skb_load_bytes(skb, at, head, sizeof(head)))
		return AGENTSH_UNCLEAR;
	if (head[0] != AGENTSH_CLIENT_HELLO || (head[1] << 16 | head[2] << 8 | head[3]) > AGENTSH_RETRY_HELLO_BYTES)
		return AGENTSH_NEVER;
	return AGENTSH_FOUND;
}

/* Go on from `at` of a packet that has `end` bytes. */
GLOBAL int find_retry(struct __sk_buff *skb, struct agentsh_stream *s, __u32 end)
{
	__u8 head[5];
	__u32 length;
	int i;

	if (!s)
		return AGENTSH_UNCLEAR;
#pragma clang loop unroll(disable)
	for (i = 0; i < AGENTSH_RETRY_RECORDS; i++) {
		AGENTSH_JOIN;
		length = end - s->at;
		if (length > s->skip)
			length = s->skip;
		s->at += length;
		s->skip -= length;
		if (s->at >= end)
			return AGENTSH_WAITING;
		if (bpf_skb_load_bytes(skb, s->at, head, sizeof(head)))
			return AGENTSH_UNCLEAR;
		length = head[3] << 8 | head[4];
		if (head[0] == AGENTSH_TLS_HANDSHAKE) /* of a shorter one the message's beginning goes on in the next */
			return length < 4 ? AGENTSH_UNCLEAR : is_hello(skb, s->at + sizeof(head));
		if (head[0] != AGENTSH_TLS_CIPHER_CHANGE && head[0] != AGENTSH_TLS_ALERT &&
		    !(head[0] == AGENTSH_TLS_DATA && (s->marks & AGENTSH_MARK_EARLY)))
			return AGENTSH_NEVER;
		if (length > AGENTSH_CIPHER_BYTES)
			return AGENTSH_UNCLEAR;
		s->skip = sizeof(head) + length;
	}
	return AGENTSH_UNCLEAR;
}

/* A second hello begins: of the first nothing is kept but where the connection began. */
INLINE void begin_again(struct agentsh_stream *s)
{
	__u32 start = s->start, next = s->next, at = s->at;

	__builtin_memset(s, 0, sizeof(*s));
	s->start = start;
	s->next = next;
	s->at = at;
	s->verdict = AGENTSH_PASSED;
	s->marks = AGENTSH_MARK_AGAIN;
}

#endif
