/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends what no sane peer sends: the packets of a capture, addressed to a victim and then cut short
 * or with bits turned over. No packet that leaves here has a right ICRC (the addresses in it are
 * others), so none may be taken for good.
 *
 *	replay -i IFACE -D MAC -4 FROM,TO -6 FROM,TO [-c HOW] [-q QPN] [-n VARIANTS] [-s SEED]
 *CAPTURE...
 *
 *	-c cut	the frame at every length, the IP and UDP lengths as they were
 *	-c fit	the same, with the lengths made to fit the rest
 *	-c flip	bits turned over from the IP header on, -n variants a packet, by -s SEED
 *	-c none	as it is
 *	-q QPN	write this destination QP number into every packet
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/wire.h"

enum how { CUT, FIT, FLIP, NONE };

struct options {
	const char *ifname;
	uint8_t dmac[6];
	uint8_t src4[4], dst4[4], src6[16], dst6[16];
	enum how how;
	unsigned int variants;
	uint64_t dice;
	long qpn;	/* -1: as captured */
};

static int wire;
static unsigned long sent;

static void put16(uint8_t *at, unsigned int v)
{
	at[0] = v >> 8;
	at[1] = v;
}

/* RFC 1071, over an IPv4 header of 20 bytes. */
static void set_ip_checksum(uint8_t *ip)
{
	uint32_t sum = 0;
	int i;

	put16(ip + 10, 0);
	for (i = 0; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~sum & 0xffff);
}

static void emit(const uint8_t *frame, size_t len)
{
	/* Less than an Ethernet header cannot be sent at all. */
	if (len < 14)
		return;
	wire_send(wire, frame, len);
	sent++;
}

/* Sets the IP and UDP lengths to the actual size, as far as their headers are there. */
static void fit(uint8_t *frame, size_t len, size_t ip, bool ipv6)
{
	size_t udp = ip + (ipv6 ? 40 : 20);

	if (udp > len)
		return;
	if (ipv6) {
		put16(frame + ip + 4, len - udp);
	} else {
		put16(frame + ip + 2, len - ip);
		set_ip_checksum(frame + ip);
	}
	if (udp + 8 <= len)
		put16(frame + udp + 4, len - udp);
}

static uint64_t roll(struct options *o)
{
	o->dice ^= o->dice << 13;
	o->dice ^= o->dice >> 7;
	o->dice ^= o->dice << 17;
	return o->dice >> 11;
}

static void ill_treat(struct options *o, const uint8_t *frame, size_t len, size_t ip, bool ipv6)
{
	static uint8_t copy[WIRE_FRAME_MAX];
	size_t n;
	unsigned int v, bits;

	switch (o->how) {
	case CUT:
		for (n = ip; n < len; n++)
			emit(frame, n);
		break;
	case FIT:
		for (n = ip; n < len; n++) {
			memcpy(copy, frame, n);
			fit(copy, n, ip, ipv6);
			emit(copy, n);
		}
		break;
	case FLIP:
		for (v = 0; v < o->variants; v++) {
			memcpy(copy, frame, len);
			for (bits = 1 + roll(o) % 4; bits; bits--) {
				/* Mostly in the headers, which is where meaning is. */
				n = ip + roll(o) % (roll(o) % 4 ? (len - ip < 80 ? len - ip : 80) :
								  len - ip);
				copy[n] ^= 1 << roll(o) % 8;
			}
			emit(copy, len);
		}
		break;
	case NONE:
		emit(frame, len);
		break;
	}
}

static void readdress(const struct options *o, uint8_t *frame, size_t ip, bool ipv6)
{
	size_t bth = ip + (ipv6 ? 48 : 28);

	memcpy(frame, o->dmac, 6);
	if (ipv6) {
		memcpy(frame + ip + 8, o->src6, 16);
		memcpy(frame + ip + 24, o->dst6, 16);
	} else {
		memcpy(frame + ip + 12, o->src4, 4);
		memcpy(frame + ip + 16, o->dst4, 4);
		set_ip_checksum(frame + ip);
	}
	if (o->qpn >= 0) {
		frame[bth + 5] = o->qpn >> 16;
		frame[bth + 6] = o->qpn >> 8;
		frame[bth + 7] = o->qpn;
	}
}

static void replay_file(struct options *o, const char *name)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	FILE *f = fopen(name, "rb");
	uint32_t head[6], rec[4];
	bool ipv6;
	size_t ip;

	must(f, "cannot read %s", name);
	must(fread(head, sizeof(head), 1, f) == 1 && head[0] == 0xa1b2c3d4 && head[5] == 1,
	     "%s: not an Ethernet capture of this machine's byte order", name);
	while (fread(rec, sizeof(rec), 1, f) == 1) {
		must(rec[2] <= sizeof(frame) && fread(frame, rec[2], 1, f) == 1, "%s: short", name);
		ip = wire_roce_ip(frame, rec[2], &ipv6);
		must(ip && ip + (ipv6 ? 60 : 40) <= rec[2], "%s: a packet that is not RoCEv2",
		     name);
		readdress(o, frame, ip, ipv6);
		ill_treat(o, frame, rec[2], ip, ipv6);
	}
	fclose(f);
}

static void parse(int argc, char **argv, struct options *o)
{
	static const char *const hows[] = { "cut", "fit", "flip", "none" };
	unsigned int b[6], i;
	int c;

	while ((c = getopt(argc, argv, "i:D:4:6:c:n:s:q:")) != -1) {
		char *comma = optarg ? strchr(optarg, ',') : NULL;

		if (comma && (c == '4' || c == '6'))
			*comma++ = 0;
		switch (c) {
		case 'i': o->ifname = optarg; break;
		case 'D':
			must(sscanf(optarg, "%x:%x:%x:%x:%x:%x", &b[0], &b[1], &b[2], &b[3], &b[4],
				    &b[5]) == 6,
			     "replay: MAC %s", optarg);
			for (i = 0; i < 6; i++)
				o->dmac[i] = b[i];
			break;
		case '4':
			must(comma && inet_pton(AF_INET, optarg, o->src4) == 1 &&
				     inet_pton(AF_INET, comma, o->dst4) == 1,
			     "replay: -4 FROM,TO");
			break;
		case '6':
			must(comma && inet_pton(AF_INET6, optarg, o->src6) == 1 &&
				     inet_pton(AF_INET6, comma, o->dst6) == 1,
			     "replay: -6 FROM,TO");
			break;
		case 'c':
			for (i = 0; i < 4 && strcmp(hows[i], optarg) != 0; i++)
				;
			must(i < 4, "replay: -c cut|fit|flip|none");
			o->how = i;
			break;
		case 'n': o->variants = strtoul(optarg, NULL, 0); break;
		case 's': o->dice = strtoul(optarg, NULL, 0) + 1; break;
		case 'q': o->qpn = strtol(optarg, NULL, 0); break;
		default: exit(1);
		}
	}
	o->dice *= 0x9e3779b97f4a7c15ull;
	must(o->ifname && optind < argc, "replay: -i and a capture are needed");
}

int main(int argc, char **argv)
{
	struct options o = { .how = NONE, .variants = 20, .dice = 1, .qpn = -1 };
	int i;

	parse(argc, argv, &o);
	wire = wire_open(o.ifname, false);
	for (i = optind; i < argc; i++)
		replay_file(&o, argv[i]);
	printf("sent %lu\n", sent);
	return 0;
}
