/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Actors, virtual time and store buffers; see scheduler.h. Knows nothing of ports and packets. */
#define _GNU_SOURCE
#include "scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES  (256u << 10)
#define STORES_MAX   16
#define POINT_MIN_NS 4
#define POINT_MAX_NS 36
/* points that an actor may run without waiting before others run, under SCHED_PRIORITY */
#define TURN_POINTS  20000
#define WORDS	     32 /* that were accessed last, about */
#define MEET_POINTS  2000 /* two accesses within this many points are a meeting */
#define FIRST_PRIORITY (1u << 30)
#define CHANGES	     4 /* of priorities, under SCHED_PRIORITY */

enum actor_state { READY, BLOCKED, FROZEN, ENDED };

struct store {
	volatile void *addr;
	u64 value;
	u32 size;
};

struct actor {
	const char *name;
	u32 number;
	enum actor_state state;
	const char *what; /* where it stands */
	bool woken;
	u64 until_ns;
	u32 priority;
	actor_fn *fn;
	void *arg;
	void *data;
	struct actor *joiner;
	jmp_buf at;
	bool started;
	ucontext_t context;
	struct store store[STORES_MAX];
	u32 first_store, num_stores;
};

static struct {
	struct sched_options o;
	struct rng rng;
	struct actor actor[ACTORS_MAX];
	u32 num_actors;
	struct actor *self, *main;
	u64 now_ns, points, hash;
	u64 turn_ends;	  /* at that point the next actor is drawn */
	u64 turn_began;	  /* with this one */
	u64 change_at[CHANGES];
	u32 next_change, lowest;
	struct {
		const volatile void *addr;
		const struct actor *by;
		u64 at;
	} word[WORDS];
	u32 oldest_word;
	jmp_buf done;
	ucontext_t outside;
	const char *hold_at;
	struct actor *holder, *held;
	void (*on_failure)(const char *text);
	char label[256];
} s;

static u8 *stacks;

/* ---- saying what went wrong ---- */

void sched_label(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s.label, sizeof(s.label), format, args);
	va_end(args);
}

void sched_on_failure(void (*fn)(const char *text))
{
	s.on_failure = fn;
}

static const char *state_name(const struct actor *a)
{
	static const char *const names[] = { "can run", "waits", "has no processor", "has ended" };

	return names[a->state];
}

void sched_fail(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (s.on_failure) {
		s.on_failure(text);
		longjmp(s.done, 2);
	}
	fprintf(stderr, "FAILED: %s\n  at %llu ns, point %llu, in %s\n", text,
		(unsigned long long)s.now_ns, (unsigned long long)s.points,
		s.self ? s.self->name : "no actor");
	for (u32 i = 0; i < s.num_actors; i++) {
		const struct actor *a = &s.actor[i];

		fprintf(stderr, "  %-16s %s: %s", a->name, state_name(a), a->what ? a->what : "");
		if (a->state == BLOCKED && a->until_ns == NSEC_NEVER)
			fprintf(stderr, ", for ever");
		else if (a->state == BLOCKED || a->state == FROZEN)
			fprintf(stderr, ", until %llu", (unsigned long long)a->until_ns);
		fprintf(stderr, a->num_stores ? ", %u stores not seen\n" : "\n", a->num_stores);
	}
	fprintf(stderr, "replay: %s\n", s.label);
	fflush(stderr);
	_Exit(1);
}

bool sched_tracing(void)
{
	return s.o.trace;
}

