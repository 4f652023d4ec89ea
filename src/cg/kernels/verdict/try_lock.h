/* One caller at a time, with and without the interpreter's lock: a flag that is taken or found taken. */
#ifndef CG_VERDICT_TRY_LOCK_H
#define CG_VERDICT_TRY_LOCK_H

#if defined(_MSC_VER)
#include <intrin.h>
typedef volatile long TryLock;
static inline int lock_take(TryLock *lock) { return _InterlockedExchange(lock, 1) == 0; }
static inline void lock_give(TryLock *lock) { _InterlockedExchange(lock, 0); }
#else
typedef int TryLock;
static inline int lock_take(TryLock *lock) { return __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) == 0; }
static inline void lock_give(TryLock *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }
#endif

#endif
