/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rdma_cm listeners of a process, as its XDP program's map has them: lines of xroce list. */
#include <arpa/inet.h>

#include "../base/ask.h"
#include "../base/process.h"
#include "cli.h"

/* RDMA_PS_*, the upper bits of the service id of a port. */
static const struct port_space {
	u16 number;
	const char *name;
} port_spaces[] = { { 0x0002, "IPOIB" }, { 0x0106, "TCP" }, { 0x0111, "UDP" }, { 0x013f, "IB" } };

static void listener_print_service(u64 service)
{
	for (u32 i = 0; i < sizeof(port_spaces) / sizeof(port_spaces[0]); i++)
		if (service >> 16 == port_spaces[i].number) {
			printf("%s port %u", port_spaces[i].name, (unsigned int)(service & 0xffff));
			return;
		}
	printf("service 0x%016llx", (unsigned long long)service);
}

static void listener_print_address(const struct xroce_listener *l)
{
	static const u8 any[16], mapped[12] = { [10] = 0xff, 0xff };
	char text[INET6_ADDRSTRLEN];

	if (!memcmp(l->address, any, sizeof(any)))
		printf("any%s address", l->families == ASK_IPV4	  ? " IPv4" :
					l->families == ASK_IPV6 ? " IPv6" :
								    "");
	else if (!memcmp(l->address, mapped, sizeof(mapped)))
		printf("%s", inet_ntop(AF_INET, l->address + sizeof(mapped), text, sizeof(text)));
	else
		printf("%s", inet_ntop(AF_INET6, l->address, text, sizeof(text)));
}

void list_listeners(u32 prog_id, u32 pid)
{
	union {
		struct xroce_engine engine;
		u64 words[sizeof(struct xroce_engine) / sizeof(u64)];
	} map;
	char comm[32];
	u32 shown = 0;

	/* one element: the sum over all is the element itself */
	if (xdp_counters(prog_id, XROCE_MAP_ENGINE, map.words,
			 sizeof(map.words) / sizeof(map.words[0])) ||
	    !map.engine.listeners)
		return;
	if (!pid)
		pid = map.engine.pid;
	process_name((pid_t)pid, comm, sizeof(comm));
	for (u32 i = 0; i < XROCE_LISTENERS; i++) {
		const struct xroce_listener *l = &map.engine.listener[i];

		if (!l->families)
			continue;
		shown++;
		printf("  listens   pid %u (%s): ", pid, comm);
		listener_print_service(l->service);
		printf(" at ");
		listener_print_address(l);
		putchar('\n');
	}
	if (map.engine.listeners > shown)
		printf("  listens   pid %u (%s): %u more\n", pid, comm,
		       map.engine.listeners - shown);
}
