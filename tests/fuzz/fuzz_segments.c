/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=7 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: super-packets of any shape into the cutter, and its output into the parser.
 * Looks for memory errors, and checks the cutter's contract: no more packets than the kernel makes,
 * no packet longer than the header's length, and all of the payload, once.
 *
 * scripts/fuzz.sh BUILD segments SECONDS runs it. An input is struct shape, then the packet.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../user/engine/gso.h"

#define SUPER_MAX 65549u /* an Ethernet header and the longest IP packet */
#define L3	  14u
#define BTH	  (L3 + 28u)

enum {
	MEND_L3 = 1 << 0,     /* the IP header is where Ethernet has it */
	MEND_LENGTH = 1 << 1, /* the IP length is the actual one */
};

struct shape {
	u8 mend;
	u8 l3;
	u8 first_16, others_64; /* lengths of the buffers, in these units, at least one */
	u8 room_4;
};

static struct segments s;

static u32 lay_out(const struct shape *shape, const u8 *data, u32 size,
		   u8 *allocated[SEGMENTS_PARTS_MAX])
{
	const u32 room = shape->room_4 * 4u;
	u32 at = 0;

	s.parts = 0;
	while (at < size && s.parts < SEGMENTS_PARTS_MAX) {
		u32 len = min_u32(at ? (shape->others_64 + 1u) * 64 : (shape->first_16 + 1u) * 16,
				  size - at);

		allocated[s.parts] = malloc(room + len);
		if (!allocated[s.parts])
			abort();
		memcpy(allocated[s.parts] + room, data + at, len);
		s.part[s.parts] = (struct segment_part){ .data = allocated[s.parts] + room,
							 .len = len,
							 .room = room };
		s.parts++;
		at += len;
	}
	return at;
}

static void cut(void)
{
	const u32 whole = s.left;
	struct rx_frame frame;
	u32 count = 0, payload = 0;
	struct packet p;

	while (segments_next(&s, &frame)) {
		const u32 len = frame.len + frame.frag_len;

		if (len < s.header_len || len > s.header_len + s.size ||
		    ++count > XROCE_SEGMENTS_MAX)
			abort();
		payload += len - s.header_len;
		/* reads all of it */
		if (!packet_parse(&p, &frame))
			packet_icrc_ok(&p);
	}
	if (payload != whole)
		abort();
}

static void write_seed(const char *dir, u8 opcode, u32 payload_len, u32 count, struct shape shape)
{
	static const struct path path = {
		.hop_limit = 64,
		.udp_sport = 0xc000,
		.local = { { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 } },
		.peer = { { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 } }
	};
	static u8 super[SUPER_MAX], frame[PACKET_FRAME_MAX];
	u32 len = BTH, size = 0;
	char name[512];
	FILE *f;

	for (u32 i = 0; i < count; i++) {
		struct packet p = { .opcode = opcode,
				    .dest_qpn = 17,
				    .pkey = 0xffff,
				    .psn = i,
				    .payload_len = payload_len };
		u32 n;
		u8 *at;

		p.ip_id = (u16)(size + i);
		at = packet_put_headers(frame, &path, &p);
		memset(at, (int)i, payload_len);
		n = packet_seal(frame, at, payload_len);
		if (!i) {
			size = n - BTH;
			memcpy(super, frame, BTH);
			put16(super + L3 + 4, size);
		}
		memcpy(super + len, frame + BTH, n - BTH);
		len += n - BTH;
	}
	put16(super + L3 + 2, len - L3);
	snprintf(name, sizeof(name), "%s/%02x-%u-%u", dir, opcode, payload_len, count);
	f = fopen(name, "wb");
	if (!f || fwrite(&shape, sizeof(shape), 1, f) != 1 || fwrite(super, len, 1, f) != 1)
		exit(1);
	fclose(f);
}

static void write_seeds(const char *dir)
{
	write_seed(dir, 0x04, 64, 30, (struct shape){ MEND_L3, 0, 255, 59, 64 });
	write_seed(dir, 0x01, 1024, 20, (struct shape){ MEND_L3, 0, 200, 59, 64 });
	write_seed(dir, 0x0e, 1024, 5, (struct shape){ MEND_L3 | MEND_LENGTH, 0, 20, 10, 0 });
	write_seed(dir, 0x64, 8, 64, (struct shape){ MEND_L3 | MEND_LENGTH, 0, 8, 3, 8 });
	write_seed(dir, 0x11, 0, 64, (struct shape){ MEND_L3, 0, 4, 1, 64 });
	exit(0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	if (getenv("XROCE_SEED_DIR"))
		write_seeds(getenv("XROCE_SEED_DIR"));
	return 0;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 *allocated[SEGMENTS_PARTS_MAX];
	struct shape shape;
	u32 laid, l3;

	if (size < sizeof(shape) || size > SUPER_MAX)
		return 0;
	memcpy(&shape, data, sizeof(shape));
	l3 = shape.mend & MEND_L3 ? L3 : shape.l3;
	laid = lay_out(&shape, data + sizeof(shape), (u32)(size - sizeof(shape)), allocated);
	if (shape.mend & MEND_LENGTH && s.parts && s.part[0].len > l3 + 4 && laid > l3)
		put16(s.part[0].data + l3 + 2, laid - l3);
	if (segments_begin(&s, l3))
		cut();
	for (u32 i = 0; i < s.parts; i++)
		free(allocated[i]);
	return 0;
}
