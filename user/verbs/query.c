/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Capabilities and state of the device: device and port attributes, GID and P_Key tables. Every
 * query reads the kernel's current state. Only working features are announced.
 */
#include <stdio.h>
#include <time.h>

#include <xroce/version.h>

#include "../os/netdev.h"
#include "objects.h"

/* device_cap_flags_ex bits of the kernel's ABI; verbs.h has no names for them. */
#define CAP_FLUSH_GLOBAL (1ull << 38)
#define CAP_ATOMIC_WRITE (1ull << 40)

/* struct ibv_device_attr_ex's last member; of rdma-core 33 it is padding. */
#define PORT_CNT_EX_AT (offsetof(struct ibv_device_attr_ex, xrc_odp_caps) + sizeof(u32))
_Static_assert(PORT_CNT_EX_AT + sizeof(u32) <= sizeof(struct ibv_device_attr_ex), "padding");

/* enum ibv_rate, not in rdma-core 33 */
#define RATE_800_GBPS  ((enum ibv_rate)23)
#define RATE_1200_GBPS ((enum ibv_rate)24)

/*
 * The port's P_Keys, whether it has raw packet QPs (raw.md), and whether it is one by UDP sockets;
 * or those of the port that would be created now.
 */
struct port_kind {
	struct pkey_table pkeys;
	bool has_raw;
	bool is_udp;
};

/* Returns 0 or a positive errno. */
static int context_kind(struct vcontext *ctx, struct port_kind *kind)
{
	const struct port *port = context_made_port(ctx);
	struct ask_kind asked;

	if (context_interface_gone(&ctx->v.context))
		return EIO;
	if (port) {
		*kind = (struct port_kind){ port_info(port)->pkeys, !port_info(port)->shared,
					    port_info(port)->udp_frames };
	} else {
		port_ask_kind(&ctx->dev->nd, &asked);
		*kind = (struct port_kind){ asked.pkeys, asked.sole, asked.udp };
	}
	return 0;
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct port_kind kind;
	int err = context_kind(to_vcontext(context), &kind);

	if (verb_fails(context, CALL_ibv_query_device))
		return verb_report(errno);
	if (err)
		return verb_report(err);
	memset(attr, 0, sizeof(*attr));
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", XROCE_VERSION);
	attr->node_guid = ibv_get_device_guid(context->device);
	attr->sys_image_guid = attr->node_guid;
	attr->max_mr_size = UINT64_MAX;
	attr->page_size_cap = 0xfffff000;
	attr->vendor_id = 0xffffff; /* no OUI, as in the kernel's software devices */
	attr->max_qp = ENGINE_MAX_QP;
	attr->max_qp_wr = QP_MAX_WR;
	attr->device_cap_flags = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
				 IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |
				 IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT |
				 IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW |
				 IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	attr->max_sge = QP_MAX_SEND_SGE;
	attr->max_sge_rd = QP_MAX_SEND_SGE;
	attr->max_cq = VERBS_MAX_CQ;
	attr->max_cqe = VERBS_MAX_CQE;
	attr->max_mr = VERBS_MAX_MR;
	attr->max_mw = VERBS_MAX_MW;
	attr->max_pd = VERBS_MAX_PD;
	attr->max_qp_rd_atom = QP_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = QP_MAX_RD_ATOMIC * ENGINE_MAX_QP;
	attr->max_qp_init_rd_atom = QP_MAX_RD_ATOMIC;
	attr->atomic_cap = IBV_ATOMIC_HCA;
	attr->max_mcast_grp = GROUP_MAX;
	attr->max_mcast_qp_attach = GROUP_MEMBERS_MAX;
	attr->max_total_mcast_qp_attach = GROUP_MAX * GROUP_MEMBERS_MAX;
	attr->max_ah = VERBS_MAX_AH;
	attr->max_srq = VERBS_MAX_SRQ;
	attr->max_srq_wr = VERBS_MAX_SRQ_WR;
	attr->max_srq_sge = RQ_MAX_SGE;
	attr->max_pkeys = (u16)kind.pkeys.num;
	attr->local_ca_ack_delay = 15;
	attr->phys_port_cnt = 1;
	if (kind.has_raw) {
		attr->device_cap_flags |= (unsigned int)IBV_DEVICE_MANAGED_FLOW_STEERING;
		attr->max_raw_ethy_qp = ENGINE_MAX_QP;
	}
	return 0;
}

