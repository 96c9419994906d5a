/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bystander that checks every RoCEv2 packet over IPv4 that arrives on an interface: the project's
 * parser, the ICRC, the IPv4 header's checksum, and the UDP checksum if there is one. It counts
 * packets with an identification, which only UDP segmentation sets.
 *
 *	segments IFACE
 *
 * Prints a line when it watches, and its counts on TERM. Exit status 1 if a packet was wrong.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../user/engine/packet.h"
#include "lib/checksum.h"
#include "lib/ctl.h"
#include "lib/wire.h"

static struct {
	unsigned long packets, cut, wrong;
} saw;

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = 1;
}

static const char *fault(const u8 *frame, size_t len)
{
	const struct rx_frame f = { .data = frame, .len = (u32)len };
	struct packet p;
	const u8 *udp;
	int ret = packet_parse(&p, &f);

	if (ret)
		return "does not parse";
	if (!packet_icrc_ok(&p))
		return "has a wrong ICRC";
	if (sum16(p.ip, 20, 0) != 0xffff)
		return "has a wrong IPv4 checksum";
	saw.cut += p.ip_id != 0;
	udp = p.ip + 20;
	if (!get16(udp + 6))
		return p.ip_id ? "was cut and has no UDP checksum" : NULL;
	return sum16(udp, get16(udp + 4), sum16(p.ip + 12, 8, 17 + get16(udp + 4))) == 0xffff ?
		       NULL :
		       "has a wrong UDP checksum";
}

static void look(const u8 *frame, size_t len)
{
	const char *what;
	bool ipv6;

	if (!wire_roce_ip(frame, len, &ipv6) || ipv6)
		return;
	saw.packets++;
	what = fault(frame, len);
	if (!what)
		return;
	if (!saw.wrong++)
		printf("packet %lu of %zu bytes, identification %u, %s\n", saw.packets, len,
		       get16(frame + 18), what);
}

int main(int argc, char **argv)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	const struct sigaction sa = { .sa_handler = on_signal };
	struct pollfd pfd = { .events = POLLIN };
	size_t len;

	must(argc == 2, "segments IFACE");
	pfd.fd = wire_open(argv[1], true);
	sigaction(SIGTERM, &sa, NULL);
	printf("watching\n");
	fflush(stdout);
	while (!stop) {
		poll(&pfd, 1, -1);
		while ((len = wire_receive(pfd.fd, frame, sizeof(frame))))
			look(frame, len);
	}
	printf("saw %lu packets, %lu of them cut, %lu wrong\n", saw.packets, saw.cut, saw.wrong);
	return saw.wrong != 0;
}
