/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client of a broker that writes forged frames to its way out (hostile.sh), and a witness of what
 * has left.
 *
 *	forger SOCKET OWN4 SINK4 OWN6 SINK6 FOREIGN-QPN...
 *	forger witness MAC IPV4 IPV6
 *
 * OWN: addresses of the interface; SINK: of a host that answers nothing; FOREIGN-QPN: others'
 * numbers. Each frame carries a mark with its kind and a digest from the BTH on. The witness sees
 * the frames of all interfaces of its network namespace and prints
 *
 *	leaked KIND IF		a frame that must not leave, on another interface than a client's
 *	changed KIND IF		a permitted one, but changed, or without the sender's
 *				addresses, which are its arguments
 *	came KIND N		at its end, by TERM: permitted frames that arrived
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/asked.h"
#include "lib/checksum.h"
#include "lib/ctl.h"
#include "lib/forged.h"

/* ---- the client ---- */

/* TAP devices, and of what size the virtio header of their frames is: 0, there is none */
static int ways[8];
static int vnet_bytes[8];
static u32 num_ways;

static void find_ways(const int *fds, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct ifreq r = { 0 };

		if (ioctl(fds[i], TUNGETIFF, &r))
			continue;
		ways[num_ways] = fds[i];
		vnet_bytes[num_ways] = 0;
		if (r.ifr_flags & IFF_VNET_HDR)
			ioctl(fds[i], TUNGETVNETHDRSZ, &vnet_bytes[num_ways]);
		num_ways++;
	}
	must(num_ways > 0, "no way out");
}

static void leave(u32 way)
{
	static u8 zeroes[256];
	struct iovec iov[3] = { { &f.vnet, sizeof(f.vnet) }, { zeroes, 0 }, { f.b, f.len } };

	if (vnet_bytes[way] == 0) {
		iov[0].iov_len = 0;
		if (f.packets > 1)
			return;
	} else if (vnet_bytes[way] > (int)sizeof(f.vnet)) {
		iov[1].iov_len = (size_t)vnet_bytes[way] - sizeof(f.vnet);
	}
	/* what the kernel refuses at once has not left */
	while (writev(ways[way], iov, 3) < 0 && errno == EAGAIN) {
		struct pollfd p = { .fd = ways[way], .events = POLLOUT };

		poll(&p, 1, 100);
	}
}

static void send_kind(u32 k, u32 way)
{
	forged_kind(k);
	leave(way);
	/* the group bit of the source asks the second device for another path */
	f.b[6] ^= 1;
	leave(way);
}

/* A valid frame after an invalid header of the TAP device. */
static void lie(u32 k, u32 way)
{
	static const u8 flags[] = { 0, 1, 2, 3, 4, 0xff };
	static const u8 types[] = { 0, 1, 3, 4, 5, 0x81, 0x85, 0x25, 0x45, 0xff };
	static const u16 sizes[] = { 0, 1, 8, 16, 60, 240, 241, 480, 4160, 65535 };
	static const u16 starts[] = { 0,  12, 14, 20, 26, 28, 30, 34, 36, 40, 42,  44,	46,
				      47, 48, 50, 54, 56, 58, 59, 60, 62, 70, 280, 282, 60000 };
	static const u16 offsets[] = { 0, 2, 4, 5, 6, 7, 8, 12, 16, 17, 20, 65535 };
	static const u16 heads[] = { 0, 14, 42, 54, 62, 1000, 65535 };

	forged_make(kinds[k].v6, kinds[k].ud, kinds[k].packets, kinds[k].each);
	forged_seal(k);
	for (u32 a = 0; a < sizeof(flags); a++)
		for (u32 b = 0; b < sizeof(types); b++)
			for (u32 c = 0; c < sizeof(sizes) / 2; c++)
				for (u32 d = 0; d < sizeof(starts) / 2; d++) {
					/* offsets and lengths in turn: all of them would be 10^6 */
					const u32 turn = a + b + c + d;

					/* without a checksum its place does not matter */
					if (!(flags[a] & 1) && d > 1)
						break;
					f.vnet = (struct virtio_net_hdr){
						.flags = flags[a],
						.gso_type = types[b],
						.gso_size = sizes[c],
						.csum_start = starts[d],
						.csum_offset = offsets[turn % 12],
						.hdr_len = heads[turn % 7],
					};
					leave(way);
				}
}

