/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "neigh_cache.h"

#include "../os/clock.h"
#include "rdmacm.h"

#define NEIGH_CACHE_NS (NSEC_PER_SEC / 10)

/* Each destination has one place. */
static struct {
	u32 generation; /* of all of them */
	struct {
		u32 ifindex;
		struct gid local, to;
		u8 mac[6];
		u64 until_ns; /* 0: none */
	} at[64];
} known;

static u32 neigh_cache_place(const struct gid *to)
{
	return (to->raw[15] ^ to->raw[14] * 7u) % ARRAY_SIZE(known.at);
}

bool neigh_cache_has(const struct netdev_route *route, const struct gid *to, u8 mac[6])
{
	const u32 i = neigh_cache_place(to);
	const bool has = known.generation == rdmacm_generation &&
			 clock_now_ns() < known.at[i].until_ns &&
			 known.at[i].ifindex == route->ifindex &&
			 gid_equal(&known.at[i].local, &route->local) &&
			 gid_equal(&known.at[i].to, to);

	if (has)
		memcpy(mac, known.at[i].mac, sizeof(known.at[i].mac));
	return has;
}

void neigh_cache_forget(void)
{
	memset(known.at, 0, sizeof(known.at));
	known.generation = rdmacm_generation;
}

void neigh_cache_add(const struct netdev_route *route, const struct gid *to, const u8 mac[6])
{
	const u32 i = neigh_cache_place(to);

	if (known.generation != rdmacm_generation)
		neigh_cache_forget();
	known.at[i].ifindex = route->ifindex;
	known.at[i].local = route->local;
	known.at[i].to = *to;
	memcpy(known.at[i].mac, mac, sizeof(known.at[i].mac));
	known.at[i].until_ns = clock_now_ns() + NEIGH_CACHE_NS;
}
