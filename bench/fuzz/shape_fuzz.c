/* Coverage-guided fuzzing of the shape rules alone, no interpreter in between:

   clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Isrc/cg/kernels bench/fuzz/shape_fuzz.c -o shape_fuzz
   ./shape_fuzz -max_len=65536 CORPUS

   The vector path must say what the plain path says, sizes must be right, and no byte past the content may be read:
   each input is copied to an allocation of exactly its length. */
#include <stdio.h>
#include <stdlib.h>

#include "shape/describe.h"

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "shape: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ShapeFacts plain, vector;
    int64_t lines = 0;
    size_t i;
    uint8_t *exact = (uint8_t *)malloc(size ? size : 1);
    if (!exact) return 0;
    memcpy(exact, data, size);
    shape_describe(exact, size, 0, &plain);
    shape_describe(exact, size, shape_has_avx2(), &vector);
    for (i = 0; i < size; i++) lines += exact[i] == '\n' || i + 1 == size;
    free(exact);
    require(!plain.failed && plain.kind == vector.kind && plain.records == vector.records, "the two paths differ");
    require(plain.lines == vector.lines && plain.lines == lines, "lines");
    require(plain.kind >= 0 && plain.kind <= KIND_OTHER && plain.records >= -1, "range");
    require(plain.records < 0 || plain.kind == KIND_JSON_ARRAY || plain.kind == KIND_JSON_LINES, "records of no JSON");
    require(plain.records <= (int64_t)size, "more records than bytes");
    return 0;
}
