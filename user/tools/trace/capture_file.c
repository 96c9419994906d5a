/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files of a capture: one, or one after the other, as tcpdump(8) names them. */
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <xroce/version.h>

#include "capture.h"

/* FILE, FILE1, FILE2 and so on; with a number of files FILE0 to FILE9, of as many digits each. */
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

/* It has what the applications said to each other: for its owner's eyes. */
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
	return pcapng_begin(&f->out, out, "xroce " XROCE_VERSION);
}

static int capture_file_interface(struct capture_file *f, const char *name, u32 *number)
{
	for (u32 i = 0; i < f->ifaces; i++)
		if (!strcmp(f->iface[i].name, name)) {
			*number = i;
			return 0;
		}
	if (f->ifaces == CAPTURE_IFACES)
		return -ENOSPC;
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
	return f->out.err;
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
	/* which interface's they were is not known: of one, it is */
	for (u32 i = 0; i < f->ifaces; i++)
		err = pcapng_statistics(&f->out, i, capture_now_ns(), f->iface[i].packets,
					i ? 0 : lost);
	if (capture_file_flush(f))
		err = f->out.err;
	if (f->out.out != stdout && fclose(f->out.out) && !err)
		err = -errno;
	f->out.out = NULL;
	return err;
}
