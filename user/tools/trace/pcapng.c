/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <xroce/version.h>

#include "capture.h"
#include "pcapng.h"

#define LINKTYPE_ETHERNET 1
#define SECTION_MAGIC	  0x1a2b3c4du

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
};

enum {
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	SECTION_APPLICATION = 4,
	INTERFACE_NAME = 2,
	INTERFACE_RESOLUTION = 9,
	PACKET_FLAGS = 2,
	PACKET_LOST = 4,
	STATISTICS_RECEIVED = 4,
	STATISTICS_LOST = 5,
};

#define RESOLUTION_NS 9	/* 10^-9 s */
/* More than all options of a block take. */
#define OPTIONS_MAX   (PCAPNG_COMMENT_MAX + 256)

/* Options of a block, collected first because the block begins with its length. */
struct options {
	u8 bytes[OPTIONS_MAX];
	u32 len;
};

static u32 padded(u32 len)
{
	return (len + 3) & ~3u;
}

static void option_put(struct options *o, u16 code, const void *value, u32 len)
{
	const u16 head[2] = { code, (u16)len };

	if (o->len + sizeof(head) + padded(len) + sizeof(head) > sizeof(o->bytes))
		return;
	memcpy(o->bytes + o->len, head, sizeof(head));
	memcpy(o->bytes + o->len + sizeof(head), value, len);
	memset(o->bytes + o->len + sizeof(head) + len, 0, padded(len) - len);
	o->len += (u32)sizeof(head) + padded(len);
}

static void option_text(struct options *o, u16 code, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (len)
		option_put(o, code, text, len < PCAPNG_COMMENT_MAX ? (u32)len : PCAPNG_COMMENT_MAX);
}

/* For counters. */
static void option_number(struct options *o, u16 code, u64 value)
{
	option_put(o, code, &value, sizeof(value));
}

static void options_end(struct options *o)
{
	if (o->len)
		option_put(o, OPTION_END, "", 0);
}

static void pcapng_write(struct pcapng *p, const void *data, size_t n)
{
	if (p->err || !n)
		return;
	errno = 0;
	if (fwrite(data, 1, n, p->out) != n)
		p->err = errno ? -errno : -EIO;
	p->bytes += n;
}

/* Writes type, length, fixed part, data with padding, options, and the length again. */
static int pcapng_block(struct pcapng *p, u32 type, const void *fixed, u32 fixed_len,
			const u8 *data, u32 len, struct options *o)
{
	const u32 zero = 0, head_len = 3 * (u32)sizeof(u32);
	u32 head[2] = { type };

	options_end(o);
	head[1] = head_len + fixed_len + padded(len) + o->len;
	pcapng_write(p, head, sizeof(head));
	pcapng_write(p, fixed, fixed_len);
	pcapng_write(p, data, len);
	pcapng_write(p, &zero, padded(len) - len);
	pcapng_write(p, o->bytes, o->len);
	pcapng_write(p, &head[1], sizeof(head[1]));
	return p->err;
}

int pcapng_begin(struct pcapng *p, FILE *out, const char *application)
{
	const struct {
		u32 magic;
		u16 major, minor;
		s64 section_len;
	} section = { SECTION_MAGIC, 1, 0, -1 };
	struct options o = { .len = 0 };

	*p = (struct pcapng){ .out = out };
	option_text(&o, SECTION_APPLICATION, application);
	return pcapng_block(p, BLOCK_SECTION, &section, sizeof(section), NULL, 0, &o);
}

int pcapng_interface(struct pcapng *p, const char *name, u32 snaplen)
{
	const struct {
		u16 link_type, reserved;
		u32 snaplen;
	} interface = { LINKTYPE_ETHERNET, 0, snaplen };
	const u8 resolution = RESOLUTION_NS;
	struct options o = { .len = 0 };

	p->interfaces++;
	option_text(&o, INTERFACE_NAME, name);
	option_put(&o, INTERFACE_RESOLUTION, &resolution, sizeof(resolution));
	return pcapng_block(p, BLOCK_INTERFACE, &interface, sizeof(interface), NULL, 0, &o);
}

int pcapng_packet(struct pcapng *p, const struct pcapng_packet *packet)
{
	const struct {
		u32 interface, time_high, time_low, captured, len;
	} head = { packet->interface, (u32)(packet->time_ns >> 32), (u32)packet->time_ns,
		   packet->captured, packet->len };
	const u32 flags = packet->direction;
	struct options o = { .len = 0 };

	option_text(&o, OPTION_COMMENT, packet->comment);
	if (flags)
		option_put(&o, PACKET_FLAGS, &flags, sizeof(flags));
	if (packet->lost)
		option_number(&o, PACKET_LOST, packet->lost);
	return pcapng_block(p, BLOCK_PACKET, &head, sizeof(head), packet->data, packet->captured,
			    &o);
}

