/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reads a TLS ClientHello (RFC 8446, 4.1.2) out of a TCP stream as far as its server name (RFC 6066, 3), however it is cut
 * into segments and records. Between two packets everything that was understood is in the stream's state. A field that says
 * nothing is skipped at once, the others are read byte by byte: a loop of fixed length, which every verifier follows.
 */
#ifndef AGENTSH_HELLO_H
#define AGENTSH_HELLO_H

/* Steps within one packet: 25 extensions and a name of 100 bytes. A hello of Chrome takes some 140. */
#define AGENTSH_HELLO_STEPS 256
/* With key shares of post-quantum cryptography a hello has some 1,800 bytes; a record, 16,384. */
#define AGENTSH_HELLO_BYTES 16384
#define AGENTSH_RECORD_BYTES 16384
#define AGENTSH_TLS_HANDSHAKE 22
#define AGENTSH_CLIENT_HELLO 1
#define AGENTSH_SERVER_NAME 0
#define AGENTSH_EARLY_DATA 42 /* RFC 8446, 4.2.10 */
#define AGENTSH_ENCRYPTED_HELLO 0xfe0d /* RFC 9849; browsers send a random one where they have none (GREASE) */

/* What is read next; a stream begins with zeros, at the type of the handshake message. */
enum agentsh_phase {
	AGENTSH_PHASE_TYPE = 0,
	AGENTSH_PHASE_LENGTH,
	AGENTSH_PHASE_SESSION,
	AGENTSH_PHASE_CIPHERS,
	AGENTSH_PHASE_COMPRESSION,
	AGENTSH_PHASE_EXTENSIONS,
	AGENTSH_PHASE_EXTENSION, /* its kind and its size, two bytes each */
	AGENTSH_PHASE_LIST,
	AGENTSH_PHASE_NAME_TYPE,
	AGENTSH_PHASE_NAME_LENGTH,
	AGENTSH_PHASE_NAME,
};

#define AGENTSH_MARK_NAMED 1     /* a server_name extension was there */
#define AGENTSH_MARK_ENCRYPTED 2 /* so was one with an encrypted hello */
#define AGENTSH_MARK_EARLY 4     /* so was one that announces early data */
#define AGENTSH_MARK_AGAIN 8     /* this is the second hello */
#define AGENTSH_MARK_LAST 16     /* no other one can follow */

enum agentsh_progress {
	AGENTSH_MORE = 0,
	AGENTSH_DONE = 1,
	AGENTSH_BROKEN = 2,
	AGENTSH_ON = 3, /* of one step: perhaps not all of this packet is read */
};

/* Bytes that the number of each phase has, four bits each. */
#define AGENTSH_WANTS 0x12124212131ULL

/*
 * The compiler keeps nothing beyond this, and reads the stream anew: where ways join, the verifier, to whom what is in a map
 * is unknown, finds one state and not one for each way.
 */
#define AGENTSH_JOIN asm volatile("" : : : "memory")

/* type, version (two bytes), length (two bytes) */
INLINE void read_record_header(struct agentsh_stream *s, __u8 byte)
{
	__u8 position = s->record_have;

	s->record_have = position + 1;
	if (position == 0 ? byte != AGENTSH_TLS_HANDSHAKE : position == 1 && byte != 3)
		s->broken = 1;
	if (position == 3)
		s->record_left = byte << 8;
	if (position == 4) {
		s->record_left |= byte;
		if (!s->record_left || s->record_left > AGENTSH_RECORD_BYTES)
			s->broken = 1;
	}
}

