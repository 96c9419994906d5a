/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Clients bound to services (user/broker/bindings.c): what overlaps, whose it is, and the keys
 * that requests are looked up by; then the same held against a plain list, at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../user/broker/bindings.h"

#define PORT 0x1060fa0ull
#define BOTH (ASK_IPV4 | ASK_IPV6)
#define IPV4(last) { [10] = 0xff, 0xff, 10, 0, 0, last }
#define IPV6(last) { 0xfd, [15] = last }

static struct bindings b;
static u32 list[3];

static int setup(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		list[i] = BINDINGS_NONE;
	return bindings_make(&b, 16, 0x123456789abcdef);
}

static int teardown(void **state)
{
	bindings_unmake(&b);
	return 0;
}

static int add(u32 client, const struct ask_service *s, u32 keys)
{
	struct binding_keys k = { .num = 0 };
	int err = bindings_add(&b, s, client, &list[client], &k);

	if (!err)
		assert_int_equal(k.num, keys);
	return err;
}

static int drop(u32 client, const struct ask_service *s, u32 keys)
{
	struct binding_keys k = { .num = 0 };
	int err = bindings_remove(&b, s, client, &list[client], &k);

	if (!err)
		assert_int_equal(k.num, keys);
	return err;
}

static void bindings_add__what_is_none(void **state)
{
	static const struct ask_service none[] = {
		{ PORT, { 0 }, 0, 0 },
		{ PORT, { 0 }, 4, 0 },
		{ PORT, { 0 }, BOTH | 0x80000000, 0 },
		{ PORT, IPV4(1), ASK_IPV6, 0 },
		{ PORT, IPV4(1), BOTH, 0 },
		{ PORT, IPV6(1), ASK_IPV4, 0 },
		{ PORT, IPV6(1), BOTH, 0 },
		/* the key of all IPv4 addresses */
		{ PORT, { [10] = 0xff, 0xff }, ASK_IPV4, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_int_equal(add(0, &none[i], 0), -EINVAL);
	assert_int_equal(list[0], BINDINGS_NONE);
}

/* The other client's after the first one's. */
static void bindings_add__overlap(void **state)
{
	static const struct {
		struct ask_service has, wants;
		int err;
	} rows[] = {
		{ { PORT, IPV4(1), ASK_IPV4, 0 }, { PORT, IPV4(1), ASK_IPV4, 0 }, -EADDRINUSE },
		{ { PORT, IPV4(1), ASK_IPV4, 0 }, { PORT, IPV4(2), ASK_IPV4, 0 }, 0 },
		{ { PORT, IPV4(1), ASK_IPV4, 0 }, { PORT + 1, IPV4(1), ASK_IPV4, 0 }, 0 },
		{ { PORT, IPV4(1), ASK_IPV4, 0 },
		  { PORT | 1ull << 32, IPV4(1), ASK_IPV4, 0 }, 0 },
		{ { PORT, IPV4(1), ASK_IPV4, 0 }, { PORT, { 0 }, ASK_IPV4, 0 }, -EADDRINUSE },
		{ { PORT, IPV4(1), ASK_IPV4, 0 }, { PORT, { 0 }, BOTH, 0 }, -EADDRINUSE },
		{ { PORT, IPV4(1), ASK_IPV4, 0 }, { PORT, { 0 }, ASK_IPV6, 0 }, 0 },
		{ { PORT, IPV6(1), ASK_IPV6, 0 }, { PORT, { 0 }, ASK_IPV6, 0 }, -EADDRINUSE },
		{ { PORT, IPV6(1), ASK_IPV6, 0 }, { PORT, { 0 }, ASK_IPV4, 0 }, 0 },
		{ { PORT, IPV6(1), ASK_IPV6, 0 }, { PORT, IPV4(1), ASK_IPV4, 0 }, 0 },
		{ { PORT, { 0 }, ASK_IPV4, 0 }, { PORT, IPV4(9), ASK_IPV4, 0 }, -EADDRINUSE },
		{ { PORT, { 0 }, ASK_IPV4, 0 }, { PORT, IPV6(9), ASK_IPV6, 0 }, 0 },
		{ { PORT, { 0 }, ASK_IPV4, 0 }, { PORT, { 0 }, ASK_IPV6, 0 }, 0 },
		{ { PORT, { 0 }, BOTH, 0 }, { PORT, { 0 }, ASK_IPV6, 0 }, -EADDRINUSE },
		{ { PORT, { 0 }, BOTH, 0 }, { PORT, IPV6(9), ASK_IPV6, 0 }, -EADDRINUSE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const u32 keys = rows[i].wants.families == BOTH ? 2 : 1;
		const u32 had = rows[i].has.families == BOTH ? 2 : 1;

		assert_int_equal(add(0, &rows[i].has, had), 0);
		if (add(1, &rows[i].wants, keys) != rows[i].err)
			fail_msg("row %zu", i);
		/* the other way round it is the same */
		assert_int_equal(drop(0, &rows[i].has, had), 0);
		if (!rows[i].err)
			assert_int_equal(drop(1, &rows[i].wants, keys), 0);
		assert_int_equal(add(1, &rows[i].wants, keys), 0);
		assert_int_equal(add(0, &rows[i].has, had), rows[i].err);
		assert_int_equal(drop(1, &rows[i].wants, keys), 0);
		if (!rows[i].err)
			assert_int_equal(drop(0, &rows[i].has, had), 0);
		assert_int_equal(list[0], BINDINGS_NONE);
		assert_int_equal(list[1], BINDINGS_NONE);
	}
}

/* What one client has may overlap; a key is there while any of its bindings has it. */
static void bindings_add__within_a_client(void **state)
{
	static const struct ask_service v4 = { PORT, { 0 }, ASK_IPV4, 0 };
	static const struct ask_service both = { PORT, { 0 }, BOTH, 0 };
	static const struct ask_service one = { PORT, IPV4(1), ASK_IPV4, 0 };

	assert_int_equal(add(0, &v4, 1), 0);
	assert_int_equal(add(0, &v4, 0), -EEXIST);
	assert_int_equal(add(0, &one, 1), 0);
	/* one of two */
	assert_int_equal(add(0, &both, 1), 0);
	assert_int_equal(drop(0, &v4, 0), 0);
	assert_int_equal(drop(0, &v4, 0), -ENOENT);
	assert_int_equal(add(1, &v4, 1), -EADDRINUSE);
	assert_int_equal(drop(1, &both, 0), -ENOENT);
	assert_int_equal(drop(0, &both, 2), 0);
	assert_int_equal(add(1, &v4, 1), -EADDRINUSE);
	assert_int_equal(drop(0, &one, 1), 0);
	assert_int_equal(add(1, &v4, 1), 0);
}

static void bindings_add__keys(void **state)
{
	static const struct ask_service both = { PORT, { 0 }, BOTH, 0 };
	static const struct ask_service one = { PORT + 1, IPV6(3), ASK_IPV6, 0 };
	static const u8 v4[16] = { [10] = 0xff, 0xff }, v6[16];
	struct binding_keys k;

	assert_int_equal(bindings_add(&b, &both, 0, &list[0], &k), 0);
	assert_int_equal(k.num, 2);
	assert_true(k.key[0].id == PORT && k.key[1].id == PORT);
	assert_memory_equal(k.key[0].address, v4, 16);
	assert_memory_equal(k.key[1].address, v6, 16);
	assert_int_equal(bindings_add(&b, &one, 0, &list[0], &k), 0);
	assert_int_equal(k.num, 1);
	assert_memory_equal(k.key[0].address, one.address, 16);
	assert_true(bindings_pop(&b, &list[0], &k));
	assert_true(k.num == 1 && k.key[0].id == PORT + 1);
	assert_true(bindings_pop(&b, &list[0], &k));
	assert_true(k.num == 2 && k.key[1].id == PORT);
	assert_false(bindings_pop(&b, &list[0], &k));
}

static void bindings_add__no_more(void **state)
{
	struct ask_service s = { PORT, { 0 }, ASK_IPV4, 0 };

	for (u32 i = 0; i < 16; i++, s.id++)
		assert_int_equal(add(i % 3, &s, 1), 0);
	assert_int_equal(add(0, &s, 1), -ENOSPC);
	s.id--;
	assert_int_equal(drop(0, &s, 1), 0);
	s.id++;
	assert_int_equal(add(1, &s, 1), 0);
}

static void binding_is_privileged__ports(void **state)
{
	static const struct {
		u64 id;
		bool privileged;
	} rows[] = {
		{ 0x1060000, true },	  { 0x1060000 + 1023, true }, { 0x1060000 + 1024, false },
		{ 0x1110000 + 7, true },  { 0x13f0000 + 7, true },    { 0x20000 + 7, true },
		{ 0x2060000 + 7, false }, { 0x30000 + 7, false },     { 7, false },
		{ 0x8000000001060007, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct ask_service s = { rows[i].id, { 0 }, ASK_IPV4, 0 };

		assert_int_equal(binding_is_privileged(&s, 1024), rows[i].privileged);
		assert_false(binding_is_privileged(&s, 0));
	}
}

/* ---- at random, against a plain list ---- */

static u32 seed;

static u32 draw(u32 below)
{
	seed = seed * 1664525u + 1013904223u;
	return (u32)((u64)seed * below >> 32);
}

static struct model {
	struct ask_service s;
	u32 client;
	bool used;
} model[16];

static struct ask_service random_service(void)
{
	struct ask_service s = { .id = PORT + draw(3) };

	switch (draw(3)) {
	case 0:
		s.families = 1 + draw(3);
		break;
	case 1:
		s.families = ASK_IPV4;
		s.address[10] = s.address[11] = 0xff;
		s.address[15] = (u8)(1 + draw(2));
		break;
	default:
		s.families = ASK_IPV6;
		s.address[0] = 0xfd;
		s.address[15] = (u8)draw(2);
	}
	return s;
}

static bool model_any(const struct ask_service *s)
{
	static const u8 zero[16];

	return !memcmp(s->address, zero, 16);
}

static int model_add(const struct ask_service *s, u32 client)
{
	struct model *unused = NULL;
	bool has = false;

	for (size_t i = 0; i < ARRAY_SIZE(model); i++) {
		struct model *m = &model[i];
		const bool same = m->s.id == s->id && !memcmp(m->s.address, s->address, 16);

		if (!m->used) {
			unused = m;
			continue;
		}
		if (m->client != client && m->s.id == s->id && m->s.families & s->families &&
		    (same || model_any(&m->s) || model_any(s)))
			return -EADDRINUSE;
		has |= m->client == client && same && m->s.families == s->families;
	}
	if (has)
		return -EEXIST;
	if (!unused)
		return -ENOSPC;
	*unused = (struct model){ *s, client, true };
	return 0;
}

static int model_remove(const struct ask_service *s, u32 client)
{
	for (size_t i = 0; i < ARRAY_SIZE(model); i++)
		if (model[i].used && model[i].client == client &&
		    !memcmp(&model[i].s, s, sizeof(*s))) {
			model[i].used = false;
			return 0;
		}
	return -ENOENT;
}

/* The owner of a key, by the reported changes; 3: none. */
static struct {
	struct xroce_service_key key;
	u32 client;
} told[64];

/* The entry of a key, or an unused one. */
static u32 told_at(const struct xroce_service_key *key)
{
	u32 unused = 0;

	for (u32 n = 0; n < ARRAY_SIZE(told); n++) {
		if (told[n].client != 3 && !memcmp(&told[n].key, key, sizeof(*key)))
			return n;
		if (told[n].client == 3)
			unused = n;
	}
	return unused;
}

static void tell(const struct binding_keys *k, u32 client, bool begins)
{
	for (u32 i = 0; i < k->num; i++) {
		const u32 at = told_at(&k->key[i]);

		assert_int_equal(told[at].client, begins ? 3 : client);
		told[at].key = k->key[i];
		told[at].client = begins ? client : 3;
	}
}

static void check_told(void)
{
	u32 keys = 0, has = 0;

	for (size_t n = 0; n < ARRAY_SIZE(told); n++) {
		const struct xroce_service_key *key = &told[n].key;
		bool found = false;

		if (told[n].client == 3)
			continue;
		has++;
		for (size_t i = 0; i < ARRAY_SIZE(model); i++) {
			const struct ask_service *s = &model[i].s;
			const bool v4 = key->address[10] == 0xff;

			found |= model[i].used && model[i].client == told[n].client &&
				 s->id == key->id && s->families & (v4 ? ASK_IPV4 : ASK_IPV6) &&
				 (model_any(s) ? !key->address[15] && !key->address[0] :
						 !memcmp(s->address, key->address, 16));
		}
		assert_true(found);
	}
	for (size_t i = 0; i < ARRAY_SIZE(model); i++)
		keys += model[i].used;
	assert_true((keys > 0) == (has > 0) && has <= 2 * keys);
}

static void bindings__random(void **state)
{
	u32 results[200] = { 0 };

	for (u32 run = 1; run <= 200; run++) {
		seed = run;
		memset(model, 0, sizeof(model));
		for (size_t i = 0; i < ARRAY_SIZE(told); i++)
			told[i].client = 3;
		for (u32 n = 0; n < 300; n++) {
			const struct ask_service s = random_service();
			const u32 client = draw(3);
			struct binding_keys k = { .num = 0 };
			int err;

			if (draw(40) == 0) {
				while (bindings_pop(&b, &list[client], &k))
					tell(&k, client, false);
				for (size_t i = 0; i < ARRAY_SIZE(model); i++)
					model[i].used &= model[i].client != client;
			} else if (draw(2)) {
				err = bindings_add(&b, &s, client, &list[client], &k);
				assert_int_equal(err, model_add(&s, client));
				results[-err]++;
				if (!err)
					tell(&k, client, true);
			} else {
				err = bindings_remove(&b, &s, client, &list[client], &k);
				assert_int_equal(err, model_remove(&s, client));
				if (!err)
					tell(&k, client, false);
			}
			check_told();
		}
		for (u32 client = 0; client < 3; client++) {
			struct binding_keys k;

			while (bindings_pop(&b, &list[client], &k))
				tell(&k, client, false);
		}
		memset(model, 0, sizeof(model));
		check_told();
	}
	assert_true(results[0] > 1000 && results[EADDRINUSE] > 1000 && results[EEXIST] > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bindings_add__what_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(bindings_add__overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(bindings_add__within_a_client, setup, teardown),
		cmocka_unit_test_setup_teardown(bindings_add__keys, setup, teardown),
		cmocka_unit_test_setup_teardown(bindings_add__no_more, setup, teardown),
		cmocka_unit_test(binding_is_privileged__ports),
		cmocka_unit_test_setup_teardown(bindings__random, setup, teardown),
	};

	return cmocka_run_group_tests_name("bindings", tests, NULL, NULL);
}
