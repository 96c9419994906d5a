/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture.h"

/* Headers in front of a MAD: Ethernet, IPv4, UDP, BTH, DETH; and the ICRC after it. */
#define MAD_OFFSET (14 + 20 + 8 + 12 + 8)
#define ICRC_BYTES 4
#define IPV4_SOURCE_LAST (14 + 15)

int capture_load(struct capture *c)
{
	uint64_t qp;

	c->num = 0;
	if (golden_load(&c->golden))
		return -1;
	for (size_t i = 0; i < c->golden.count; i++) {
		const struct golden_packet *g = &c->golden.packets[i];

		if (strncmp(g->file, "v4-cm-", 6) || !golden_field(g, "qp", 16, &qp) || qp != 1)
			continue;
		if (c->num == CAPTURE_MAX || g->len != MAD_OFFSET + CM_MAD_BYTES + ICRC_BYTES)
			return -1;
		c->mad[c->num++] = (struct capture_mad){
			.file = g->file,
			.index = g->index,
			.from_client = g->frame[IPV4_SOURCE_LAST] == 1,
			.mad = g->frame + MAD_OFFSET,
		};
	}
	return 0;
}

void capture_free(struct capture *c)
{
	golden_free(&c->golden);
}

const u8 *capture_mad(const struct capture *c, const char *file, u32 index)
{
	for (u32 i = 0; i < c->num; i++)
		if (!strcmp(c->mad[i].file, file) && c->mad[i].index == index)
			return c->mad[i].mad;
	return NULL;
}