void sched_trace(const char *format, ...)
{
	va_list args;

	if (!s.o.trace)
		return;
	fprintf(stderr, "%12llu %-14s ", (unsigned long long)s.now_ns,
		s.self ? s.self->name : "-");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* ---- stores that others do not see yet ---- */

static void store_write(const struct store *st)
{
	switch (st->size) {
	case 1: __atomic_store_n((volatile u8 *)st->addr, (u8)st->value, __ATOMIC_SEQ_CST); break;
	case 2: __atomic_store_n((volatile u16 *)st->addr, (u16)st->value, __ATOMIC_SEQ_CST); break;
	case 4: __atomic_store_n((volatile u32 *)st->addr, (u32)st->value, __ATOMIC_SEQ_CST); break;
	default: __atomic_store_n((volatile u64 *)st->addr, st->value, __ATOMIC_SEQ_CST); break;
	}
}

static void drain_one(struct actor *a)
{
	store_write(&a->store[a->first_store]);
	a->first_store = (a->first_store + 1) % STORES_MAX;
	a->num_stores--;
}

static void drain(struct actor *a)
{
	while (a->num_stores)
		drain_one(a);
}

void sched_drain(void)
{
	if (s.self)
		drain(s.self);
}

void sched_store(volatile void *addr, u32 size, u64 value)
{
	const struct store st = { addr, value, size };
	struct actor *a = s.self;

	if (!a || s.o.store_rate >= 65535) {
		store_write(&st);
		return;
	}
	if (a->num_stores == STORES_MAX)
		drain_one(a);
	a->store[(a->first_store + a->num_stores++) % STORES_MAX] = st;
}

bool sched_stored(const volatile void *addr, u32 size, u64 *value)
{
	const struct actor *a = s.self;

	for (u32 i = a ? a->num_stores : 0; i-- > 0;) {
		const struct store *st = &a->store[(a->first_store + i) % STORES_MAX];

		if (st->addr != addr)
			continue;
		/* one word, one size: or this would have to put it together */
		sim_check(st->size == size);
		*value = st->value;
		return true;
	}
	return false;
}

/* ---- who runs ---- */

struct actor *sched_self(void)
{
	return s.self;
}

const char *sched_name(const struct actor *a)
{
	return a ? a->name : "no actor";
}

u32 sched_number(const struct actor *a)
{
	return a->number;
}

void **sched_data(struct actor *a)
{
	return &a->data;
}

void sched_each(void (*fn)(struct actor *a, void *arg), void *arg)
{
	for (u32 i = 0; i < s.num_actors; i++)
		if (s.actor[i].state != ENDED)
			fn(&s.actor[i], arg);
}

u64 sched_now_ns(void)
{
	return s.now_ns;
}

u64 sched_points(void)
{
	return s.points;
}

u64 sched_hash(void)
{
	return s.hash;
}

struct rng *sched_rng(void)
{
	return &s.rng;
}

bool sched_is_blocked(const struct actor *a)
{
	return a->state == BLOCKED;
}

u64 sched_until_ns(const struct actor *a)
{
	return a->until_ns;
}

const char *sched_what(const struct actor *a)
{
	return a->what ? a->what : "";
}

bool sched_any_frozen(void)
{
	for (u32 i = 0; i < s.num_actors; i++)
		if (s.actor[i].state == FROZEN)
			return true;
	return false;
}

static void actor_main(unsigned int number)
{
	struct actor *a = &s.actor[number];

	a->fn(a->arg);
	sched_exit();
}

static void hash_in(u64 value)
{
	s.hash = (s.hash ^ value) * 0x9e3779b97f4a7c15ull;
	s.hash ^= s.hash >> 29;
}

static void draw_turn(void)
{
	u32 mean = s.o.mean_points ? s.o.mean_points : 1;

	s.turn_ends = s.points + 1 + rng_below(&s.rng, 2 * mean);
	if (s.o.policy == SCHED_PRIORITY) {
		s.turn_ends = s.points + TURN_POINTS;
		if (s.next_change < CHANGES && s.change_at[s.next_change] < s.turn_ends)
			s.turn_ends = max_u64(s.change_at[s.next_change], s.points + 1);
	}
}

/* Takes the processor to a, and comes back when the caller has it again. */
static void switch_to(struct actor *a)
{
	struct actor *from = s.self;

	s.turn_began = s.points;
	draw_turn();
	if (a == from)
		return;
	hash_in(s.points << 8 | a->number);
	s.self = a;
	if (from && _setjmp(from->at))
		return;
	if (!a->started) {
		a->started = true;
		if (from)
			setcontext(&a->context);
		else
			swapcontext(&s.outside, &a->context);
	}
	_longjmp(a->at, 1);
}

/* Collects the actors that are ready. Returns their number, and the time of the next one. */
static u32 collect(struct actor *ready[], u64 *next_ns)
{
	u32 n = 0;

	*next_ns = NSEC_NEVER;
	for (u32 i = 0; i < s.num_actors; i++) {
		struct actor *a = &s.actor[i];

		if ((a->state == BLOCKED || a->state == FROZEN) && a->until_ns <= s.now_ns)
			a->state = READY;
		if (a->state == READY)
			ready[n++] = a;
		else if (a->state != ENDED)
			*next_ns = min_u64(*next_ns, a->until_ns);
	}
	return n;
}

static struct actor *choose(struct actor *ready[], u32 n)
{
	struct actor *best = ready[0];

	if (s.o.policy == SCHED_RANDOM)
		return ready[rng_below(&s.rng, n)];
	for (u32 i = 1; i < n; i++)
		if (ready[i]->priority > best->priority)
			best = ready[i];
	return best;
}

/* Runs the inspection outside any actor: it makes no steps, and sees the state common to all. */
static void look(u64 next_ns)
{
	struct actor *self = s.self;

	s.self = NULL;
	s.o.idle(s.now_ns, next_ns);
	s.self = self;
}

/* The next actor runs. Nothing of the caller's is on the way but in its store buffer. */
static void next_actor(void)
{
	struct actor *ready[ACTORS_MAX];
	u64 next_ns;
	u32 n = collect(ready, &next_ns);

	while (!n) {
		/* stores become visible in less time than any sleep takes */
		for (u32 i = 0; i < s.num_actors; i++)
			drain(&s.actor[i]);
		if (next_ns == NSEC_NEVER)
			sched_fail("stall: no actor can run, and no deadline is left");
		if (next_ns > s.o.max_ns)
			sched_fail("stall: not done at %llu ns of virtual time",
				   (unsigned long long)s.o.max_ns);
		if (s.o.idle && !sched_any_frozen())
			look(next_ns);
		s.now_ns = next_ns;
		n = collect(ready, &next_ns);
	}
	switch_to(choose(ready, n));
}

static void change_priority(void)
{
	bool turned = s.points - s.turn_began >= TURN_POINTS;

	while (s.next_change < CHANGES && s.change_at[s.next_change] <= s.points) {
		s.next_change++;
		turned = true;
	}
	if (turned)
		s.self->priority = s.lowest--;
}

void sched_hold_at(const char *what)
{
	s.hold_at = what;
	s.holder = s.self;
}

bool sched_holds(void)
{
	return s.held;
}

void sched_let_go(void)
{
	struct actor *a = s.held;

	s.held = NULL;
	sched_wake(a, 0);
}

static void hold(struct actor *a, const char *what)
{
	s.hold_at = NULL;
	s.held = a;
	sched_trace("is held: %s", what);
	while (s.held == a)
		sched_block(what, NSEC_NEVER);
}

void sched_point(const char *what)
{
	struct actor *a = s.self;
	u64 draw;

	if (!a)
		return;
	if (unlikely(s.hold_at) && a != s.holder && strcmp(s.hold_at, what) == 0)
		hold(a, what);
	a->what = what;
	draw = rng_next(&s.rng);
	s.points++;
	s.now_ns += POINT_MIN_NS + (draw & 31) % (POINT_MAX_NS - POINT_MIN_NS);
	if (s.points > s.o.max_points)
		sched_fail("stall: not done after %llu points",
			   (unsigned long long)s.o.max_points);
	if (a->num_stores && (u16)(draw >> 8) < s.o.store_rate)
		drain_one(a);
	if (unlikely((draw >> 40) < s.o.freeze_rate)) {
		drain(a);
		a->state = FROZEN;
		a->until_ns = s.now_ns + rng_next(&s.rng) % s.o.freeze_max_ns;
		sched_trace("has no processor until %llu", (unsigned long long)a->until_ns);
		next_actor();
	} else if (s.points >= s.turn_ends) {
		if (s.o.policy == SCHED_PRIORITY)
			change_priority();
		next_actor();
	}
}

/* Its place is not made of its address, which differs from one run to the next. */
static u32 word_find(const volatile void *addr)
{
	for (u32 i = 0; i < WORDS; i++)
		if (s.word[i].addr == addr)
			return i;
	s.oldest_word = (s.oldest_word + 1) % WORDS;
	s.word[s.oldest_word].addr = addr;
	s.word[s.oldest_word].by = NULL;
	return s.oldest_word;
}

void sched_access(const char *what, const volatile void *addr)
{
	struct actor *a = s.self;
	bool meets;
	u32 i;

	sched_point(what);
	if (!a || !s.o.meet_rate)
		return;
	i = word_find(addr);
	meets = s.word[i].by && s.word[i].by != a && s.points - s.word[i].at < MEET_POINTS;
	s.word[i].by = a;
	s.word[i].at = s.points;
	if (meets && rng_chance(&s.rng, s.o.meet_rate))
		next_actor();
}

void sched_forget(const void *begin, size_t bytes)
{
	const volatile u8 *from = begin;

	for (u32 i = 0; i < WORDS; i++) {
		const volatile u8 *at = s.word[i].addr;

		if (at >= from && at < from + bytes)
			s.word[i].addr = NULL;
	}
}

void sched_give_way(const char *what)
{
	sched_drain();
	s.self->what = what;
	s.self->priority = s.lowest--;
	next_actor();
}

bool sched_block(const char *what, u64 until_ns)
{
	struct actor *a = s.self;

	drain(a);
	a->what = what;
	a->woken = false;
	a->until_ns = until_ns;
	a->state = BLOCKED;
	next_actor();
	return a->woken;
}

void sched_sleep(const char *what, u64 ns)
{
	const u64 until_ns = s.now_ns + ns;

	while (s.now_ns < until_ns)
		sched_block(what, until_ns);
}

void sched_wake(struct actor *a, u64 delay_ns)
{
	if (a->state != BLOCKED)
		return;
	a->woken = true;
	a->until_ns = min_u64(a->until_ns, s.now_ns + delay_ns);
	/* an actor of higher priority than the caller runs at its next point */
	if (s.o.policy == SCHED_PRIORITY && s.self && a->priority > s.self->priority)
		s.turn_ends = s.points;
}

struct actor *sched_spawn(const char *name, actor_fn *fn, void *arg)
{
	struct actor *a = &s.actor[s.num_actors];

	sim_check(s.num_actors < ACTORS_MAX);
	*a = (struct actor){ .name = name, .number = s.num_actors, .fn = fn, .arg = arg };
	s.num_actors++;
	a->priority = FIRST_PRIORITY + 1 + rng_below(&s.rng, 1u << 20);
	if (!stacks) {
		stacks = mmap(NULL, (size_t)ACTORS_MAX * STACK_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		sim_check(stacks != MAP_FAILED);
		/* a guard page below each */
		for (u32 i = 0; i < ACTORS_MAX; i++)
			mprotect(stacks + (size_t)i * STACK_BYTES, 4096, PROT_NONE);
	}
	getcontext(&a->context);
	a->context.uc_stack.ss_sp = stacks + (size_t)a->number * STACK_BYTES;
	a->context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&a->context, (void (*)(void))actor_main, 1, a->number);
	return a;
}

void sched_exit(void)
{
	struct actor *a = s.self;

	drain(a);
	a->state = ENDED;
	a->what = NULL;
	if (a == s.main) {
		s.self = NULL;
		_longjmp(s.done, 1);
	}
	if (a->joiner)
		sched_wake(a->joiner, 0);
	next_actor();
	__builtin_unreachable();
}

void sched_join(struct actor *a)
{
	while (a->state != ENDED) {
		sim_check(!a->joiner || a->joiner == s.self);
		a->joiner = s.self;
		sched_block("join", NSEC_NEVER);
	}
}

void sched_run(const struct sched_options *o, actor_fn *main, void *arg)
{
	/* the text of the line that replays it stays */
	s.o = *o;
	s.rng.state = o->seed;
	s.num_actors = 0;
	s.self = NULL;
	s.now_ns = NSEC_PER_SEC; /* not 0: a time is not a flag */
	s.o.max_ns += s.now_ns;
	s.points = s.turn_began = s.hash = 0;
	s.hold_at = NULL;
	s.held = NULL;
	s.next_change = 0;
	memset(s.word, 0, sizeof(s.word));
	s.oldest_word = 0;
	s.lowest = FIRST_PRIORITY;
	for (u32 i = 0; i < CHANGES; i++)
		s.change_at[i] = i ? s.change_at[i - 1] : 0;
	/* some early, some late: in the beginning objects are made */
	for (u32 i = 0; i < CHANGES; i++)
		s.change_at[i] += rng_below(&s.rng, i ? 20000 : 4000);
	for (u32 i = 1; i < CHANGES; i++)
		s.change_at[i] = max_u64(s.change_at[i], s.change_at[i - 1]);
	s.main = sched_spawn("main", main, arg);
	if (!_setjmp(s.done))
		switch_to(s.main);
	s.self = NULL;
}