/* Frames of no kind: too short for a mark, and random ones. */
static void rubbish(u32 way)
{
	u64 x = 7;

	forged_make(false, false, 1, 80);
	for (u32 len = 0; len < 64; len++) {
		f.len = len;
		leave(way);
	}
	for (u32 n = 0; n < 2000; n++) {
		forged_make(n & 1, n & 2, 1, 80);
		for (u32 i = 0; i < 4; i++) {
			x = x * 6364136223846793005ull + 1442695040888963407ull;
			/* never the address that it is to, or the frame would be anyone's */
			f.b[12 + (x >> 40) % 60] ^= (u8)(x >> 32);
		}
		memcpy(f.b + f.ip + (f.v6 ? 24 : 16), f.v6 ? sink6 : sink4, f.v6 ? 16 : 4);
		leave(way);
	}
	memset(f.b, 0xff, ROOM);
	f.len = 65535;
	leave(way);
	/* to QPs of others through the hairpin: no ICRC is right, no source the peer's */
	for (u32 n = 0; n < 200 * num_foreign; n++) {
		forged_make(false, n & 1, 1, 80);
		memcpy(f.b + f.ip + 16, own4, 4);
		f.b[f.bth] = (u8)(n % 200);
		put24(f.b + f.bth + 5, foreign[n % num_foreign]);
		forged_set_ip();
		leave(way);
	}
}

static void forge(int argc, char **argv)
{
	int fds[32];
	int sock;
	u32 n;

	must(argc >= 7 && inet_pton(AF_INET, argv[2], own4) == 1 &&
		     inet_pton(AF_INET, argv[3], sink4) == 1 &&
		     inet_pton(AF_INET6, argv[4], own6) == 1 &&
		     inet_pton(AF_INET6, argv[5], sink6) == 1,
	     "forger SOCKET OWN4 SINK4 OWN6 SINK6 FOREIGN-QPN...");
	for (int i = 6; i < argc && num_foreign < 16; i++)
		foreign[num_foreign++] = (u32)strtoul(argv[i], NULL, 0);
	sock = asked_reach(argv[1]);
	must(sock >= 0, "%s: %s", argv[1], strerror(-sock));
	n = asked_port(sock, 0, fds);
	must(!asked_draw(sock, &own_qpn), "no number");
	find_ways(fds, n);
	/* once as the library does, once with the device changed as far as it lets itself */
	for (u32 round = 0; round < 2; round++) {
		for (u32 w = 0; w < num_ways; w++) {
			for (u32 k = 0; k < num_kinds; k++) {
				if (strncmp(kinds[k].name, "lying", 5) == 0)
					lie(k, w);
				else
					for (u32 i = 0; i < 5; i++)
						send_kind(k, w);
			}
			rubbish(w);
		}
		for (u32 w = 0; w < num_ways; w++) {
			int big = 64, one = 1;
			struct ifreq r = { .ifr_hwaddr = { .sa_family = 1 } };

			ioctl(ways[w], TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6);
			ioctl(ways[w], TUNSETSNDBUF, &(int){ 1 << 30 });
			ioctl(ways[w], TUNSETVNETLE, &one);
			memcpy(r.ifr_hwaddr.sa_data, "\2\0\0\x77\0\1", 6);
			ioctl(ways[w], SIOCSIFHWADDR, &r);
			if (vnet_bytes[w] && ioctl(ways[w], TUNSETVNETHDRSZ, &big) == 0)
				vnet_bytes[w] = big;
		}
	}
	printf("forged\n");
}

/* ---- the witness ---- */

static volatile sig_atomic_t ended;
static unsigned long came[256];
static u8 mac[6];

static void on_term(int s)
{
	(void)s;
	ended = 1;
}

