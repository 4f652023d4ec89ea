/* The text that costs the decoder most when it is repeated, by a count that is the same on every run and machine.

   gcc -O1 -fsanitize-coverage=trace-pc -Isrc/cg/kernels bench/fuzz/verdict_work.c -o /tmp/verdict_work
   /tmp/verdict_work SYMBOLS BYTES [TAIL_SYMBOLS] [SHARE REMAINDER]

   Every sequence of up to SYMBOLS of the symbols below is repeated to BYTES, then every sequence of up to TAIL_SYMBOLS to
   as many more, then comes an answer; the count is of basic blocks entered. The worst are printed with their blocks a byte
   at BYTES and at four times that, and with how often a byte was read again. Of rotations one is tried. With SHARE and
   REMAINDER, only the units whose number leaves that remainder. */
#include <stdio.h>

/* Volatile: the calls that count stand in no source line, so the compiler would take it for a constant. */
static volatile unsigned long long blocks;
__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc(void);
__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc(void) { blocks++; }

#include "verdict/state_machine.h"

static const char *const symbols[] = {
    "[", "]", "{", "}", ",", ":", "\"", "'", "\\", "\xe2\x80\x9c", "\xe2\x80\x9d", "\n", " ", "/", "*", "#", "<", ".", "0", "a", "i", "u",
    "\xef\xbf\xbd", "\xe3\x80\x80", "\xef\xbc\x8c", "\xef\xbc\x9a", "\xe2\x80\xa6", "\xe2", "i:", "\"i\":", "\"verdict\":", "[]",
    "{\"i\":0,\"verdict\":\"keep\"}", "<think>", "</think>",
};
enum { SYMBOLS = sizeof symbols / sizeof *symbols, SHOWN = 40, LABELS = 12, LONGEST = 8 };

typedef struct { double cost; int unit[LONGEST], length, tail[LONGEST], tail_length; } Found;
static Found worst[SHOWN];
static uint8_t *reply;

static size_t fill(size_t at, const int *unit, int length, size_t bytes) {
    size_t end = at + bytes;
    if (!length) return at;
    for (int k = 0; at < end; k = (k + 1) % length) {
        size_t size = strlen(symbols[unit[k]]);
        memcpy(reply + at, symbols[unit[k]], size);
        at += size;
    }
    return at;
}

static double cost(const int *unit, int length, const int *tail, int tail_length, size_t bytes, double *again) {
    static const char answer[] = "\n[{\"i\":0,\"needed_by\":\"none\",\"quote\":\"\",\"verdict\":\"drop\"}]";
    int64_t labels[LABELS];
    Machine m;
    size_t n = fill(fill(0, unit, length, bytes), tail, tail_length, bytes);
    memcpy(reply + n, answer, sizeof answer - 1);
    n += sizeof answer - 1;
    for (int k = 0; k < LABELS; k++) labels[k] = k;
    machine_open(&m, labels, LABELS, SCAN_VECTOR);
    m.s = reply;
    m.n = n;
    blocks = 0;
    machine_run(&m, 1);
    double found = (double)blocks / (double)n;
    if (again) *again = (double)m.reread / (double)n;
    machine_close(&m);
    return found;
}

static void note(const Found *f) {
    int k = SHOWN - 1;
    if (f->cost <= worst[k].cost) return;
    for (; k && worst[k - 1].cost < f->cost; k--) worst[k] = worst[k - 1];
    worst[k] = *f;
}

/* The next sequence in order of length, then of symbols; 0 behind the last. */
static int next(int *unit, int *length, int longest) {
    int k = *length - 1;
    while (k >= 0 && ++unit[k] == SYMBOLS) unit[k--] = 0;
    if (k >= 0) return 1;
    memset(unit, 0, sizeof(int) * LONGEST);
    return ++*length <= longest;
}

/* The first of its rotations, and no shorter unit repeated. */
static int is_first(const int *unit, int length) {
    for (int turn = 1; turn < length; turn++) {
        int k = 0;
        while (k < length && unit[(k + turn) % length] == unit[k]) k++;
        if (k == length || unit[(k + turn) % length] < unit[k]) return 0;
    }
    return 1;
}

static void print(const int *unit, int length) {
    for (int k = 0; k < length; k++)
        for (const char *c = symbols[unit[k]]; *c; c++) { if (*c == '\n') printf("\\n"); else putchar(*c); }
}

int main(int argc, char **argv) {
    int longest = argc > 1 ? atoi(argv[1]) : 3, tail_longest = argc > 3 ? atoi(argv[3]) : 0;
    size_t bytes = argc > 2 ? (size_t)atol(argv[2]) : 3000, tried = 0;
    unsigned share = argc > 5 ? (unsigned)atoi(argv[4]) : 1, remainder = argc > 5 ? (unsigned)atoi(argv[5]) : 0, number = 0;
    Found f = {0};
    if (longest < 1 || longest > LONGEST || tail_longest < 0 || tail_longest > LONGEST || bytes < 1 || bytes > 1 << 24) return 2;
    reply = (uint8_t *)malloc(8 * bytes + 1024);
    if (!reply) return 1;
    while (next(f.unit, &f.length, longest)) {
        if (!is_first(f.unit, f.length) || number++ % share != remainder) continue;
        memset(f.tail, 0, sizeof f.tail);
        f.tail_length = 0;
        do {
            if (f.tail_length && !is_first(f.tail, f.tail_length)) continue;
            f.cost = cost(f.unit, f.length, f.tail, f.tail_length, bytes, NULL);
            note(&f);
            tried++;
        } while (next(f.tail, &f.tail_length, tail_longest));
    }
    printf("%zu replies; blocks a byte at %zu, at four times that, bytes read again a byte\n", tried, bytes);
    for (int k = 0; k < SHOWN && worst[k].cost > 0; k++) {
        Found *w = worst + k;
        double again, more = cost(w->unit, w->length, w->tail, w->tail_length, 4 * bytes, &again);
        printf("%8.2f %8.2f %8.2f  ", w->cost, more, again);
        print(w->unit, w->length);
        if (w->tail_length) { printf("   then   "); print(w->tail, w->tail_length); }
        putchar('\n');
    }
    free(reply);
    return 0;
}
