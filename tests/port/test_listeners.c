/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* The listeners of rdma_cm that a process shows in its xroce_engine (user/port/services.c). */
#include "../unit/unit.h"

#include "../../user/port/port_object.h"

#define BOTH (ASK_IPV4 | ASK_IPV6)

static struct xroce_engine engine;
static struct port port = { .made.maps.engine = &engine, .listeners = PTHREAD_MUTEX_INITIALIZER };

static int setup(void **state)
{
	memset(&engine, 0, sizeof(engine));
	return 0;
}

static struct ask_service service(u64 id, u8 last, u32 families)
{
	struct ask_service s = { .id = id, .families = families };

	s.address[15] = last;
	return s;
}

static void show(u64 id, u8 last, u32 families)
{
	const struct ask_service s = service(id, last, families);

	assert_int_equal(port_show_listener(&port, &s), 0);
}

static void hide(u64 id, u8 last, u32 families)
{
	const struct ask_service s = service(id, last, families);

	assert_int_equal(port_hide_listener(&port, &s), 0);
}

static void need(u32 at, u64 id, u8 last, u32 families)
{
	const struct ask_service s = service(id, last, families);

	assert_int_equal(engine.listener[at].service, id);
	assert_memory_equal(engine.listener[at].address, s.address, sizeof(s.address));
	assert_int_equal(engine.listener[at].families, families);
}

static void listeners__shown_and_hidden(void **state)
{
	show(7, 1, ASK_IPV6);
	show(7, 0, BOTH);
	show(7, 2, ASK_IPV6);
	assert_int_equal(engine.listeners, 3);
	need(0, 7, 1, ASK_IPV6);
	need(1, 7, 0, BOTH);
	need(2, 7, 2, ASK_IPV6);
	/* that one and no other */
	hide(7, 0, BOTH);
	assert_int_equal(engine.listeners, 2);
	assert_int_equal(engine.listener[1].families, 0);
	need(0, 7, 1, ASK_IPV6);
	need(2, 7, 2, ASK_IPV6);
	show(8, 0, ASK_IPV4);
	need(1, 8, 0, ASK_IPV4);
	/* of the same service and address the families tell two apart */
	show(8, 0, ASK_IPV6);
	hide(8, 0, ASK_IPV6);
	need(1, 8, 0, ASK_IPV4);
	assert_int_equal(engine.listener[3].families, 0);
}

static void listeners__more_than_there_is_room(void **state)
{
	for (u32 i = 0; i < XROCE_LISTENERS + 2; i++)
		show(i, 1, ASK_IPV6);
	assert_int_equal(engine.listeners, XROCE_LISTENERS + 2);
	need(XROCE_LISTENERS - 1, XROCE_LISTENERS - 1, 1, ASK_IPV6);
	/* one without room takes no other's */
	hide(XROCE_LISTENERS, 1, ASK_IPV6);
	assert_int_equal(engine.listeners, XROCE_LISTENERS + 1);
	for (u32 i = 0; i < XROCE_LISTENERS; i++)
		need(i, i, 1, ASK_IPV6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(listeners__shown_and_hidden, setup),
		cmocka_unit_test_setup(listeners__more_than_there_is_room, setup),
	};

	return cmocka_run_group_tests_name("listeners", tests, NULL, NULL);
}
