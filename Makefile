# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make            build everything (no root, nothing attached)
# make demo       as root: install what is needed, build, show it working between two namespaces
# make check      as root: install what is needed, build, run every test
# make bench      as root: measure against raw AF_XDP, UDP and TCP between two namespaces (scripts/bench.sh --quick: in 3 minutes)
# make interop    as root: everything against the kernel's Soft-RoCE in virtual machines (half an hour)
# make bench-vm   as root: instructions an operation, beside Soft-RoCE and TCP, in a virtual machine
# make install    DESTDIR= PREFIX=  install the library (privately), the command and the documents
#
# BUILD=dir builds elsewhere; SAN=1 builds with ASan and UBSan (for tests/unit and tests/sim), TSAN=1 with TSan (tests/verbs/tsan.sh).

PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   ?= build
CC      ?= gcc
CLANG   ?= clang
BPFTOOL ?= bpftool
Q       ?= @

PKGS      := libbpf libxdp libmnl libisal
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null)

CFLAGS   ?= -O2 -g
# An overrun of a buffer on the stack, and of one whose size the compiler knows, ends the program at once. _FORTIFY_SOURCE needs
# an optimised build, and its calls escape the sanitizers; a level that a distribution sets (in CFLAGS or in its compiler) stands.
HARDEN   := -fstack-protector-strong
ifneq ($(if $(SAN)$(TSAN),,$(filter -O1 -O2 -O3 -Os,$(CFLAGS))),)
HARDEN   += $(shell echo | $(CC) $(CFLAGS) -dM -E - 2>/dev/null | grep -q '_FORTIFY_SOURCE ' || echo -D_FORTIFY_SOURCE=2)
endif
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wno-unused-parameter -Werror
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(HARDEN) $(WARNINGS) -fPIC -fvisibility=hidden -pthread -Iinclude -I$(BUILD)/gen -MMD -MP $(PKG_CFLAGS)
ifdef SAN
ALL_CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SAN_LIBS   := -fsanitize=address,undefined
endif
ifdef TSAN
# TSan does not know fences; none of ours orders anything but atomics.
ALL_CFLAGS += -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan
SAN_LIBS   := -fsanitize=thread
endif

objs = $(patsubst %,$(BUILD)/obj/%.o,$(basename $(1)))

