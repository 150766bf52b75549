# pg_admission: admission control and overload protection for PostgreSQL

MODULE_big = pg_admission

# First those whose variables every query reads, so that these are on one page.
OBJS = \
	$(WIN32RES) \
	src/settings.o \
	src/shared.o \
	src/admission.o \
	src/nesting.o \
	src/hooks.o \
	src/cpu.o \
	src/exemption.o \
	src/blocking.o \
	src/breaker_functions.o \
	src/breakers.o \
	src/capacity.o \
	src/cgroup.o \
	src/claim.o \
	src/connection.o \
	src/errors.o \
	src/estimate.o \
	src/gate.o \
	src/gather.o \
	src/lending.o \
	src/load.o \
	src/maintenance.o \
	src/memory_feedback.o \
	src/monitors.o \
	src/order.o \
	src/pg_admission.o \
	src/plan_memory.o \
	src/policy.o \
	src/pool.o \
	src/procfs.o \
	src/records.o \
	src/sample.o \
	src/sampler.o \
	src/shed.o \
	src/snapshot.o \
	src/stand_in.o \
	src/statement.o \
	src/stats.o \
	src/textfile.o \
	src/utility.o \
	src/views.o \
	src/wait.o \
	src/warnings.o \
	src/workmem.o

EXTENSION = pg_admission
DATA = pg_admission--1.0.sql
HEADERS = src/pg_admission_monitor.h
PGFILEDESC = "pg_admission - admission control and overload protection"

# make installcheck needs a server that has pg_admission preloaded.
REGRESS = settings exempt estimate
ISOLATION = queue locks
ISOLATION_OPTS = --inputdir=$(srcdir)/test/isolation
TAP_TESTS = 1
PROVE_TESTS ?= test/t/*/*.pl

# The library that 402_breakers.pl loads is built in its folder, and stays there.
ifdef TAP_TESTS
REGRESS_PREP = test-monitors
endif
EXTRA_CLEAN = $(addprefix $(srcdir)/test/modules/monitors/, *.o *.so *.bc)

# ASSERTIONS=1 checks the invariants of the shared state at every change.
ifdef ASSERTIONS
PG_CPPFLAGS += -DPGADM_ASSERTIONS
endif
SHLIB_LINK += $(filter -lm, $(LIBS))

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Not PROVE_FLAGS, which Makefile.global clears: it is for whoever calls make.
PG_PROVE_FLAGS += -I test/perl

.PHONY: test-monitors
test-monitors:
	$(MAKE) -C $(srcdir)/test/modules/monitors with_llvm=no

# Every object depends on every header: they are few, and a stale object would
# have another idea of the shared memory.
$(OBJS) $(OBJS:.o=.bc): $(wildcard $(srcdir)/src/*.h)

# Calls within the library need no detour through its symbol table.
ifeq ($(PORTNAME), linux)
SHLIB_LINK += -Wl,-Bsymbolic
endif
