/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends one RoCEv2 packet as a peer on a VLAN would: a SEND_ONLY of 16 bytes, built by the
 * project's codec, with VLAN tags, a traffic class and a UDP source port of choice, through a
 * packet socket. Kernels without VLAN devices need none for this.
 *
 *	tagged -i IFACE -s SMAC -d DMAC -f FROM -t TO -q QPN [-T TCI[,TCI]] [-c TOS] [-p SPORT] (-k
 *QKEY | -P PSN)
 *
 *	-T	tags, outermost first, each its hexadecimal TCI: the outer of two is 802.1ad, else
 *802.1Q -k	UD, with this Q_Key; -P: RC, with this PSN
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../user/engine/packet.h"
#include "lib/ctl.h"
#include "lib/wire.h"

#define TAGS_MAX    2
#define PAYLOAD	    16
#define SRC_QPN	    0x4711
#define MAC_BYTES   12 /* both addresses: the tags come after them */

static void parse_mac(const char *text, u8 mac[6])
{
	must(sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
		    &mac[4], &mac[5]) == 6,
	     "%s is no MAC", text);
}

static bool parse_gid(const char *text, struct gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (inet_pton(AF_INET6, text, gid->raw) == 1)
		return true;
	gid->raw[10] = gid->raw[11] = 0xff;
	must(inet_pton(AF_INET, text, gid->raw + 12) == 1, "%s is no address", text);
	return false;
}

static u32 insert_tags(u8 *frame, u32 len, const u16 *tci, u32 tags)
{
	memmove(frame + MAC_BYTES + 4 * tags, frame + MAC_BYTES, len - MAC_BYTES);
	for (u32 i = 0; i < tags; i++) {
		u8 *tag = frame + MAC_BYTES + 4 * i;
		u16 proto = i + 1 < tags ? 0x88a8 : 0x8100;

		tag[0] = (u8)(proto >> 8);
		tag[1] = (u8)proto;
		tag[2] = (u8)(tci[i] >> 8);
		tag[3] = (u8)tci[i];
	}
	return len + 4 * tags;
}

int main(int argc, char **argv)
{
	struct path path = { .hop_limit = 64, .udp_sport = 50000 };
	struct packet p = { .opcode = OPCODE(XROCE_RC, OP5_SEND_ONLY),
			    .pkey = ROCE_DEFAULT_PKEY,
			    .migreq = true,
			    .payload_len = PAYLOAD };
	u8 frame[PACKET_FRAME_MAX], *payload;
	const char *iface = NULL;
	u16 tci[TAGS_MAX] = { 0 };
	u32 tags = 0, len;
	int c, wire;

	while ((c = getopt(argc, argv, "i:s:d:f:t:q:T:c:p:k:P:")) != -1) {
		switch (c) {
		case 'i': iface = optarg; break;
		case 's': parse_mac(optarg, path.smac); break;
		case 'd': parse_mac(optarg, path.dmac); break;
		case 'f': path.is_ipv6 = parse_gid(optarg, &path.local); break;
		case 't': parse_gid(optarg, &path.peer); break;
		case 'q': p.dest_qpn = (u32)strtoul(optarg, NULL, 0); break;
		case 'T':
			for (char *at = strtok(optarg, ","); at && tags < TAGS_MAX;
			     at = strtok(NULL, ","))
				tci[tags++] = (u16)strtoul(at, NULL, 16);
			break;
		case 'c': path.tos = (u8)strtoul(optarg, NULL, 0); break;
		case 'p': path.udp_sport = (u16)atoi(optarg); break;
		case 'k':
			p.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY);
			p.qkey = (u32)strtoul(optarg, NULL, 0);
			p.src_qpn = SRC_QPN;
			break;
		case 'P': p.psn = (u32)strtoul(optarg, NULL, 0); break;
		default: die("wrong option");
		}
	}
	must(iface && p.dest_qpn, "tagged -i IFACE -s SMAC -d DMAC -f FROM -t TO -q QPN ...");
	payload = packet_put_headers(frame, &path, &p);
	memset(payload, 0x5a, PAYLOAD);
	len = packet_seal(frame, payload, PAYLOAD);
	len = insert_tags(frame, len, tci, tags);
	wire = wire_open(iface, false);
	wire_send(wire, frame, len);
	close(wire);
	return 0;
}
