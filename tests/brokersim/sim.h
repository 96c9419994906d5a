/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Brokers and their clients in one process: the code of user/broker and the client code of
 * user/client/ask.c and user/port, over socket pairs and epoll of the real kernel. Each process of
 * the simulated machine is an actor with its own stack; one runs at a time. Every system call is a
 * step: there the run's seed picks the next actor, or the actor dies. The descriptors of a dead
 * actor are closed as the kernel does it, and its memory is freed. Time is virtual, and jumps when
 * all actors wait.
 *
 * The code under test is not changed for it: the linker puts calls.c before the C library (--wrap),
 * and the faked*.c replace the code that loads BPF programs and makes devices.
 */
#ifndef BROKERSIM_SIM_H
#define BROKERSIM_SIM_H

#include "../../user/os/clock.h"
#include "../../user/broker/broker_object.h"
#include "../../user/broker/client.h"

#define CLIENTS	 3
#define ACTORS	 (CLIENTS + 1) /* the last is the broker */
#define BROKER	 CLIENTS
#define QPS	 4	       /* that a client makes at first */
#define NUMBERS	 24	       /* slots that are drawn: so some drawn numbers are already taken */
#define GENERATIONS 64	       /* of each in a run, at most */
#define NETNS	 5	       /* no network namespace has this number */
#define PLACES	 (XROCE_CM_PLACE_MAX + 1)
#define HOLD_NS	 (500 * NSEC_PER_MSEC) /* that others wait for a sole client, at most */
#define RETURN_NS NSEC_PER_SEC /* after which it is alone again */
#define FAKED_PKEYS ((struct pkey_table){ 3, { 0xffff, 0x8001, 0x0002 } })

/* ---- a run ---- */

/* What fails once, at the nth time. */
enum fault {
	FAULT_NONE,
	FAULT_OWN,
	FAULT_ENTER,
	FAULT_INSTANCE,
	FAULT_RING,
	FAULT_PLACE,
	FAULT_BIND,
	FAULT_GROUP,
	FAULTS_SHARED,
	/* of a broker with sole clients: */
	FAULT_HOOK = FAULTS_SHARED, /* a program on the interface */
	FAULT_TAP,
	FAULT_ADMIT, /* of its frames */
	FAULT_COPY,  /* of a descriptor */
	FAULT_SEND,  /* of the answer to ASK_HELLO */
	FAULTS
};

enum mode {
	/*
	 * The broker ends when it is not used, and root's processes can have AF_XDP sockets. A
	 * process that finds no broker has the run start another. Without it one broker serves
	 * all processes until the run ends
	 */
	MODE_SOLE = 1,
	MODE_RAW = 2,	 /* root's processes make raw packet QPs */
	MODE_LEAVES = 4, /* a process with sockets ends by ASK_LEAVE, else by close() */
	MODE_ROOTS = 8,	 /* client 0 is root's, too */
	/* without MODE_SOLE: client 1 first leaves answers with descriptors unread */
	MODE_HOARDS = 16,
};

#define IN_TURNS 3u /* seeds that are no draw */
struct run {
	u64 seed; /* 0: in turns, 1: clients first, 2: the broker first; else drawn */
	u32 dies[ACTORS]; /* at which of its steps; 0: not at all */
	u32 forks;	  /* a client 0's step at which it forks */
	enum fault fault;
	u32 nth;
	u32 mode; /* enum mode */
};
extern struct run run;

/* Results of a run. */
struct outcome {
	u32 steps[ACTORS]; /* made, of a first life */
	bool died[ACTORS];
	bool forked;
	u32 lost;     /* clients that noticed their broker's exit */
	u32 refused;  /* a user's limit was met */
	u32 in_use;   /* services that another had */
	u32 in_vain;  /* drawn numbers without a slot, returned */
	u32 told;     /* peers of exited clients, each time they are notified */
	u32 hoarded;  /* answers that were left unread, and that refused the user's next port */
	u32 regained; /* ports after such an answer was read or its connection was closed */
	/* MODE_SOLE: */
	u32 brokers; /* that began */
	u32 soles;   /* ports with sockets */
	u32 met;     /* TAP devices that their processes got */
	u32 parted;  /* times that a process was alone again */
	u32 unheard; /* others that were served although the sole client had not asked */
	u32 raws;    /* raw packet QPs */
	u32 busy;    /* others that were refused because of one */
	u32 faults;
	u32 calls[FAULTS]; /* of what could have failed */
};
extern struct outcome outcome;