/* Host names only: whatever else is in a name, no two readers may understand it in two ways. */
INLINE void read_name(struct agentsh_stream *s, __u8 byte)
{
	__u32 last = (__u32)(s->length - 1) & (AGENTSH_NAME_BYTES - 1);
	__u8 before = s->length ? s->name.name[last] : '.';

	if (byte >= 'A' && byte <= 'Z')
		byte += 'a' - 'A';
	if (byte == '.' ? before == '.' : !((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_'))
		s->broken = 1;
	AGENTSH_JOIN;
	s->field--;
	if (byte == '.' && !s->field) { /* the root's dot */
		s->phase = AGENTSH_PHASE_EXTENSION;
		return;
	}
	s->name.name[s->length & (AGENTSH_NAME_BYTES - 1)] = byte;
	s->length++;
	if (!s->field)
		s->phase = AGENTSH_PHASE_EXTENSION;
}

/* A number was read: what it means, how many bytes behind it say nothing, and what comes then. */
INLINE void understand(struct agentsh_stream *s)
{
	__u32 value = s->value, size;

	s->value = 0;
	s->have = 0;
	s->skip = 0;
	switch (s->phase) {
	case AGENTSH_PHASE_TYPE:
		s->broken = value != AGENTSH_CLIENT_HELLO;
		s->phase = AGENTSH_PHASE_LENGTH;
		break;
	case AGENTSH_PHASE_LENGTH:
		s->broken = value > AGENTSH_HELLO_BYTES;
		s->left = value;
		s->skip = 2 + 32; /* version, random */
		s->phase = AGENTSH_PHASE_SESSION;
		break;
	case AGENTSH_PHASE_SESSION:
	case AGENTSH_PHASE_CIPHERS:
		s->skip = value;
		s->phase++;
		break;
	case AGENTSH_PHASE_COMPRESSION:
		s->skip = value;
		s->phase = s->left == value ? AGENTSH_PHASE_EXTENSION : AGENTSH_PHASE_EXTENSIONS;
		break;
	case AGENTSH_PHASE_EXTENSIONS:
		s->broken = value != s->left;
		s->phase = AGENTSH_PHASE_EXTENSION;
		break;
	case AGENTSH_PHASE_EXTENSION:
		size = value & 0xffff;
		value >>= 16;
		if (value == AGENTSH_ENCRYPTED_HELLO)
			s->marks |= AGENTSH_MARK_ENCRYPTED;
		if (value == AGENTSH_EARLY_DATA)
			s->marks |= AGENTSH_MARK_EARLY;
		if (value == AGENTSH_SERVER_NAME) {
			if (size > s->left || (s->marks & AGENTSH_MARK_NAMED)) /* RFC 8446, 4.2: each extension once */
				s->broken = 1;
			s->marks |= AGENTSH_MARK_NAMED;
			s->field = size;
			s->phase = AGENTSH_PHASE_LIST;
		} else {
			s->skip = size;
		}
		break;
	case AGENTSH_PHASE_LIST: /* of exactly one name, of the one type there is */
		s->broken = value + 2 != s->field;
		s->phase = AGENTSH_PHASE_NAME_TYPE;
		break;
	case AGENTSH_PHASE_NAME_TYPE:
		s->broken = value != 0;
		s->phase = AGENTSH_PHASE_NAME_LENGTH;
		break;
	default:
		s->broken = value + 5 != s->field || !value || value >= AGENTSH_NAME_BYTES;
		s->field = value;
		s->phase = AGENTSH_PHASE_NAME;
	}
	AGENTSH_JOIN;
	if (s->skip > s->left)
		s->broken = 1;
	s->left -= s->skip;
}

INLINE void read_byte(struct agentsh_stream *s, __u8 byte)
{
	if (s->phase >= AGENTSH_PHASE_SESSION) { /* within the hello, whose length is known */
		if (!s->left)
			s->broken = 1;
		s->left--;
	}
	AGENTSH_JOIN;
	if (s->phase == AGENTSH_PHASE_NAME) {
		read_name(s, byte);
		return;
	}
	s->value = s->value << 8 | byte;
	s->have++;
	if (s->have >= (AGENTSH_WANTS >> s->phase * 4 & 15))
		understand(s);
}

/* Read the byte at `at`, or pass over what says nothing. ON: go on. DONE: the hello was read whole. */
GLOBAL int read_step(struct __sk_buff *skb, struct agentsh_stream *s, __u32 end)
{
	__u32 bytes;
	__u8 byte;

	if (!s || s->broken)
		return AGENTSH_BROKEN;
	if (s->phase == AGENTSH_PHASE_EXTENSION && !s->left && !s->skip && !s->have)
		return s->record_left ? AGENTSH_BROKEN : AGENTSH_DONE; /* RFC 8446, 5.1: it ends with its record */
	if (s->at >= end)
		return AGENTSH_MORE;
	if (s->record_have == 5 && s->skip) {
		bytes = end - s->at;
		if (bytes > s->skip)
			bytes = s->skip;
		if (bytes > s->record_left)
			bytes = s->record_left;
		s->at += bytes;
		s->skip -= bytes;
		s->record_left -= bytes;
	} else {
		if (bpf_skb_load_bytes(skb, s->at, &byte, 1))
			return AGENTSH_BROKEN;
		s->at++;
		if (s->record_have < 5) {
			read_record_header(s, byte);
			return AGENTSH_ON;
		}
		s->record_left--;
		read_byte(s, byte);
	}
	AGENTSH_JOIN;
	if (!s->record_left)
		s->record_have = 0;
	return AGENTSH_ON;
}

/* Go on from byte `at` of a packet that has `end` bytes. */
INLINE int read_hello(struct __sk_buff *skb, struct agentsh_stream *s, __u32 at, __u32 end)
{
	int i, progress;

	s->at = at;
#pragma clang loop unroll(disable)
	for (i = 0; i < AGENTSH_HELLO_STEPS; i++) {
		AGENTSH_JOIN;
		progress = read_step(skb, s, end);
		if (progress != AGENTSH_ON)
			return progress;
	}
	return AGENTSH_BROKEN;
}

#endif