int pcapng_statistics(struct pcapng *p, u32 interface, u64 time_ns, u64 received, u64 lost)
{
	const u32 head[3] = { interface, (u32)(time_ns >> 32), (u32)time_ns };
	struct options o = { .len = 0 };

	option_number(&o, STATISTICS_RECEIVED, received);
	option_number(&o, STATISTICS_LOST, lost);
	return pcapng_block(p, BLOCK_STATISTICS, head, sizeof(head), NULL, 0, &o);
}

/* The files of a capture: one, or a sequence named as tcpdump(8) does. */

/* FILE, FILE1, FILE2 and so on; with a number of files, FILE0 on with equal digits. */
static int capture_file_name(struct capture_file *f)
{
	const u32 nth = f->max_files ? f->nth % f->max_files : f->nth;
	char number[16] = "";
	int digits = 1;

	for (u32 n = f->max_files ? f->max_files - 1 : 0; n >= 10 && digits < 9; n /= 10)
		digits++;
	if (f->max_files)
		snprintf(number, sizeof(number), "%0*u", digits, nth);
	else if (nth)
		snprintf(number, sizeof(number), "%u", nth);
	return (size_t)snprintf(f->opened, sizeof(f->opened), "%s%s", f->path, number) >=
			       sizeof(f->opened) ?
		       -ENAMETOOLONG :
		       0;
}

/* Creates a file that only its owner can read, as it has the applications' data. */
static FILE *capture_file_create(const char *path)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !out)
		close(fd);
	return out;
}

int capture_file_open(struct capture_file *f)
{
	const int err = capture_file_name(f);
	FILE *out;

	if (err)
		return err;
	out = !strcmp(f->path, "-") ? stdout : capture_file_create(f->opened);
	if (!out)
		return -errno;
	f->ifaces = 0;
	f->flushed_bytes = 0;
	return pcapng_begin(&f->out, out, "xroce " XROCE_VERSION);
}

static int capture_file_interface(struct capture_file *f, const char *name, u32 *number)
{
	for (u32 i = 0; i < f->ifaces; i++)
		if (!strcmp(f->iface[i].name, name)) {
			*number = i;
			return 0;
		}
	if (f->ifaces == f->room) {
		const u32 room = f->room ? 2 * f->room : 16;
		struct captured_iface *more = reallocarray(f->iface, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		f->iface = more;
		f->room = room;
	}
	*number = f->ifaces++;
	snprintf(f->iface[*number].name, sizeof(f->iface[*number].name), "%s", name);
	f->iface[*number].packets = 0;
	return pcapng_interface(&f->out, name, f->snaplen);
}

int capture_file_put(struct capture_file *f, const char *iface, struct pcapng_packet *packet,
		     u64 lost)
{
	int err = 0;

	if (f->max_bytes && f->out.bytes >= f->max_bytes && f->ifaces) {
		err = capture_file_close(f, lost);
		f->nth++;
		if (!err)
			err = capture_file_open(f);
	}
	if (!err)
		err = capture_file_interface(f, iface, &packet->interface);
	if (err)
		return err;
	packet->lost = lost - f->lost_told;
	f->lost_told = lost;
	f->iface[packet->interface].packets++;
	return pcapng_packet(&f->out, packet);
}

int capture_file_flush(struct capture_file *f)
{
	if (!f->out.err && fflush(f->out.out))
		f->out.err = -errno;
	if (!f->out.err)
		f->flushed_bytes = f->out.bytes;
	return f->out.err;
}

/*
 * Discards the incomplete block after a failed write: purges the buffer and truncates the file.
 * Standard output is left as it is, since other processes may have written to it.
 */
static void capture_file_cut(struct capture_file *f)
{
	if (f->out.out == stdout)
		return;
	__fpurge(f->out.out);
	/* fails on a pipe, which is harmless */
	(void)!ftruncate(fileno(f->out.out), (off_t)f->flushed_bytes);
}

static u64 capture_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (u64)now.tv_sec * NSEC_PER_SEC + (u64)now.tv_nsec;
}

int capture_file_close(struct capture_file *f, u64 lost)
{
	int err = 0;

	if (!f->out.out)
		return 0;
	/* lost records are not counted by interface: the first one reports all */
	for (u32 i = 0; i < f->ifaces; i++)
		err = pcapng_statistics(&f->out, i, capture_now_ns(), f->iface[i].packets,
					i ? 0 : lost - f->lost_before);
	f->lost_before = lost;
	if (capture_file_flush(f)) {
		err = f->out.err;
		capture_file_cut(f);
	}
	if (f->out.out != stdout && fclose(f->out.out) && !err)
		err = -errno;
	f->out.out = NULL;
	free(f->iface);
	f->iface = NULL;
	f->ifaces = f->room = 0;
	return err;
}