/* Runs r. On a failure prints the reason and the run, and exits. */
void sim_run(const struct run *r);
#define must(condition) ((condition) ? (void)0 : sim_fail(__FILE__, __LINE__, #condition))
void sim_fail(const char *file, int line, const char *what) __attribute__((noreturn));

/* ---- check.c: invariants after each step ---- */

void check_begin(void);
void check(void);
/* Checks, with all actors idle, that nothing of the clients is left. */
void check_quiet(void);
/* When the broker told its sole client of others. */
u64 check_told_ns(void);
/* When a sole client with raw packet QPs was seen last. */
u64 check_raw_ns(void);
/* Returns whether the run has asked its broker to end. */
bool run_is_ending(void);

/* ---- actors.c ---- */

typedef void actor_fn(void *arg);
void actors_begin(const struct run *r);
/* Runs fn as that actor. A dead actor runs again, and does not die a second time. */
void actor_start(u32 actor, actor_fn *fn, void *arg);
bool actor_lives(u32 actor);
/* Steps all actors until each has ended or waits for ever. Calls `after` after each step. */
void actors_go(void (*after)(void));
/* The running one, -1: none. */
int actor_self(void);
/* It makes a step: others go on. Does not return if it dies there. */
void actor_step(void);
/*
 * Waits until then, or until another actor has made a step. actor_waits_on() is a step, too, at
 * which the actor may die, but wakes no other actor.
 */
void actor_wait(u64 until_ns);
void actor_waits_on(void);
/* Sleeps for `ns`, whatever other actors do. */
void actor_sleep(u64 ns);
u32 sim_random(u32 below);
/* In a forked child: there are no actors, and no call is a step. */
void actors_stop(void);

/* ---- calls.c: descriptors and their owners ---- */

/* As of the running actor: closed with it. */
int fd_own(int fd);
int fd_own_by(int fd, u32 actor);
void fds_close(u32 actor);
u32 fds_open(void);
/* /dev/null, as of the running actor. */
int fd_nothing(void);
/* Without a step. */
void fd_close(int fd);
/* Returns whether an event is there, or the other end is closed. Without a step. */
bool fd_is_ready(int fd);
/* Returns whether the broker is about to add to an eventfd. */
bool fd_is_written(void);

/* ---- faked.c, faked_mux.c, faked_instance.c: the kernel's part of a broker ---- */

void faked_begin(enum fault fault, u32 nth);
/* Closes the dead broker's programs, maps and socket. */
void faked_lose_broker(void);
/* The broker that has the interface, NULL: none. */
struct broker *faked_broker(void);
/* The generation of the map. It has its own number, as memory is reused. */
u32 faked_generation(void);
/* The owner of a number according to the broker's program; ~0: none. */
u32 faked_owner(u32 qpn, u32 *pid);
/* Returns how many numbers have an owner there. */
u32 faked_owned(void);
/* The client that has a place of communication ids, ~0: none; how many places are taken. */
u32 faked_place(u32 place);
u32 faked_places(void);
/* Keys of services that are for that place; 0: for any. */
u32 faked_services(u32 place);
/* Groups that the broker's programs take a client's for; ~0: of all clients. */
u32 faked_members(u32 client);
/* Clients that have a place among the programs; instances that are not closed. */
u32 faked_programs(void);
u32 faked_instances(void);
/* The number of TAP devices still to be deleted. */
u32 faked_taps(void);
/* The program on the interface: the prog_id of one with sockets, or: */
enum { HOOK_EMPTY = 0, HOOK_MUX = 1u << 20, HOOK_LEFT /* mux_detach() */ };
u32 faked_hook(void);
u32 faked_prog_id(int prog_fd);
/* The words that the broker and the process of a program share. */
struct xroce_engine *faked_engine(u32 prog_id);
/* The ifindex of a sole client's TAP device, 0: the device is deleted. */
u32 faked_tap(int fd);
/* The client whose frames are admitted from a device; ~0: none. */
u32 faked_sender(u32 tap);
/* The number of a client's devices from which frames are admitted; ~0: of all clients. */
u32 faked_admitted(u32 client);
/* Returns whether a process found no broker since the last call. */
bool faked_take_wanted(void);
/* A connection to the broker's socket, or -errno. */
int faked_connect(u32 pid, u32 uid);

/* ---- process.c: clients ---- */

void processes_begin(void);
void process_main(void *arg); /* arg: its index */
/* Checks each process's view against the broker's. */
void processes_check(struct broker *b);
/* Frees the memory of a dead process. */
void process_forget(u32 index);
/* Forks a child, which runs to its end. */
void process_fork(u32 index);
u32 process_uid(u32 index);
u32 process_pid(u32 index);

#endif
