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

enum agentsh_progress {
	AGENTSH_MORE = 0,
	AGENTSH_DONE = 1,
	AGENTSH_BROKEN = 2,
};

INLINE void expect(struct agentsh_stream *s, __u8 phase, __u8 bytes)
{
	s->phase = phase;
	s->want = bytes;
}

/* The next bytes say nothing. */
INLINE int pass_over(struct agentsh_stream *s, __u32 bytes)
{
	if (bytes > s->left)
		return AGENTSH_BROKEN;
	s->left -= bytes;
	s->skip = bytes;
	return AGENTSH_MORE;
}

/* type, version (two bytes), length (two bytes) */
INLINE int read_record_header(struct agentsh_stream *s, __u8 byte)
{
	__u8 position = s->record_have;

	s->record_have = position + 1;
	if (position == 0)
		return byte == AGENTSH_TLS_HANDSHAKE ? AGENTSH_MORE : AGENTSH_BROKEN;
	if (position == 1)
		return byte == 3 ? AGENTSH_MORE : AGENTSH_BROKEN;
	if (position == 3)
		s->record_left = byte << 8;
	if (position != 4)
		return AGENTSH_MORE;
	s->record_left |= byte;
	return s->record_left && s->record_left <= AGENTSH_RECORD_BYTES ? AGENTSH_MORE : AGENTSH_BROKEN;
}

/* Host names only: whatever else is in a name, no two readers may understand it in two ways. */
INLINE int read_name(struct agentsh_stream *s, __u8 byte)
{
	__u32 last = (__u32)(s->length - 1) & (AGENTSH_NAME_BYTES - 1);
	__u8 before = s->length ? s->name.name[last] : '.';

	if (byte >= 'A' && byte <= 'Z')
		byte += 'a' - 'A';
	else if (byte == '.' ? before == '.' : !((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_'))
		return AGENTSH_BROKEN;
	s->name.name[s->length & (AGENTSH_NAME_BYTES - 1)] = byte;
	s->length++;
	s->field--;
	if (s->field)
		return AGENTSH_MORE;
	if (byte == '.') {
		s->length--;
		s->name.name[s->length & (AGENTSH_NAME_BYTES - 1)] = 0;
	}
	expect(s, AGENTSH_PHASE_EXTENSION, 4);
	return AGENTSH_MORE;
}

/* A number was read: what it means, and what comes behind it. */
INLINE int understand(struct agentsh_stream *s, __u32 value)
{
	__u32 size;

	switch (s->phase) {
	case AGENTSH_PHASE_TYPE:
		expect(s, AGENTSH_PHASE_LENGTH, 3);
		return value == AGENTSH_CLIENT_HELLO ? AGENTSH_MORE : AGENTSH_BROKEN;
	case AGENTSH_PHASE_LENGTH:
		if (value > AGENTSH_HELLO_BYTES)
			return AGENTSH_BROKEN;
		s->left = value;
		expect(s, AGENTSH_PHASE_SESSION, 1);
		return pass_over(s, 2 + 32); /* version, random */
	case AGENTSH_PHASE_SESSION:
		expect(s, AGENTSH_PHASE_CIPHERS, 2);
		return pass_over(s, value);
	case AGENTSH_PHASE_CIPHERS:
		expect(s, AGENTSH_PHASE_COMPRESSION, 1);
		return pass_over(s, value);
	case AGENTSH_PHASE_COMPRESSION:
		if (pass_over(s, value))
			return AGENTSH_BROKEN;
		expect(s, s->left ? AGENTSH_PHASE_EXTENSIONS : AGENTSH_PHASE_EXTENSION, s->left ? 2 : 4);
		return AGENTSH_MORE;
	case AGENTSH_PHASE_EXTENSIONS:
		expect(s, AGENTSH_PHASE_EXTENSION, 4);
		return value == s->left ? AGENTSH_MORE : AGENTSH_BROKEN;
	case AGENTSH_PHASE_EXTENSION:
		size = value & 0xffff;
		value >>= 16;
		if (value == AGENTSH_ENCRYPTED_HELLO)
			s->marks |= AGENTSH_MARK_ENCRYPTED;
		if (value != AGENTSH_SERVER_NAME)
			return pass_over(s, size);
		if (size > s->left || (s->marks & AGENTSH_MARK_NAMED)) /* RFC 8446, 4.2: each extension once */
			return AGENTSH_BROKEN;
		s->marks |= AGENTSH_MARK_NAMED;
		s->field = size;
		expect(s, AGENTSH_PHASE_LIST, 2);
		return AGENTSH_MORE;
	case AGENTSH_PHASE_LIST: /* of exactly one name, of the one type there is */
		expect(s, AGENTSH_PHASE_NAME_TYPE, 1);
		return value + 2 == s->field ? AGENTSH_MORE : AGENTSH_BROKEN;
	case AGENTSH_PHASE_NAME_TYPE:
		expect(s, AGENTSH_PHASE_NAME_LENGTH, 2);
		return value == 0 ? AGENTSH_MORE : AGENTSH_BROKEN;
	case AGENTSH_PHASE_NAME_LENGTH:
		if (value + 5 != s->field || !value || value >= AGENTSH_NAME_BYTES)
			return AGENTSH_BROKEN;
		s->field = value;
		expect(s, AGENTSH_PHASE_NAME, 0);
		return AGENTSH_MORE;
	}
	return AGENTSH_BROKEN;
}

INLINE int read_byte(struct agentsh_stream *s, __u8 byte)
{
	__u32 value;

	if (s->phase >= AGENTSH_PHASE_SESSION) { /* within the hello, whose length is known */
		if (!s->left)
			return AGENTSH_BROKEN;
		s->left--;
	}
	if (s->phase == AGENTSH_PHASE_NAME)
		return read_name(s, byte);
	value = s->value << 8 | byte;
	s->have++;
	s->value = value;
	if (s->have < s->want)
		return AGENTSH_MORE;
	s->value = 0;
	s->have = 0;
	return understand(s, value);
}

/* Go on from byte `at` of a packet that has `end` bytes. DONE: the hello was read whole. */
INLINE int read_hello(struct __sk_buff *skb, struct agentsh_stream *s, __u32 at, __u32 end)
{
	int i, broken;
	__u32 bytes;
	__u8 byte;

#pragma clang loop unroll(disable)
	for (i = 0; i < AGENTSH_HELLO_STEPS; i++) {
		/* Nothing that is known in one step is kept for the next: to the verifier all steps are one. */
		asm volatile("" : "+r"(at), "+r"(end) : : "memory");
		if (s->phase == AGENTSH_PHASE_EXTENSION && !s->left && !s->skip && !s->have)
			return AGENTSH_DONE;
		if (at >= end)
			return AGENTSH_MORE;
		if (s->record_have == 5 && s->skip) {
			bytes = end - at;
			if (bytes > s->skip)
				bytes = s->skip;
			if (bytes > s->record_left)
				bytes = s->record_left;
			at += bytes;
			s->skip -= bytes;
			s->record_left -= bytes;
		} else {
			if (bpf_skb_load_bytes(skb, at, &byte, 1))
				return AGENTSH_BROKEN;
			at++;
			if (s->record_have < 5) {
				broken = read_record_header(s, byte);
			} else {
				s->record_left--;
				broken = read_byte(s, byte);
			}
			asm volatile("" : "+r"(broken) : : "memory");
			if (broken)
				return broken;
			if (s->record_have < 5)
				continue;
		}
		if (!s->record_left)
			s->record_have = 0;
	}
	return AGENTSH_BROKEN;
}

#endif
