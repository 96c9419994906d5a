/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <time.h>

#include "../../os/clock.h"
#include "lab_capture.h"

void lab_capture_begin(struct lab_capture *c, int fd, u32 hosts)
{
	FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;

	*c = (struct lab_capture){ .out = { .out = NULL } };
	if (!out)
		return;
	pcapng_begin(&c->out, out, "xroce lab");
	for (u32 i = 0; i < hosts; i++)
		pcapng_interface(&c->out, (const char[]){ 'h', (char)('1' + i), 0 }, UINT16_MAX);
}

int lab_capture_end(struct lab_capture *c)
{
	if (c->out.out && fclose(c->out.out) && !c->out.err)
		c->out.err = -errno;
	c->out.out = NULL;
	return c->out.err;
}

/* Writes a comment of the rules that have hit the packet. */
static void write_comment(const struct lab_wire *w, u32 from, u32 to, const struct lab_fate *fate,
			  char *text, size_t bytes)
{
	char kind[LAB_KIND_NAME];
	int n;

	lab_kind_name(fate->id.kind, kind);
	n = snprintf(text, bytes, "xroce lab: h%u>h%u %s qp %u psn +%u round %u", from, to, kind,
		     fate->id.order, fate->id.step, fate->id.round);
	for (u32 i = 0; i < w->num_rules && n >= 0 && (size_t)n < bytes; i++)
		if (fate->rules >> i & 1)
			n += snprintf(text + n, bytes - (size_t)n, "; %s", w->rules[i].text);
}

void lab_capture_frame(struct lab_capture *c, const struct lab_wire *wire, u32 from, u32 to,
		       const u8 *data, u32 len, const struct lab_fate *fate)
{
	char comment[PCAPNG_COMMENT_MAX];
	struct pcapng_packet p = { .interface = from - 1,
				   .data = data,
				   .captured = len,
				   .len = len,
				   .direction = PCAPNG_INBOUND };
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	p.time_ns = (u64)now.tv_sec * NSEC_PER_SEC + (u64)now.tv_nsec;
	if (fate && fate->rules) {
		write_comment(wire, from, to, fate, comment, sizeof(comment));
		p.comment = comment;
	}
	pcapng_packet(&c->out, &p);
}
