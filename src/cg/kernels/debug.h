/* CG_ASSERT: an invariant that builds with CG_DEBUG_CYTHON or CG_SANITIZE check, and that others do not even translate. */
#ifndef CG_DEBUG_H
#define CG_DEBUG_H

#ifdef CG_DEBUG
#include <stdio.h>
#include <stdlib.h>
#define CG_ASSERT(x) \
    do { if (!(x)) { fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #x); abort(); } } while (0)
#else
#define CG_ASSERT(x) ((void)0)
#endif

#endif