static void query_rss(struct ibv_device_attr_ex *attr)
{
	attr->rss_caps.supported_qpts = 1 << IBV_QPT_RAW_PACKET;
	attr->rss_caps.max_rwq_indirection_tables = VERBS_MAX_TABLE;
	attr->rss_caps.max_rwq_indirection_table_size = RSS_TABLE_MAX;
	attr->rss_caps.rx_hash_fields_mask = RSS_FIELDS;
	attr->rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
	attr->max_wq_type_rq = ENGINE_MAX_QP;
}

int query_device_ex_op(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t size)
{
	const u32 phys_port_cnt_ex = 1; /* the member after xrc_odp_caps, not in rdma-core 33 */
	struct ibv_device_attr_ex full = { 0 };
	int err;

	if (verb_fails(context, CALL_ibv_query_device_ex))
		return verb_report(errno);
	if ((input && input->comp_mask) || size < sizeof(attr->orig_attr))
		return verb_report(EINVAL);
	err = ibv_query_device(context, &full.orig_attr);
	if (err)
		return err;
	full.device_cap_flags_ex =
		full.orig_attr.device_cap_flags | CAP_FLUSH_GLOBAL | CAP_ATOMIC_WRITE;
	full.completion_timestamp_mask = UINT64_MAX;
	full.hca_core_clock = 1000000; /* kHz: completion times are in nanoseconds */
	odp_query_caps(&full);
	full.tm_caps.max_rndv_hdr_size = TAG_MAX_RENDEZVOUS_BYTES;
	full.tm_caps.max_num_tags = TAG_MAX_TAGS;
	full.tm_caps.flags = IBV_TM_CAP_RC;
	full.tm_caps.max_ops = TAG_MAX_OPS;
	full.tm_caps.max_sge = TAG_MAX_SGE;
	if (full.orig_attr.max_raw_ethy_qp)
		query_rss(&full);
	full.packet_pacing_caps.qp_rate_limit_min = QP_RATE_MIN;
	full.packet_pacing_caps.qp_rate_limit_max = QP_RATE_MAX;
	full.packet_pacing_caps.supported_qpts = 1 << IBV_QPT_RC | 1 << IBV_QPT_UC |
						 1 << IBV_QPT_UD | 1 << IBV_QPT_XRC_SEND;
	full.cq_mod_caps.max_cq_count = UINT16_MAX;
	full.cq_mod_caps.max_cq_period = UINT16_MAX;
	full.max_dm_size = VERBS_MAX_DM;
	memcpy((u8 *)&full + PORT_CNT_EX_AT, &phys_port_cnt_ex, sizeof(phys_port_cnt_ex));
	memset(attr, 0, size);
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

/* The clock of completion timestamps. */
int query_rt_values_op(struct ibv_context *context, struct ibv_values_ex *values)
{
	if (verb_fails(context, CALL_ibv_query_rt_values_ex))
		return verb_report(errno);
	if (values->comp_mask & ~(u32)IBV_VALUES_MASK_RAW_CLOCK)
		return verb_report(EINVAL);
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
		clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
	return 0;
}

u32 device_path_mtu(struct vcontext *ctx, const struct netdev *nd)
{
	const struct port *port = context_made_port(ctx);
	bool multibuffer;

	multibuffer = port ? port_info(port)->multibuffer : netdev_kernel_multibuffer();
	return netdev_path_mtu(nd->mtu, multibuffer);
}

enum ibv_mtu mtu_to_enum(u32 bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && (256u << mtu) <= bytes)
		mtu++;
	return mtu;
}

/* 16-bit counters as in PortInfo, which stop at the maximum. 0 before there is a port. */
static void query_violations(struct vcontext *ctx, struct ibv_port_attr *attr)
{
	const struct port *port = context_made_port(ctx);
	struct port_violations v;

	if (!port)
		return;
	port_violations(port, &v);
	attr->bad_pkey_cntr = v.pkey < UINT16_MAX ? (u32)v.pkey : UINT16_MAX;
	attr->qkey_viol_cntr = v.qkey < UINT16_MAX ? (u32)v.qkey : UINT16_MAX;
}

/* No XDP program limits the packets of a port by UDP sockets. */
static u32 query_path_mtu(struct vcontext *ctx, const struct port_kind *kind,
			  const struct netdev *nd)
{
	return kind->is_udp ? netdev_path_mtu(nd->mtu, true) :
			      tx_preferred_path_mtu(nd, device_path_mtu(ctx, nd));
}

