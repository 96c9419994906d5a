/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../client/attach_error.h"
#include "../os/clock.h"
#include "../os/kernel.h"
#include "../os/privilege.h"
#include "client.h"
#include "client_cm.h"
#include "client_port.h"
#include "sole.h"

/* The longest that others wait for the sole client. It answers within a millisecond. */
#define SOLE_HOLD_NS   (500 * NSEC_PER_MSEC)
/* As long as an unused broker runs: processes that follow each other do not change the hook. */
#define SOLE_RETURN_NS (1 * NSEC_PER_SEC)

/*
 * Without CAP_PERFMON the verifier follows more paths, and refuses the larger program after many
 * seconds. The smaller one has no way into the client's ring, and the client keeps others out.
 */
static int sole_put_on(struct broker *b, struct xroce_bpf **bpf)
{
	struct instance_plan *plan = &b->client_pool.plan;
	int err;

	plan->without_others |= !privilege_verifies_fast();
	err = mux_put_new_client_on(&b->mux, instance_open_with_sockets, plan, bpf);
	if (err != -E2BIG || plan->without_others)
		return err;
	plan->without_others = true;
	instance_free_program(*bpf);
	err = mux_put_new_client_on(&b->mux, instance_open_with_sockets, plan, bpf);
	return err == -E2BIG ? attach_failed(&b->dev, "load the XDP program", err) : err;
}

static int sole_make(struct broker *b, struct instance *i)
{
	struct xroce_bpf *bpf;
	const char *step;
	int err = sole_put_on(b, &bpf);

	if (err) {
		instance_free_program(bpf);
		return err;
	}
	err = instance_make_with_sockets(i, bpf, &b->client_pool.plan, &step);
	if (!err)
		return 0;
	mux_take_off(&b->mux);
	return attach_failed(&b->dev, step, err);
}

int sole_begin(struct broker *b)
{
	return sole_make(b, &b->sole.made);
}

static bool sole_is_possible(const struct broker *b, u32 clients)
{
	return b->options.while_used && !b->options.udp && b->quota.used[QUOTA_CLIENTS] == clients;
}

bool sole_is_free(const struct broker *b)
{
	return sole_is_possible(b, 0);
}

bool sole_fits(const struct client *c)
{
	return sole_is_possible(c->broker, 1) && c->asked.number & ASK_CAN_USE_SOCKETS &&
	       c->rights.admin && c->rights.raw;
}

int sole_take(struct broker *b, struct instance *i)
{
	if (!b->sole.made.bpf)
		return sole_make(b, i);
	*i = b->sole.made;
	b->sole.made.bpf = NULL;
	return 0;
}

void sole_return(struct broker *b, const struct instance *i)
{
	b->sole.made = *i;
}

void sole_drop(struct broker *b)
{
	if (b->sole.made.bpf)
		instance_close(&b->sole.made);
}

int sole_enter(struct client *c, const struct instance *i)
{
	struct sole *s = &c->broker->sole;

	s->prog_fd = fcntl(instance_prog_fd(i), F_DUPFD_CLOEXEC, 0);
	s->others_fd = s->prog_fd < 0 ? -1 : fcntl(i->others_fd, F_DUPFD_CLOEXEC, 0);
	if (s->others_fd < 0) {
		const int err = -errno;

		if (s->prog_fd >= 0)
			close(s->prog_fd);
		return err;
	}
	s->client = c;
	s->state = SOLE_ALONE;
	s->refuses = c->asked.number & ASK_TO_BE_ALONE;
	s->hold_ns = 0;
	s->return_ns = NSEC_NEVER;
	return 0;
}

void sole_leave(struct client *c)
{
	struct sole *s = &c->broker->sole;

	close(s->prog_fd);
	close(s->others_fd);
	s->client = NULL;
}

/* ---- others come ---- */

/*
 * Sets the word that keeps the client from making raw packet QPs. Returns false if it has some, or
 * is making one: see struct xroce_engine.
 */