TRANSPORT_SRC := $(wildcard user/transport/*.c user/transport/*.S)
# The rooms between the transport and the verbs, the lower ones first.
PORT_ROOMS    := base netdev xsk tx wake shard service attach port
PORT_SRC      := $(wildcard $(PORT_ROOMS:%=user/%/*.c))
VERBS_SRC     := $(wildcard user/verbs/*.c)
CLI_SRC       := $(wildcard user/cli/*.c)

LIB   := $(BUILD)/lib/libibverbs.so.1
TOOL  := $(BUILD)/bin/xroce
SKELS := $(BUILD)/gen/xroce.skel.h $(BUILD)/gen/xroce_tx.skel.h

.PHONY: all transport fuzzers tests unit-tests sim-tests bpf-tests port-tests netns-tools vm-tools bench-tools deps demo check bench interop bench-vm install clean
all: $(LIB) $(BUILD)/lib/libibverbs.so $(TOOL)

# ---- BPF: objects, embedded through their skeletons ----

BPF_ARCH_INC := -I/usr/include/$(shell $(CC) -print-multiarch)

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h include/xroce/*.h)
	@mkdir -p $(@D)
	$(Q)$(CLANG) -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -Iinclude $(BPF_ARCH_INC) -c $< -o $@

$(BUILD)/gen/%.skel.h: $(BUILD)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@.tmp && mv $@.tmp $@

# ---- C ----

$(BUILD)/obj/%.o: %.c | $(BUILD)/gen
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@

$(BUILD)/obj/%.o: %.S | $(BUILD)/gen
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@

$(BUILD)/gen:
	@mkdir -p $@

$(call objs,$(PORT_SRC)): $(SKELS)

# The transport is many small functions in files of their own: optimised as one, and what is called once a packet put where it is called, it makes 6 % and
# another 7 % more messages a second. Not under a sanitizer, whose reports are to name what the source says, and by GCC alone, whose option makes an
# ordinary object of it.
ifeq ($(SAN)$(TSAN)$(findstring clang,$(shell $(CC) --version)),)
AS_ONE := -flto -flto-partition=one --param max-inline-insns-auto=80 --param inline-min-speedup=5
$(call objs,$(TRANSPORT_SRC)): ALL_CFLAGS += $(AS_ONE)
$(BUILD)/obj/transport.o: $(call objs,$(TRANSPORT_SRC))
	$(Q)$(CC) $(ALL_CFLAGS) $(AS_ONE) -flinker-output=nolto-rel -r -nostdlib $^ -o $@
$(BUILD)/libtransport.a: $(BUILD)/obj/transport.o
else
$(BUILD)/libtransport.a: $(call objs,$(TRANSPORT_SRC))
endif
	$(Q)rm -f $@ && $(AR) rcs $@ $^
transport: $(BUILD)/libtransport.a

$(BUILD)/libport.a: $(call objs,$(PORT_SRC))
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(LIB): $(call objs,$(VERBS_SRC)) $(BUILD)/libport.a $(BUILD)/libtransport.a user/verbs/libibverbs.map
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libibverbs.so.1 -Wl,--version-script=user/verbs/libibverbs.map -Wl,--no-undefined -Wl,-z,relro,-z,now,-z,nodelete \
		-pthread $(filter %.o,$^) $(BUILD)/libport.a $(BUILD)/libtransport.a $(PKG_LIBS) $(SAN_LIBS) -o $@

$(BUILD)/lib/libibverbs.so: $(LIB)
	$(Q)ln -sf libibverbs.so.1 $@

$(TOOL): $(call objs,$(CLI_SRC)) $(BUILD)/libport.a $(BUILD)/libtransport.a
	@mkdir -p $(@D)
	$(Q)$(CC) -pthread $(filter %.o,$^) $(BUILD)/libport.a $(BUILD)/libtransport.a $(PKG_LIBS) $(SAN_LIBS) -o $@

# ---- tests: each test_*.c is a program; what they share lies in common/ ----

TEST_COMMON_SRC := $(wildcard tests/common/*.c)
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
SIM_LIB_SRC := $(filter-out $(wildcard tests/sim/test_*.c),$(wildcard tests/sim/*.c))
SIM_TESTS  := $(patsubst tests/sim/%.c,$(BUILD)/tests/sim/%,$(wildcard tests/sim/test_*.c))
BPF_LIB_SRC := $(filter-out $(wildcard tests/bpf/test_*.c),$(wildcard tests/bpf/*.c))
PORT_TESTS := $(patsubst tests/port/%.c,$(BUILD)/tests/port/%,$(wildcard tests/port/test_*.c))
BPF_TESTS  := $(patsubst tests/bpf/%.c,$(BUILD)/tests/bpf/%,$(wildcard tests/bpf/test_*.c))
BENCH_TOOLS := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,$(wildcard tests/bench/*.c))
NETNS_TOOLS := $(patsubst tests/netns/%.c,$(BUILD)/tests/netns/%,$(wildcard tests/netns/*.c))
TEST_CFLAGS := -Itests/common -DXROCE_GOLDEN_DIR='"$(CURDIR)/tests/golden"'

$(BUILD)/obj/tests/%.o: ALL_CFLAGS += $(TEST_CFLAGS)

.SECONDARY:
$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(call objs,$(TEST_COMMON_SRC)) $(BUILD)/libtransport.a
	@mkdir -p $(@D)
	$(Q)$(CC) -pthread $^ -lcmocka $(PKG_LIBS) $(SAN_LIBS) -lm -o $@

$(BUILD)/tests/sim/%: $(BUILD)/obj/tests/sim/%.o $(call objs,$(SIM_LIB_SRC)) $(call objs,$(TEST_COMMON_SRC)) $(BUILD)/libtransport.a
	@mkdir -p $(@D)
	$(Q)$(CC) -pthread $^ -lcmocka $(PKG_LIBS) $(SAN_LIBS) -lm -o $@

$(call objs,$(wildcard tests/bpf/*.c)): $(SKELS)
$(BUILD)/tests/bpf/%: $(BUILD)/obj/tests/bpf/%.o $(call objs,$(BPF_LIB_SRC)) $(call objs,$(TEST_COMMON_SRC)) $(BUILD)/libtransport.a
	@mkdir -p $(@D)
	$(Q)$(CC) -pthread $^ -lcmocka $(PKG_LIBS) $(SAN_LIBS) -o $@

# What the rooms between transport and verbs do to a real kernel, in namespaces of the tests' own.
$(BUILD)/tests/port/%: $(BUILD)/obj/tests/port/%.o $(BUILD)/libport.a $(BUILD)/libtransport.a
	@mkdir -p $(@D)
	$(Q)$(CC) -pthread $^ -lcmocka $(PKG_LIBS) $(SAN_LIBS) -o $@

# Programs of our own that run on the verbs library in tests/netns: linked with whatever libibverbs is installed, run on ours.
$(BUILD)/tests/netns/%: $(BUILD)/obj/tests/netns/%.o $(call objs,$(wildcard tests/netns/lib/*.c))
	@mkdir -p $(@D)
	$(Q)$(CC) -pthread $^ -libverbs $(TOOL_LIBS) $(SAN_LIBS) -o $@
# These build and read packets, by the transport's codec.
PACKET_TOOLS := $(addprefix $(BUILD)/tests/netns/,attack tagged segments supers)
$(PACKET_TOOLS): $(BUILD)/libtransport.a
$(PACKET_TOOLS): TOOL_LIBS := $(PKG_LIBS)

# Both ends of connections with virtual machines, and the judge of what was captured (tests/vm).
VM_TOOLS := $(patsubst tests/vm/%.c,$(BUILD)/tests/vm/%,$(wildcard tests/vm/*.c))
$(BUILD)/tests/vm/%: $(BUILD)/obj/tests/vm/%.o $(call objs,$(wildcard tests/vm/lib/*.c)) \
	$(call objs,$(addprefix tests/netns/lib/,ctl.c device.c wire.c)) $(BUILD)/libtransport.a
	@mkdir -p $(@D)
	$(Q)$(CC) -pthread -Wl,--as-needed $^ -libverbs $(PKG_LIBS) $(SAN_LIBS) -o $@

# Memory that goes bad: a program, and the same for Python to load.
$(BUILD)/tests/netns/memory: $(BUILD)/obj/tests/common/spoil.o
$(BUILD)/tests/netns/memory.so: $(call objs,tests/netns/memory.c tests/common/spoil.c $(wildcard tests/netns/lib/*.c))
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -pthread $^ -libverbs $(SAN_LIBS) -o $@
netns-tools: $(BUILD)/tests/netns/memory.so

# ---- fuzzing: libFuzzer with the golden captures as corpus; scripts/fuzz.sh runs them for a bounded time ----

FUZZ_FLAGS := -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Iinclude -Itests/sim $(TEST_CFLAGS)
FUZZ_PACKET_SRC := tests/fuzz/fuzz_packet.c tests/common/golden.c $(addprefix user/transport/,packet.c icrc.c opcode.c guard.c)
FUZZ_SEGMENTS_SRC := tests/fuzz/fuzz_segments.c $(addprefix user/transport/,segments.c packet.c icrc.c opcode.c guard.c)
FUZZ_ENGINE_SRC := tests/fuzz/fuzz_engine.c tests/common/golden.c tests/sim/world.c tests/sim/pair.c $(TRANSPORT_SRC)

$(BUILD)/tests/fuzz/fuzz_packet: $(FUZZ_PACKET_SRC) $(wildcard user/transport/*.h include/xroce/*.h)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_FLAGS) $(FUZZ_PACKET_SRC) -lisal -o $@

$(BUILD)/tests/fuzz/fuzz_engine: $(FUZZ_ENGINE_SRC) $(wildcard user/transport/*.h include/xroce/*.h tests/sim/*.h)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_FLAGS) $(FUZZ_ENGINE_SRC) -lcmocka -lisal -o $@

$(BUILD)/tests/fuzz/fuzz_segments: $(FUZZ_SEGMENTS_SRC) $(wildcard user/transport/*.h include/xroce/*.h)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_FLAGS) $(FUZZ_SEGMENTS_SRC) -lisal -o $@

fuzzers: $(addprefix $(BUILD)/tests/fuzz/fuzz_,packet segments engine)

# Measuring programs: `make bench` runs them; never part of the tests.
$(BUILD)/tests/bench/%: $(BUILD)/obj/tests/bench/%.o $(BUILD)/libtransport.a
	@mkdir -p $(@D)
	$(Q)$(CC) -pthread $^ $(PKG_LIBS) $(SAN_LIBS) -o $@

unit-tests: $(UNIT_TESTS)
sim-tests: $(SIM_TESTS)
bpf-tests: $(BPF_TESTS)
netns-tools: $(NETNS_TOOLS)
vm-tools: $(VM_TOOLS)
bench-tools: $(BENCH_TOOLS) $(BUILD)/tests/netns/idle_qps $(BUILD)/tests/netns/threads
port-tests: $(PORT_TESTS)
tests: unit-tests sim-tests bpf-tests port-tests netns-tools vm-tools

deps:
	scripts/deps.sh
demo: deps
	$(MAKE) all
	scripts/demo.sh $(BUILD)
check: deps
	scripts/deps.sh vm
	scripts/check.sh $(BUILD)

bench:
	scripts/deps.sh bench
	$(MAKE) all bench-tools
	scripts/bench.sh $(BUILD)

# With virtual machines: the whole matrix against Soft-RoCE, and instructions beside it and TCP.
interop: deps
	scripts/deps.sh vm
	$(MAKE) all tests
	tests/vm/interop.sh $(BUILD)
bench-vm: deps
	scripts/deps.sh vm
	$(MAKE) all vm-tools
	tests/vm/bench.sh $(BUILD)

# The library goes to a directory of its own, never where the system's libibverbs is found by default.
install: all
	install -d $(DESTDIR)$(PREFIX)/lib/xroce $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/doc/xroce
	install -m 755 $(LIB) $(DESTDIR)$(PREFIX)/lib/xroce/libibverbs.so.1
	ln -sf libibverbs.so.1 $(DESTDIR)$(PREFIX)/lib/xroce/libibverbs.so
	install -m 755 $(TOOL) $(DESTDIR)$(PREFIX)/bin/xroce
	install -m 644 README.md $(wildcard docs/*.md) $(DESTDIR)$(PREFIX)/share/doc/xroce

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