int query_port_op(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		  size_t len)
{
	struct vcontext *ctx = to_vcontext(context);
	struct ibv_port_attr full = { 0 };
	struct port_kind kind;
	struct port_speed speed;
	struct netdev nd;
	int err;

	if (verb_fails(context, CALL_ibv_query_port))
		return verb_report(errno);
	err = port_num == VERBS_PORT ? context_netdev_link(context, &nd) : EINVAL;
	if (!err)
		err = context_kind(ctx, &kind);
	if (err)
		return verb_report(err);
	full.state = nd.is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	full.max_mtu = IBV_MTU_4096;
	full.active_mtu = mtu_to_enum(query_path_mtu(ctx, &kind, &nd));
	full.gid_tbl_len = XROCE_MAX_GID;
	full.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	full.max_msg_sz = VERBS_MAX_MESSAGE;
	full.pkey_tbl_len = (u16)kind.pkeys.num;
	query_violations(ctx, &full);
	full.max_vl_num = 1;
	full.phys_state = netdev_phys_state(&nd);
	full.link_layer = IBV_LINK_LAYER_ETHERNET;
	full.flags = IBV_QPF_GRH_REQUIRED;
	speed = netdev_port_speed(&nd);
	full.active_width = speed.width;
	full.active_speed = speed.speed;
	memset(attr, 0, len);
	memcpy(attr, &full, len < sizeof(full) ? len : sizeof(full));
	return 0;
}

/* The struct of old programs ends after link_layer and flags: 48 bytes. */
EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
			  struct _compat_ibv_port_attr *attr)
{
	return query_port_op(context, port_num, (struct ibv_port_attr *)attr,
			     offsetof(struct ibv_port_attr, port_cap_flags2));
}

int query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed)
{
	struct netdev nd;
	int err = port_num == VERBS_PORT ? context_netdev_link(context, &nd) : EINVAL;

	if (err)
		return verb_report(err);
	*port_speed = (nd.speed_mbps ? nd.speed_mbps : netdev_port_speed(&nd).mbps) / 100;
	return 0;
}

/* ---- GIDs ---- */

/* Returns 0 or a positive errno: EINVAL outside the table, ENODATA for an empty slot. */
static int gid_entry(struct ibv_context *context, u32 port_num, u32 index,
		     struct ibv_gid_entry *entry)
{
	struct netdev nd;
	int err;

	if (port_num != VERBS_PORT || index >= XROCE_MAX_GID)
		return EINVAL;
	err = context_netdev(context, &nd);
	if (err)
		return err;
	if (index >= nd.num_gids)
		return ENODATA;
	*entry = (struct ibv_gid_entry){ .gid_index = index,
					 .port_num = port_num,
					 .gid_type = IBV_GID_TYPE_ROCE_V2,
					 .ndev_ifindex = nd.ifindex };
	memcpy(entry->gid.raw, nd.gid[index].gid.raw, sizeof(entry->gid.raw));
	return 0;
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
			 union ibv_gid *gid)
{
	struct ibv_gid_entry entry = { 0 };
	int err = gid_entry(context, port_num, (u32)index, &entry);

	if (verb_fails(context, CALL_ibv_query_gid))
		return -1;
	/* An empty slot is not an error here: it reads as zeros. */
	if (err && err != ENODATA)
		return verb_fail_int(err);
	*gid = entry.gid;
	return 0;
}

/* The kernel's answers hold all fields of an entry and a 16-bit size. */
static bool entry_size_ok(size_t size)
{
	return size >= offsetof(struct ibv_gid_entry, ndev_ifindex) + sizeof(u32) &&
	       size <= UINT16_MAX;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
			     struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry full;
	int err;

	if (verb_fails(context, CALL_ibv_query_gid_ex))
		return verb_report(errno);
	err = flags			    ? EOPNOTSUPP :
	      !entry_size_ok(entry_size) ? EINVAL :
					   gid_entry(context, port_num, gid_index, &full);
	if (err)
		return verb_report(err);
	memset(entry, 0, entry_size);
	memcpy(entry, &full, entry_size < sizeof(full) ? entry_size : sizeof(full));
	return 0;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
				    size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct netdev nd;
	int err;

	if (verb_fails(context, CALL_ibv_query_gid_table))
		return -errno;
	if (flags)
		return -EOPNOTSUPP;
	if (!max_entries || !entry_size_ok(entry_size))
		return -EINVAL;
	err = context_netdev(context, &nd);
	if (err)
		return -err;
	if (nd.num_gids > max_entries)
		return -EINVAL;
	for (u32 i = 0; i < nd.num_gids; i++) {
		struct ibv_gid_entry full = { .gid_index = i,
					      .port_num = VERBS_PORT,
					      .gid_type = IBV_GID_TYPE_ROCE_V2,
					      .ndev_ifindex = nd.ifindex };
		void *at = (u8 *)entries + i * entry_size;

		memcpy(full.gid.raw, nd.gid[i].gid.raw, sizeof(full.gid.raw));
		memset(at, 0, entry_size);
		memcpy(at, &full, entry_size < sizeof(full) ? entry_size : sizeof(full));
	}
	return nd.num_gids;
}