static bool sole_forbid_raw(const struct client *c)
{
	struct xroce_engine *engine = c->readonly_maps.engine;

	/* seq_cst, both: pairs with port_take_raw() (user/port/port_qp.c) */
	atomic_store_explicit(shared_word(&engine->others), 1, memory_order_seq_cst);
	if (!atomic_load_explicit(shared_word(&engine->raw), memory_order_seq_cst))
		return true;
	atomic_store_explicit(shared_word(&engine->others), 0, memory_order_seq_cst);
	return false;
}

static bool sole_may_be_told(const struct broker *b)
{
	return !b->sole.refuses && !b->client_pool.plan.without_others &&
	       !hook_is_in_dispatcher(&b->mux.hook) && sole_forbid_raw(b->sole.client);
}

static bool sole_is_wanted(const struct broker *b)
{
	return b->quota.used[QUOTA_CLIENTS] > 1;
}

bool sole_holds_others(const struct broker *b, u64 now_ns)
{
	return b->sole.client && b->sole.state == SOLE_TOLD && now_ns < b->sole.hold_ns;
}

int sole_make_way(struct broker *b)
{
	struct sole *s = &b->sole;
	int err;

	if (s->client && s->state == SOLE_ALONE)
		return -EBUSY;
	err = mux_put_on(&b->mux);
	if (err)
		return err;
	client_pool_start(&b->client_pool, mux_tap_single_fd(&b->mux));
	sole_drop(b);
	if (s->client)
		s->state = SOLE_BESIDE;
	return 0;
}

int sole_answer_others(struct client *c)
{
	struct broker *b = c->broker;
	struct mux_client sender = client_port_sender(c);
	u32 tap;
	int fd, err;

	if (c != b->sole.client)
		return -EPERM;
	if (b->sole.state == SOLE_ALONE)
		return -ENOENT;
	fd = instance_make_tap(&b->client_pool.plan, &tap);
	if (fd < 0)
		return fd;
	err = mux_add_tap(&b->mux, &sender, tap);
	if (err) {
		close(fd);
		return err;
	}
	client_port_drop_taps(c);
	c->tap[0] = tap;
	b->sole.hold_ns = 0;
	return fd;
}

/* ---- alone again ---- */

/* Returns false if the program cannot be put back now. */
static bool sole_go_back(struct broker *b)
{
	struct sole *s = &b->sole;

	if (mux_put_client_on(&b->mux, s->prog_fd))
		return false;
	atomic_store_explicit(shared_word(&s->client->readonly_maps.engine->others), 0,
			      memory_order_seq_cst);
	s->state = SOLE_ALONE;
	client_port_drop_taps(s->client);
	kernel_event_raise(s->others_fd);
	return true;
}

void sole_work(struct broker *b, u64 now_ns)
{
	struct sole *s = &b->sole;

	if (!s->client)
		return;
	if (now_ns >= s->hold_ns)
		s->hold_ns = 0;
	if (sole_is_wanted(b)) {
		s->return_ns = NSEC_NEVER;
		if (s->state == SOLE_ALONE && sole_may_be_told(b)) {
			s->state = SOLE_TOLD;
			s->hold_ns = now_ns + SOLE_HOLD_NS;
			kernel_event_raise(s->others_fd);
		}
	} else if (s->state == SOLE_ALONE) {
		s->return_ns = NSEC_NEVER;
	} else if (s->return_ns == NSEC_NEVER) {
		s->return_ns = now_ns + SOLE_RETURN_NS;
	} else if (now_ns >= s->return_ns) {
		s->return_ns = sole_go_back(b) ? NSEC_NEVER : now_ns + SOLE_RETURN_NS;
	}
}

u64 sole_next_ns(const struct broker *b)
{
	const struct sole *s = &b->sole;

	if (!s->client)
		return NSEC_NEVER;
	return s->state == SOLE_TOLD && s->hold_ns ? min_u64(s->hold_ns, s->return_ns) :
						     s->return_ns;
}

void sole_client_ends(struct client *c)
{
	struct broker *b = c->broker;
	struct sole *s = &b->sole;

	if (c != s->client)
		return;
	sole_leave(c);
	if (s->state == SOLE_BESIDE || b->quota.used[QUOTA_CLIENTS])
		return;
	/* as if the process had attached its program itself */
	mux_take_off(&b->mux);
	b->ended = true;
}
