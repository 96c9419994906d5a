/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The XDP program against what a real RoCEv2 peer sent: every packet of every capture, whole and
 * cut at every length. What is expected comes from decode.txt and from the addresses in the frame,
 * never from the code under test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "bench.h"
#include "golden.h"

#define L3 14

static struct golden golden;
static char what[128];

static uint64_t field(const struct golden_packet *p, const char *name, int base, uint64_t absent)
{
	uint64_t v = absent;

	golden_field(p, name, base, &v);
	return v;
}

static void addresses(const struct golden_packet *p, uint8_t src[16], uint8_t dst[16])
{
	const uint8_t *ip = p->frame + L3;

	memset(src, 0, 16);
	memset(dst, 0, 16);
	if (golden_is_ipv6(p)) {
		memcpy(src, ip + 8, 16);
		memcpy(dst, ip + 24, 16);
	} else {
		src[10] = src[11] = dst[10] = dst[11] = 0xff;
		memcpy(src + 12, ip + 12, 4);
		memcpy(dst + 12, ip + 16, 4);
	}
}

/* The QP that the packet was sent to; returns its QPN. */
static uint32_t install_qp(const struct golden_packet *p)
{
	uint32_t qpn = field(p, "qp", 16, 0);
	uint8_t src[16], dst[16];
	struct xroce_qp qp;

	addresses(p, src, dst);
	qp = bench_qp(golden_opcode(p) >> 5, dst, src);
	qp.qkey = field(p, "qkey", 16, 0);
	bench_put_gid(dst, true);
	bench_put_qp(qpn, &qp);
	return qpn;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void check_cqe(const struct golden_packet *p)
{
	const struct xroce_rx_cqe *c = &bench->cqe;
	bool ipv6 = golden_is_ipv6(p);
	uint64_t imm = field(p, "imm", 16, 0), ieth = field(p, "ieth", 16, 0);
	uint64_t tos = ipv6 ? field(p, "w0", 16, 0) >> 20 & 0xff : field(p, "tos", 16, 0);
	uint8_t flags = 0;

	flags |= golden_field(p, "imm", 16, &imm) ? XROCE_RX_IMM : 0;
	flags |= golden_field(p, "ieth", 16, &ieth) ? XROCE_RX_INV : 0;
	flags |= field(p, "se", 10, 0) ? XROCE_RX_SOLICITED : 0;
	flags |= ipv6 ? XROCE_RX_IPV6 : 0;
	flags |= (tos & 3) == 3 ? XROCE_RX_CE : 0;
	check(c->qpn == field(p, "qp", 16, 0), "%s: qpn %x", what, c->qpn);
	check(c->src_qpn == field(p, "src", 16, 0), "%s: src_qpn %x", what, c->src_qpn);
	check(frame_get32((const uint8_t *)&c->imm) == (imm ? imm : ieth), "%s: imm %x", what,
	      c->imm);
	check(c->byte_len == field(p, "data", 10, -1), "%s: byte_len %u", what, c->byte_len);
	check(c->vlan_tci == 0, "%s: vlan_tci %x", what, c->vlan_tci);
	check(c->opcode == golden_opcode(p), "%s: opcode %02x", what, c->opcode);
	check(c->flags == flags, "%s: flags %02x, want %02x", what, c->flags, flags);
	check(c->tos == tos, "%s: tos %02x", what, c->tos);
	check(c->l3_offset == L3, "%s: l3_offset %u", what, c->l3_offset);
}

/* What no reader of the QP's completions asked for is 0. */
static void cqe__only_what_is_asked_for(void **state)
{
	const struct golden_packet *p = &golden.packets[0];
	uint32_t qpn;

	bench_reset();
	qpn = install_qp(p);
	for (int wanted = 0; wanted < 4; wanted++) {
		struct xroce_qp qp = bench_get_qp(qpn);

		qp.with_time = wanted & 1;
		qp.with_flow_tag = wanted >> 1;
		bench_put_qp(qpn, &qp);
		bench_expect_redirect(p->file, p->frame, p->len, qpn);
		check(!bench->cqe.rx_time_ns == !qp.with_time, "asked for %d: rx_time_ns", wanted);
		check(!bench->cqe.flow_tag == !qp.with_flow_tag, "asked for %d: flow_tag", wanted);
		snprintf(what, sizeof(what), "asked for %d", wanted);
		check_cqe(p);
	}
}

/* One capture: *state is its file name. */
static void cqe__of_every_packet(void **state)
{
	const char *file = *state;
	unsigned int seen = 0;

	bench_reset();
	for (size_t i = 0; i < golden.count; i++) {
		const struct golden_packet *p = &golden.packets[i];
		uint64_t before;
		uint32_t qpn;

		if (strcmp(p->file, file) != 0)
			continue;
		snprintf(what, sizeof(what), "%s packet %u", p->file, p->index);
		qpn = install_qp(p);
		before = now_ns();
		bench_expect_redirect(what, p->frame, p->len, qpn);
		check_cqe(p);
		check(bench->cqe.rx_time_ns >= before && bench->cqe.rx_time_ns <= now_ns(),
		      "%s: rx_time_ns", what);
		seen++;
	}
	assert_true(seen > 0);
}

/* Packets of one sender and source port bear one flow tag, others differ. */
static void cqe__flow_tag(void **state)
{
	struct {
		uint8_t src[16];
		uint16_t sport;
		uint32_t tag;
	} *flow = calloc(golden.count, sizeof(*flow));
	size_t flows = 0, n;

	assert_non_null(flow);
	bench_reset();
	for (size_t i = 0; i < golden.count; i++) {
		const struct golden_packet *p = &golden.packets[i];
		uint16_t sport = field(p, "sp", 10, 0);
		uint8_t src[16], dst[16];

		addresses(p, src, dst);
		install_qp(p);
		assert_int_equal(bench_run(p->frame, p->len), XDP_REDIRECT);
		for (n = 0; n < flows; n++) {
			bool same = flow[n].sport == sport && memcmp(flow[n].src, src, 16) == 0;

			check(same == (flow[n].tag == bench->cqe.flow_tag),
			      "%s packet %u: flow tag %08x is %s flow %zu's", p->file, p->index,
			      bench->cqe.flow_tag, same ? "not" : "also another", n);
			if (same)
				break;
		}
		if (n == flows) {
			memcpy(flow[n].src, src, 16);
			flow[n].sport = sport;
			flow[flows++].tag = bench->cqe.flow_tag;
		}
	}
	assert_true(flows > 10);
	free(flow);
}

/*
 * Cut off behind every byte, the headers still naming the full length. Without a whole UDP header
 * it is nobody's and passes; from there on it is ours and malformed.
 */
static void parse__truncated_at_every_length(void **state)
{
	const char *file = *state;
	unsigned int seen = 0;

	bench_reset();
	for (size_t i = 0; i < golden.count; i++) {
		const struct golden_packet *p = &golden.packets[i];
		uint32_t udp_end = L3 + (golden_is_ipv6(p) ? 40 : 20) + 8;
		struct bench_counts before, after;

		if (strcmp(p->file, file) != 0)
			continue;
		seen++;
		install_qp(p);
		before = bench_count();
		for (uint32_t len = L3; len < p->len; len++) {
			int want = len < udp_end ? XDP_PASS : XDP_DROP;
			int verdict = bench_run(p->frame, len);

			check(verdict == want, "%s packet %u cut to %u bytes: verdict %d, want %d",
			      p->file, p->index, len, verdict, want);
			check(want != XDP_PASS || (bench->frame_len == len &&
						   memcmp(bench->frame, p->frame, len) == 0),
			      "%s packet %u cut to %u bytes: changed", p->file, p->index, len);
		}
		after = bench_count();
		check(after.drops.ip_length - before.drops.ip_length == p->len - udp_end,
		      "%s packet %u: ip_length counts something else than its %u truncations",
		      p->file, p->index, p->len - udp_end);
		check(after.rx.dropped - before.rx.dropped == p->len - udp_end &&
			      after.rx.redirected == before.rx.redirected,
		      "%s packet %u: dropped or redirected counts are off", p->file, p->index);
	}
	assert_true(seen > 0);
}

/* Extension header bytes of what the captures hold, from the protocol sheet; -1: unknown opcode. */
static int ext_bytes(int opcode)
{
	int low = opcode & 0x1f, n = opcode >> 5 == 3 ? 8 : 0;

	switch (low) {
	case 0x00: case 0x01: case 0x02: case 0x04: case 0x07: case 0x08: case 0x0e:
		return n;
	case 0x03:
	case 0x05:
	case 0x09:
	case 0x0d:
	case 0x0f:
	case 0x10:
	case 0x11:
	case 0x16:
	case 0x17:
		return n + 4;
	case 0x06: case 0x0a: case 0x0c:
		return n + 16;
	case 0x0b:
		return n + 20;
	case 0x12:
		return n + 12;
	case 0x13: case 0x14:
		return n + 28;
	}
	return -1;
}

static bool has_payload(int opcode)
{
	int low = opcode & 0x1f;

	return low != 0x0c && low != 0x11 && low != 0x12 && low != 0x13 && low != 0x14;
}

/* What a packet of roce_len bytes from the BTH to the ICRC is refused for; -1: for nothing. */
static int expected_fault(int opcode, uint32_t roce_len, uint32_t pad)
{
	uint32_t ext = ext_bytes(opcode), rest;

	if (roce_len < 12 + 4)
		return XROCE_DROP_bth_short;
	if (roce_len < 12 + ext + 4)
		return XROCE_DROP_ext_short;
	rest = roce_len - 12 - ext - 4;
	if (rest % 4 || pad > rest || (rest && !has_payload(opcode)))
		return XROCE_DROP_pad;
	return -1;
}

/*
 * Cut at every length with IP and UDP lengths that say so: each check behind them sees its edge,
 * from both sides.
 */
static void parse__shortened_to_every_length(void **state)
{
	const char *file = *state;
	unsigned int seen = 0;
	struct frame f;

	bench_reset();
	for (size_t i = 0; i < golden.count; i++) {
		const struct golden_packet *p = &golden.packets[i];
		uint32_t pad = field(p, "pad", 10, 0);
		int opcode = golden_opcode(p);
		uint32_t qpn;

		if (strcmp(p->file, file) != 0)
			continue;
		seen++;
		assert_true(ext_bytes(opcode) >= 0 && p->len <= FRAME_MAX);
		qpn = install_qp(p);
		memset(&f, 0, sizeof(f));
		memcpy(f.bytes, p->frame, p->len);
		f.l3 = L3;
		f.l4 = L3 + (golden_is_ipv6(p) ? 40 : 20);
		for (f.len = f.l4 + 8; f.len <= p->len; f.len++) {
			int fault = expected_fault(opcode, f.len - f.l4 - 8, pad);

			frame_fix_lengths(&f);
			snprintf(what, sizeof(what), "%s packet %u shortened to %u bytes", p->file,
				 p->index, f.len);
			if (fault < 0)
				bench_expect_redirect(what, f.bytes, f.len, qpn);
			else
				bench_expect_drop(what, f.bytes, f.len, fault,
						  fault == XROCE_DROP_bth_short ? 0 : qpn);
		}
	}
	assert_true(seen > 0);
}

static int setup(void **state)
{
	return golden_load(&golden) ? -1 : bench_setup(state);
}

static int teardown(void **state)
{
	golden_free(&golden);
	return bench_teardown(state);
}

/* A test a capture and case. */
int main(void)
{
	static const struct {
		const char *name;
		CMUnitTestFunction function;
	} cases[] = {
		{ "cqe__of_every_packet", cqe__of_every_packet },
		{ "parse__truncated_at_every_length", parse__truncated_at_every_length },
		{ "parse__shortened_to_every_length", parse__shortened_to_every_length },
	};
	static struct CMUnitTest tests[2 + 3 * 64];
	static char names[2 + 3 * 64][96];
	struct golden g;
	size_t n = 0;

	if (golden_load(&g))
		return 1;
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(cqe__flow_tag);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(cqe__only_what_is_asked_for);
	for (size_t i = 0; i < g.count; i++) {
		if (i && strcmp(g.packets[i].file, g.packets[i - 1].file) == 0)
			continue;
		for (int c = 0; c < 3; c++, n++) {
			snprintf(names[n], sizeof(names[n]), "%s(%s)", cases[c].name,
				 g.packets[i].file);
			tests[n] =
				(struct CMUnitTest){ .name = names[n],
						     .test_func = cases[c].function,
						     .initial_state = (void *)g.packets[i].file };
		}
	}
	return _cmocka_run_group_tests("golden", tests, n, setup, teardown);
}