int query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		   enum gid_type_sysfs *type)
{
	struct ibv_gid_entry entry;
	int err = gid_entry(context, port_num, index, &entry);

	/* As in sysfs, an empty slot has type 0. */
	if (err && err != ENODATA)
		return verb_fail_int(err);
	*type = err ? GID_TYPE_SYSFS_IB_ROCE_V1 : GID_TYPE_SYSFS_ROCE_V2;
	return 0;
}

/* ---- P_Keys ---- */

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	struct port_kind kind;
	int err = port_num == VERBS_PORT ? context_kind(to_vcontext(context), &kind) : EINVAL;

	if (verb_fails(context, CALL_ibv_query_pkey))
		return -1;
	if (!err && (index < 0 || (u32)index >= kind.pkeys.num))
		err = EINVAL;
	if (err)
		return verb_fail_int(err);
	*pkey = htobe16(kind.pkeys.key[index]);
	return 0;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	struct port_kind kind;
	int err = port_num == VERBS_PORT ? context_kind(to_vcontext(context), &kind) : EINVAL;
	const int index = err ? -1 : pkey_table_find(&kind.pkeys, be16toh(pkey));

	if (verb_fails(context, CALL_ibv_get_pkey_index))
		return -1;
	return index < 0 ? verb_fail_int(err ? err : EINVAL) : index;
}

/* ---- texts ---- */

/*
 * Names of enum values, for messages: the texts that programs and scripts expect from the stock
 * library. A value that is not in verbs.h is "unknown".
 */

#define NAME(table, value)                                                                         \
	((u32)(value) < ARRAY_SIZE(table) && (table)[value] ? (table)[value] : "unknown")

EXPORT const char *ibv_node_type_str(enum ibv_node_type node_type)
{
	static const char *const names[] = {
		[IBV_NODE_CA] = "InfiniBand channel adapter",
		[IBV_NODE_SWITCH] = "InfiniBand switch",
		[IBV_NODE_ROUTER] = "InfiniBand router",
		[IBV_NODE_RNIC] = "iWARP NIC",
		[IBV_NODE_USNIC] = "usNIC",
		[IBV_NODE_USNIC_UDP] = "usNIC UDP",
		[IBV_NODE_UNSPECIFIED] = "unspecified",
	};

	return NAME(names, node_type);
}

EXPORT const char *ibv_port_state_str(enum ibv_port_state port_state)
{
	static const char *const names[] = {
		[IBV_PORT_NOP] = "no state change (NOP)",
		[IBV_PORT_DOWN] = "down",
		[IBV_PORT_INIT] = "init",
		[IBV_PORT_ARMED] = "armed",
		[IBV_PORT_ACTIVE] = "active",
		[IBV_PORT_ACTIVE_DEFER] = "active defer",
	};

	return NAME(names, port_state);
}

