/* One caller at a time, with and without the interpreter's lock: a flag that is taken or found taken. */
#ifndef CG_VERDICT_GUARD_H
#define CG_VERDICT_GUARD_H

#if defined(_MSC_VER)
#include <intrin.h>
typedef volatile long Guard;
static inline int guard_take(Guard *g) { return _InterlockedExchange(g, 1) == 0; }
static inline void guard_give(Guard *g) { _InterlockedExchange(g, 0); }
#else
typedef int Guard;
static inline int guard_take(Guard *g) { return __atomic_exchange_n(g, 1, __ATOMIC_ACQUIRE) == 0; }
static inline void guard_give(Guard *g) { __atomic_store_n(g, 0, __ATOMIC_RELEASE); }
#endif

#endif