/* The headers in front of a packet that may have left are its sender's. */
static bool headers_right(const u8 *b, u32 len)
{
	const u32 ip = ETH;

	if (memcmp(b + 6, mac, 6))
		return false;
	if (get16(b + 12) == ETH_P_IP)
		return len >= 42 && b[ip] == 0x45 && b[ip + 9] == 17 &&
		       memcmp(b + ip + 12, own4, 4) == 0 && get16(b + ip + 2) <= len - ip &&
		       (get16(b + ip + 6) & 0x3fff) == 0 && get16(b + ip + 22) == UDP_PORT;
	return get16(b + 12) == ETH_P_IPV6 && len >= 62 && b[ip + 6] == 17 &&
	       memcmp(b + ip + 8, own6, 16) == 0 && get16(b + ip + 42) == UDP_PORT;
}

static void judge(const u8 *b, u32 len, const char *ifname, bool checks_headers)
{
	for (u32 at = 0; at + MARK_LEN + 4 <= len; at++) {
		u32 kind, each, head, sum;
		const u8 *bth;

		if (b[at] != 0xf0 || memcmp(b + at, MARK, MARK_LEN))
			continue;
		kind = b[at + MARK_LEN];
		head = BTH_BYTES + (b[at + MARK_LEN + 1] ? 8 : 0);
		each = get16(b + at + MARK_LEN + 2);
		if (kind >= num_kinds || at < head) {
			printf("changed mark %s\n", ifname);
			continue;
		}
		came[kind]++;
		if (!kinds[kind].may) {
			printf("leaked %s %s\n", kinds[kind].name, ifname);
			continue;
		}
		bth = b + at - head;
		memcpy(&sum, at - head + each <= len && each > head ? bth + each - 4 : b, 4);
		if (at - head + each > len || forged_digest(bth, each - 4) != sum)
			printf("changed %s %s\n", kinds[kind].name, ifname);
		else if (checks_headers && !headers_right(b, len))
			printf("changed headers of %s %s\n", kinds[kind].name, ifname);
	}
}

static void witness(int argc, char **argv)
{
	static u8 b[ROOM];
	unsigned int m[6];
	int sock = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL));
	const int room = 64 << 20;

	must(sock >= 0, "a packet socket: %s", strerror(errno));
	must(argc == 5 && inet_pton(AF_INET, argv[3], own4) == 1 &&
		     inet_pton(AF_INET6, argv[4], own6) == 1 &&
		     sscanf(argv[2], "%x:%x:%x:%x:%x:%x", m, m + 1, m + 2, m + 3, m + 4, m + 5) ==
			     6,
	     "forger witness MAC IPV4 IPV6");
	for (u32 i = 0; i < 6; i++)
		mac[i] = (u8)m[i];
	setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	signal(SIGTERM, on_term);
	printf("watching\n");
	for (;;) {
		struct sockaddr_ll from;
		socklen_t from_len = sizeof(from);
		const ssize_t n =
			recvfrom(sock, b, sizeof(b), 0, (struct sockaddr *)&from, &from_len);
		struct pollfd p = { .fd = sock, .events = POLLIN };
		char name[IF_NAMESIZE] = "gone";

		if (n < 0) {
			if (ended)
				break;
			poll(&p, 1, 100);
			continue;
		}
		if (!memmem(b, (size_t)n, MARK, MARK_LEN))
			continue;
		if_indextoname((unsigned int)from.sll_ifindex, name);
		/* at the client's address; a closed device was one */
		if ((strncmp(name, "xrt", 3) == 0 && strchr(name, '.')) || !strcmp(name, "gone"))
			continue;
		judge(b, (u32)n, name, strncmp(name, "xrt", 3) != 0);
	}
	for (u32 k = 0; k < num_kinds; k++)
		if (kinds[k].may)
			printf("came %s %lu\n", kinds[k].name, came[k]);
	printf("watched\n");
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strcmp(argv[1], "witness"))
		witness(argc, argv);
	else
		forge(argc, argv);
	return 0;
}
