/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "broker.h"

static struct broker the_broker;
struct broker *broker = &the_broker;

static int on_record(void *ctx, void *data, size_t size)
{
	const struct xroce_rx_record *r = data;
	struct broker_client *c = ctx;

	if (size < sizeof(*r) || r->len > size - sizeof(*r))
		return -EINVAL;
	c->records++;
	c->len = r->len;
	memcpy(c->frame, r->frame, r->len);
	return 0;
}

static int broker_make_client(struct broker_client *c)
{
	c->skel = xroce_bpf__open();
	if (!c->skel)
		return -1;
	c->skel->rodata->xroce_shared = true;
	bpf_map__set_max_entries(c->skel->maps.xroce_ring, BROKER_RING_BYTES);
	if (bpf_map__reuse_fd(c->skel->maps.xroce_others,
			      bpf_map__fd(broker->skel->maps.xroce_client)) ||
	    bpf_map__reuse_fd(c->skel->maps.xroce_turn,
			      bpf_map__fd(broker->skel->maps.xroce_turn)) ||
	    xroce_bpf__load(c->skel))
		return -1;
	c->reader = ring_buffer__new(bpf_map__fd(c->skel->maps.xroce_ring), on_record, c, NULL);
	return c->reader ? 0 : -1;
}

int broker_setup(void **state)
{
	broker->skel = xroce_broker_bpf__open_and_load();
	if (!broker->skel) {
		print_error("cannot load the broker's programs: %s (root needed)\n",
			    strerror(errno));
		return -1;
	}
	for (int c = 0; c < BROKER_CLIENTS; c++)
		if (broker_make_client(&broker->client[c]))
			return -1;
	return 0;
}

int broker_teardown(void **state)
{
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		ring_buffer__free(broker->client[c].reader);
		xroce_bpf__destroy(broker->client[c].skel);
	}
	xroce_broker_bpf__destroy(broker->skel);
	return 0;
}

void broker_put(const struct bpf_map *map, const void *key, const void *value)
{
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY), 0);
}

void broker_put_qp(int client, uint32_t qpn, const struct xroce_qp *qp)
{
	const uint32_t slot = XROCE_QP_SLOT(qpn);
	struct xroce_qp value = *qp;

	value.qpn = qpn;
	broker_put(broker->client[client].skel->maps.xroce_qp, &slot, &value);
}

void broker_clear(const struct bpf_map *map)
{
	const int fd = bpf_map__fd(map);
	uint8_t key[32];

	while (bpf_map_get_next_key(fd, NULL, key) == 0)
		assert_int_equal(bpf_map_delete_elem(fd, key), 0);
}

void broker_put_place(uint32_t place, uint32_t client, uint64_t serial)
{
	const struct xroce_cm_client p = { .client = client,
					   .serial = serial,
					   .by_sockets = place == XROCE_CM_PLACE_MAX };

	broker_put(broker->skel->maps.xroce_cm_client, &place, &p);
}

void broker_put_owner(uint32_t qpn, int client)
{
	const struct xroce_owner owner = { .client = (uint32_t)client, .pid = 1 };

	if (client >= 0)
		broker_put(broker->skel->maps.xroce_owner, &qpn, &owner);
	else
		bpf_map_delete_elem(bpf_map__fd(broker->skel->maps.xroce_owner), &qpn);
}

void broker_put_program(uint32_t client, bool present)
{
	int fd = bpf_program__fd(broker->client[client].skel->progs.xroce_xdp);

	if (present)
		broker_put(broker->skel->maps.xroce_client, &client, &fd);
	else
		bpf_map_delete_elem(bpf_map__fd(broker->skel->maps.xroce_client), &client);
}

static void put_gids(const struct bpf_map *gids, const struct bpf_map *engines)
{
	struct xroce_engine engine = { .pid = 1 };
	const uint32_t zero = 0;

	memcpy(engine.gid, bench_local4, sizeof(engine.gid));
	broker_put(gids, bench_local4, &zero);
	broker_put(gids, bench_local6, &zero);
	broker_put(engines, &zero, &engine);
}

static void put_pkeys(void)
{
	static const uint32_t pkeys[] = { ROCE_DEFAULT_PKEY, BROKER_PKEY, BROKER_PKEY_LIMITED };

	for (uint32_t i = 0; i < sizeof(pkeys) / sizeof(pkeys[0]); i++)
		broker_put(broker->skel->maps.xroce_pkey, &pkeys[i], &i);
}

void broker_reset(const uint8_t peer[16])
{
	put_pkeys();
	put_gids(broker->skel->maps.xroce_gid, broker->skel->maps.xroce_engine);
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		struct xroce_bpf *skel = broker->client[c].skel;
		struct xroce_qp qp = bench_qp(XROCE_RC, bench_local4, peer);
		const uint32_t rc = BROKER_RC(c), ud = BROKER_UD(c);

		put_gids(skel->maps.xroce_gid, skel->maps.xroce_engine);
		broker_put_qp(c, rc, &qp);
		qp = bench_qp(XROCE_UD, NULL, NULL);
		qp.qkey = BROKER_QKEY;
		broker_put_qp(c, ud, &qp);
		broker_put_owner(rc, c);
		broker_put_owner(ud, c);
		broker_put_program((uint32_t)c, true);
		broker_read(c);
	}
}

void broker_read(int client)
{
	broker->client[client].records = 0;
	assert_true(ring_buffer__consume(broker->client[client].reader) >= 0);
}

static struct bench_counts count(const struct bpf_map *drop, const struct bpf_map *rx)
{
	struct bench_counts c;

	bench_sum_percpu(bpf_map__fd(drop), c.drop, sizeof(c.drops));
	bench_sum_percpu(bpf_map__fd(rx), (uint64_t *)&c.rx, sizeof(c.rx));
	return c;
}

struct bench_counts broker_count(void)
{
	return count(broker->skel->maps.xroce_drop, broker->skel->maps.xroce_rx);
}

struct bench_counts broker_count_of(int client)
{
	struct xroce_bpf *skel = broker->client[client].skel;

	return count(skel->maps.xroce_drop, skel->maps.xroce_rx);
}
