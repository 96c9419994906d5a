/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rdma_cm listeners of a process, from its XDP program's map, for xroce list. */
#include <arpa/inet.h>

#include "../../os/ask.h"
#include "../../os/process.h"
#include "../observe/observe.h"
#include "list.h"

/* RDMA_PS_*: bits 16 and up of the service ID of a port. */
static const struct port_space {
	u16 number;
	const char *name;
} port_spaces[] = { { 0x0002, "IPOIB" }, { 0x0106, "TCP" }, { 0x0111, "UDP" }, { 0x013f, "IB" } };

static void listener_service(u64 service, char *text, size_t n)
{
	for (u32 i = 0; i < sizeof(port_spaces) / sizeof(port_spaces[0]); i++)
		if (service >> 16 == port_spaces[i].number) {
			snprintf(text, n, "%s port %u", port_spaces[i].name,
				 (unsigned int)(service & 0xffff));
			return;
		}
	snprintf(text, n, "service 0x%016llx", (unsigned long long)service);
}

static void listener_address(const struct xroce_listener *l, char *said, size_t n)
{
	static const u8 any[16], mapped[12] = { [10] = 0xff, 0xff };
	char text[INET6_ADDRSTRLEN];

	if (!memcmp(l->address, any, sizeof(any)))
		snprintf(said, n, "any%s address",
			 l->families == ASK_IPV4 ? " IPv4" :
			 l->families == ASK_IPV6 ? " IPv6" :
						   "");
	else if (!memcmp(l->address, mapped, sizeof(mapped)))
		snprintf(said, n, "%s",
			 inet_ntop(AF_INET, l->address + sizeof(mapped), text, sizeof(text)));
	else
		snprintf(said, n, "%s", inet_ntop(AF_INET6, l->address, text, sizeof(text)));
}

union listener_map {
	struct xroce_engine engine;
	u64 words[sizeof(struct xroce_engine) / sizeof(u64)];
};

/* The map has one element, so its sum is that element. */
static bool listener_read(u32 prog_id, union listener_map *map)
{
	return !observe_hook_sum(prog_id, XROCE_MAP_ENGINE, map->words,
			     sizeof(map->words) / sizeof(map->words[0]));
}

void list_listeners(u32 prog_id, u32 pid)
{
	char who[64] = "a process that is not visible here", comm[32];
	char service[48], address[INET6_ADDRSTRLEN + 16];
	union listener_map map;
	u32 shown = 0;

	if (!listener_read(prog_id, &map) || !map.engine.listeners)
		return;
	if (pid) {
		process_name((pid_t)pid, comm, sizeof(comm));
		snprintf(who, sizeof(who), "pid %u (%s)", pid, comm);
	}
	for (u32 i = 0; i < XROCE_LISTENERS; i++) {
		const struct xroce_listener *l = &map.engine.listener[i];

		if (!l->families)
			continue;
		shown++;
		listener_service(l->service, service, sizeof(service));
		listener_address(l, address, sizeof(address));
		printf("  listens   %s: %s at %s\n", who, service, address);
	}
	if (map.engine.listeners > shown)
		printf("  listens   %s: %u more\n", who, map.engine.listeners - shown);
}

void list_json_listeners(struct json *j, u32 prog_id)
{
	char service[48], address[INET6_ADDRSTRLEN + 16];
	union listener_map map;

	if (!listener_read(prog_id, &map))
		return;
	json_array(j, "listeners");
	for (u32 i = 0; i < XROCE_LISTENERS; i++) {
		const struct xroce_listener *l = &map.engine.listener[i];

		if (!l->families)
			continue;
		listener_service(l->service, service, sizeof(service));
		listener_address(l, address, sizeof(address));
		json_object(j, NULL);
		json_text(j, "service", service);
		json_text(j, "address", address);
		json_close(j);
	}
	json_close(j);
}