EXPORT const char *ibv_event_type_str(enum ibv_event_type event)
{
	static const char *const names[] = {
		[IBV_EVENT_CQ_ERR] = "CQ error",
		[IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
		[IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
		[IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
		[IBV_EVENT_COMM_EST] = "communication established",
		[IBV_EVENT_SQ_DRAINED] = "send queue drained",
		[IBV_EVENT_PATH_MIG] = "path migrated",
		[IBV_EVENT_PATH_MIG_ERR] = "path migration request error",
		[IBV_EVENT_DEVICE_FATAL] = "local catastrophic error",
		[IBV_EVENT_PORT_ACTIVE] = "port active",
		[IBV_EVENT_PORT_ERR] = "port error",
		[IBV_EVENT_LID_CHANGE] = "LID change",
		[IBV_EVENT_PKEY_CHANGE] = "P_Key change",
		[IBV_EVENT_SM_CHANGE] = "SM change",
		[IBV_EVENT_SRQ_ERR] = "SRQ catastrophic error",
		[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
		[IBV_EVENT_CLIENT_REREGISTER] = "client reregistration",
		[IBV_EVENT_GID_CHANGE] = "GID table change",
		[IBV_EVENT_WQ_FATAL] = "WQ fatal",
	};

	return NAME(names, event);
}

EXPORT const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
		[IBV_WC_MW_BIND_ERR] = "memory management operation error",
		[IBV_WC_BAD_RESP_ERR] = "bad response error",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
		[IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
		[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[IBV_WC_REM_ABORT_ERR] = "aborted error",
		[IBV_WC_INV_EECN_ERR] = "invalid EE context number",
		[IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout error",
		[IBV_WC_GENERAL_ERR] = "general error",
		[IBV_WC_TM_ERR] = "TM error",
		[IBV_WC_TM_RNDV_INCOMPLETE] = "TM software rendezvous",
	};

	return NAME(names, status);
}

const char *wr_opcode_str(enum ibv_wr_opcode opcode)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "rdma-write",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "rdma-write-with-imm",
		[IBV_WR_SEND] = "send",
		[IBV_WR_SEND_WITH_IMM] = "send-with-imm",
		[IBV_WR_RDMA_READ] = "rdma-read",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "atomic-cmp-and-swp",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "atomic-fetch-and-add",
		[IBV_WR_LOCAL_INV] = "local-inv",
		[IBV_WR_BIND_MW] = "bind-mw",
		[IBV_WR_SEND_WITH_INV] = "send-with-inv",
		[IBV_WR_TSO] = "tso",
		[IBV_WR_DRIVER1] = "driver1",
		/* not in the headers of older rdma-core */
		[WR_FLUSH] = "flush",
		[WR_ATOMIC_WRITE] = "atomic-write",
	};

	return NAME(names, opcode);
}

/*
 * Conversions of enum ibv_rate to multiples of 2.5 Gbit/s and to Mbit/s, ibv_rate_to_mbps(3) and
 * related calls. Unknown values become IBV_RATE_MAX in one direction and -1 in the other.
 */

static const struct {
	enum ibv_rate rate;
	int mult; /* of 2.5 Gbit/s, rounded as in InfiniBand's lane rates */
	int mbps; /* signalling rate */
} rates[] = {
	{ IBV_RATE_2_5_GBPS, 1, 2500 },	      { IBV_RATE_5_GBPS, 2, 5000 },
	{ IBV_RATE_10_GBPS, 4, 10000 },	      { IBV_RATE_20_GBPS, 8, 20000 },
	{ IBV_RATE_30_GBPS, 12, 30000 },      { IBV_RATE_40_GBPS, 16, 40000 },
	{ IBV_RATE_60_GBPS, 24, 60000 },      { IBV_RATE_80_GBPS, 32, 80000 },
	{ IBV_RATE_120_GBPS, 48, 120000 },    { IBV_RATE_14_GBPS, 6, 14062 },
	{ IBV_RATE_56_GBPS, 22, 56250 },      { IBV_RATE_112_GBPS, 45, 112500 },
	{ IBV_RATE_168_GBPS, 67, 168750 },    { IBV_RATE_25_GBPS, 10, 25781 },
	{ IBV_RATE_100_GBPS, 40, 103125 },    { IBV_RATE_200_GBPS, 80, 206250 },
	{ IBV_RATE_300_GBPS, 120, 309375 },   { IBV_RATE_28_GBPS, 11, 28125 },
	{ IBV_RATE_50_GBPS, 20, 53125 },      { IBV_RATE_400_GBPS, 160, 425000 },
	{ IBV_RATE_600_GBPS, 240, 637500 },   { RATE_800_GBPS, 320, 850000 },
	{ RATE_1200_GBPS, 480, 1275000 },
};

EXPORT int ibv_rate_to_mult(enum ibv_rate rate)
{
	for (u32 i = 0; i < ARRAY_SIZE(rates); i++)
		if (rates[i].rate == rate)
			return rates[i].mult;
	return -1;
}

EXPORT enum ibv_rate mult_to_ibv_rate(int mult)
{
	for (u32 i = 0; i < ARRAY_SIZE(rates); i++)
		if (rates[i].mult == mult)
			return rates[i].rate;
	return IBV_RATE_MAX;
}

EXPORT int ibv_rate_to_mbps(enum ibv_rate rate)
{
	for (u32 i = 0; i < ARRAY_SIZE(rates); i++)
		if (rates[i].rate == rate)
			return rates[i].mbps;
	return -1;
}

EXPORT enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	for (u32 i = 0; i < ARRAY_SIZE(rates); i++)
		if (rates[i].mbps == mbps)
			return rates[i].rate;
	return IBV_RATE_MAX;
}
