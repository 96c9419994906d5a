/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* ibv_event_type_str(3): the texts for events, node types and port states. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "man.h"

#define ENUM_MAX 64

/*
 * "a constant string that describes the enum value passed": each value that verbs.h knows has its
 * own, which stays where it is; others have one together
 */
static bool describes(const char *(*name)(int value), const int *values, int n)
{
	const char *unknown = name(ENUM_MAX);

	MUST(unknown && *unknown);
	MUST(!strcmp(name(INT32_MAX), unknown) && !strcmp(name(INT32_MIN), unknown));
	for (int i = 0; i < n; i++) {
		const char *s = name(values[i]);

		MUST(s && *s && s == name(values[i]));
		MUST(strcmp(s, unknown) != 0);
		for (int k = 0; k < i; k++)
			MUST(strcmp(s, name(values[k])) != 0);
	}
	return true;
}

static const char *event_name(int value)
{
	return ibv_event_type_str((enum ibv_event_type)value);
}

static const char *node_name(int value)
{
	return ibv_node_type_str((enum ibv_node_type)value);
}

static const char *port_name(int value)
{
	return ibv_port_state_str((enum ibv_port_state)value);
}

static bool events(void)
{
	static const int values[] = { IBV_EVENT_CQ_ERR,
				      IBV_EVENT_QP_FATAL,
				      IBV_EVENT_QP_REQ_ERR,
				      IBV_EVENT_QP_ACCESS_ERR,
				      IBV_EVENT_COMM_EST,
				      IBV_EVENT_SQ_DRAINED,
				      IBV_EVENT_PATH_MIG,
				      IBV_EVENT_PATH_MIG_ERR,
				      IBV_EVENT_DEVICE_FATAL,
				      IBV_EVENT_PORT_ACTIVE,
				      IBV_EVENT_PORT_ERR,
				      IBV_EVENT_LID_CHANGE,
				      IBV_EVENT_PKEY_CHANGE,
				      IBV_EVENT_SM_CHANGE,
				      IBV_EVENT_SRQ_ERR,
				      IBV_EVENT_SRQ_LIMIT_REACHED,
				      IBV_EVENT_QP_LAST_WQE_REACHED,
				      IBV_EVENT_CLIENT_REREGISTER,
				      IBV_EVENT_GID_CHANGE,
				      IBV_EVENT_WQ_FATAL };

	return describes(event_name, values, sizeof(values) / sizeof(values[0]));
}

static bool node_types(void)
{
	static const int values[] = { IBV_NODE_CA,	   IBV_NODE_SWITCH, IBV_NODE_ROUTER,
				      IBV_NODE_RNIC,	   IBV_NODE_USNIC,  IBV_NODE_USNIC_UDP,
				      IBV_NODE_UNSPECIFIED };

	return describes(node_name, values, sizeof(values) / sizeof(values[0]));
}

static bool port_states(void)
{
	static const int values[] = { IBV_PORT_NOP,   IBV_PORT_DOWN,   IBV_PORT_INIT,
				      IBV_PORT_ARMED, IBV_PORT_ACTIVE, IBV_PORT_ACTIVE_DEFER };

	return describes(port_name, values, sizeof(values) / sizeof(values[0]));
}

/* A private symbol of rdma-core 53 and later, which verbs.h of 44 does not declare. */
static const char *(*opcode_str)(int value);

static bool opcodes(void)
{
	static const int values[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
				      IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ,
				      IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
				      IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_SEND_WITH_INV,
				      IBV_WR_TSO, IBV_WR_DRIVER1, 14, IBV_WR_ATOMIC_WRITE };

	opcode_str = dlvsym(RTLD_DEFAULT, "ibv_wr_opcode_str", "IBVERBS_PRIVATE_34");
	MUST(opcode_str);
	MUST(!strcmp(opcode_str(IBV_WR_RDMA_WRITE), "rdma-write"));
	MUST(!strcmp(opcode_str(IBV_WR_ATOMIC_FETCH_AND_ADD), "atomic-fetch-and-add"));
	MUST(!strcmp(opcode_str(12), "unknown"));
	return describes(opcode_str, values, sizeof(values) / sizeof(values[0]));
}

const struct test_case man_cases[] = {
	CASE(events),
	CASE(node_types),
	CASE(port_states),
	CASE(opcodes),
	{ 0 },
};
