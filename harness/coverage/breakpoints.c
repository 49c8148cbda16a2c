/* One-shot breakpoints at every function start of chosen shared objects (Linux, x86-64).
 *
 * Function starts come from the binary search table of `.eh_frame_hdr` (LSB Core, "Exception Frame Header"), which
 * release builds keep. `int3` is written over the first byte of each; the SIGTRAP handler marks the function in
 * shared memory, restores the byte and resumes at it, so every function costs one trap in a process.
 *
 * Further addresses may be added later (bp_extend): basic blocks of functions that were reached.
 *
 * All memory lives as long as the process: a function of a library may still trap while the process is torn down.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define MODULES 16
#define SEGMENTS 8
#define INT3 0xCC
#define DW_EH_PE_UDATA4 0x03
#define DW_EH_PE_DATAREL_SDATA4 0x3b

/* Negative results of bp_open; native.py words them. */
enum { NOT_LOADED = -1, NO_TABLE = -2, TABLE_FORMAT = -3, FULL = -4, NO_MEMORY = -5 };

struct segment { uintptr_t low, high; };

struct module {
    uintptr_t base;                     /* load base: ids are offsets from it */
    uintptr_t low, high;                /* span of the executable segments */
    struct segment segments[SEGMENTS];
    int segment_count;
    uint32_t count;
    uint32_t *offsets;                  /* sorted */
    uint8_t *saved;                     /* the byte that int3 replaced */
    uint8_t *known;                     /* 1: disarmed for good, never reported */
    uint8_t *shared;                    /* 1: hit; MAP_SHARED, so that it outlives a killed child */
    uint8_t *volatile marks;            /* `shared`, or a private copy in a detached child */
};

static struct module modules[MODULES];
static int module_count;
static struct sigaction previous;
static int installed;
static long page_size;

static void *pages(size_t size, int flags) {
    void *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Index of an offset in the sorted table, or -1. */
static int64_t find(const struct module *m, uint64_t offset) {
    uint32_t low = 0, high = m->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->offsets[middle] < offset) low = middle + 1;
        else high = middle;
    }
    return low < m->count && m->offsets[low] == offset ? (int64_t)low : -1;
}

static volatile uint8_t *address(const struct module *m, uint32_t index) {
    return (volatile uint8_t *)(m->base + m->offsets[index]);
}

static void chain(int number, siginfo_t *info, void *context) {
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, context);
    } else if (previous.sa_handler == SIG_IGN && info->si_code <= 0) {
        return;                         /* sent by kill(), and ignored */
    } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
        struct sigaction plain;
        memset(&plain, 0, sizeof plain);
        plain.sa_handler = SIG_DFL;
        sigaction(SIGTRAP, &plain, NULL);
        syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGTRAP);
    } else {
        previous.sa_handler(number);
    }
}

static volatile int paused;

/* From here on functions are reached unseen: their breakpoints go, in this process, and nothing is marked. */
void bp_pause(int on) { paused = on; }

/* Decides by the table, not by the byte in memory: another thread may have restored it meanwhile. */
static void on_trap(int number, siginfo_t *info, void *context) {
    greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    uintptr_t at = (uintptr_t)*rip - 1;
    for (int k = 0; info->si_code > 0 && k < module_count; k++) {
        struct module *m = &modules[k];
        if (at < m->low || at >= m->high) continue;
        int64_t index = find(m, at - m->base);
        if (index < 0 || m->saved[index] == INT3) break;
        if (!paused) m->marks[index] = 1;
        *address(m, (uint32_t)index) = m->saved[index];
        *rip = (greg_t)at;
        return;
    }
    chain(number, info, context);
}

static int in_segment(const struct module *m, uintptr_t at) {
    for (int k = 0; k < m->segment_count; k++)
        if (at >= m->segments[k].low && at < m->segments[k].high) return 1;
    return 0;
}

struct wanted { const char *prefix; char *path; size_t size; int result; };

static int read_module(struct dl_phdr_info *info, struct module *m) {
    const uint8_t *header = NULL;
    memset(m, 0, sizeof *m);
    m->base = info->dlpi_addr;
    m->low = UINTPTR_MAX;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[k];
        if (p->p_type == PT_GNU_EH_FRAME) header = (const uint8_t *)(m->base + p->p_vaddr);
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || m->segment_count == SEGMENTS) continue;
        struct segment *s = &m->segments[m->segment_count++];
        s->low = m->base + p->p_vaddr;
        s->high = s->low + p->p_memsz;
        if (s->low < m->low) m->low = s->low;
        if (s->high > m->high) m->high = s->high;
    }
    if (!header || !m->segment_count) return NO_TABLE;
    /* version, encoding of the frame pointer, of the count, of the table; then the pointer and the count (4 bytes) */
    if (header[0] != 1 || header[2] != DW_EH_PE_UDATA4 || header[3] != DW_EH_PE_DATAREL_SDATA4) return TABLE_FORMAT;
    if ((header[1] & 0x0f) != 0x0b && (header[1] & 0x0f) != 0x03) return TABLE_FORMAT;
    uint32_t entries;
    memcpy(&entries, header + 8, 4);
    m->offsets = pages((size_t)entries * 4, MAP_PRIVATE);
    if (!m->offsets) return NO_MEMORY;
    uint64_t last = UINT64_MAX;
    for (uint32_t k = 0; k < entries; k++) {
        int32_t relative;
        memcpy(&relative, header + 12 + (size_t)k * 8, 4);
        uintptr_t at = (uintptr_t)(header + relative);
        uint64_t offset = at - m->base;
        if (!in_segment(m, at) || offset > UINT32_MAX || offset == last) continue;
        if (m->count && offset < last) return TABLE_FORMAT;
        m->offsets[m->count++] = (uint32_t)offset;
        last = offset;
    }
    m->saved = pages(m->count, MAP_PRIVATE);
    m->known = pages(m->count, MAP_PRIVATE);
    m->shared = pages(m->count, MAP_SHARED);
    m->marks = m->shared;
    return m->saved && m->known && m->shared ? 0 : NO_MEMORY;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    struct wanted *w = data;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    size_t length = strlen(w->prefix);
    (void)size;
    /* "libc10" is libc10.so, libc10.so.1 or the hashed libc10-1a2b.so of a repaired wheel, never libc10_cuda.so */
    if (strncmp(name, w->prefix, length) != 0 || (name[length] != '.' && name[length] != '-')) return 0;
    if (!strstr(name, ".so")) return 0;
    if (module_count == MODULES) { w->result = FULL; return 1; }
    w->result = read_module(info, &modules[module_count]);
    if (w->result == 0) {
        w->result = module_count++;
        strncpy(w->path, info->dlpi_name, w->size - 1);
    }
    return 1;
}

/* Read the table of a loaded library. Its index, or a negative reason; `path` receives its file. */
int bp_open(const char *prefix, char *path, size_t size) {
    struct wanted w = {prefix, path, size, NOT_LOADED};
    page_size = sysconf(_SC_PAGESIZE);
    dl_iterate_phdr(visit, &w);
    return w.result;
}

uint32_t bp_count(int module) { return modules[module].count; }

static int protect(const struct module *m, int protection) {
    for (int k = 0; k < m->segment_count; k++) {
        uintptr_t low = m->segments[k].low & ~(uintptr_t)(page_size - 1);
        if (mprotect((void *)low, m->segments[k].high - low, protection) != 0) return errno ? errno : EPERM;
    }
    return 0;
}

/* Arm everything that was opened. 0, or the errno of what was refused; then nothing is armed. */
int bp_arm(void) {
    for (int k = 0; k < module_count; k++) {
        int error = protect(&modules[k], PROT_READ | PROT_WRITE | PROT_EXEC);
        if (error) {
            while (k-- > 0) protect(&modules[k], PROT_READ | PROT_EXEC);
            return error;
        }
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGTRAP, &action, &previous) != 0) return errno;
    installed = 1;
    stack_t current;
    if (sigaltstack(NULL, &current) == 0 && (current.ss_flags & SS_DISABLE)) {
        /* A trap deep in a recursion must not be what overflows the stack: AVX-512 frames take kilobytes. */
        stack_t stack = {.ss_sp = NULL, .ss_flags = 0, .ss_size = 128 * 1024};
        stack.ss_sp = pages(stack.ss_size, MAP_PRIVATE);
        if (stack.ss_sp) sigaltstack(&stack, NULL);
    }
    for (int k = 0; k < module_count; k++) {
        struct module *m = &modules[k];
        for (uint32_t i = 0; i < m->count; i++) m->saved[i] = *address(m, i);
        for (uint32_t i = 0; i < m->count; i++)
            if (!m->known[i] && m->saved[i] != INT3) *address(m, i) = INT3;
    }
    return 0;
}

/* Clear the marks; arm again what this very process ran since, so that a later child still reports it. */
void bp_reset(void) {
    for (int k = 0; k < module_count; k++) {
        struct module *m = &modules[k];
        for (uint32_t i = 0; i < m->count;) {
            uint64_t eight;
            if (i + 8 <= m->count && (memcpy(&eight, m->shared + i, 8), eight == 0)) { i += 8; continue; }
            if (m->shared[i]) {
                m->shared[i] = 0;
                if (installed && !m->known[i] && m->saved[i] != INT3) *address(m, i) = INT3;
            }
            i++;
        }
    }
}

static void learn(struct module *m, uint32_t index) {
    m->known[index] = 1;
    if (installed && *address(m, index) == INT3) *address(m, index) = m->saved[index];
}

void bp_known(int module, const uint64_t *ids, size_t count) {
    for (size_t k = 0; k < count; k++) {
        int64_t index = find(&modules[module], ids[k]);
        if (index >= 0) learn(&modules[module], (uint32_t)index);
    }
}

/* Ids that are marked and not known, ascending, at most bp_count(); `keep` leaves them unknown. */
size_t bp_harvest(int module, uint64_t *ids, int keep) {
    struct module *m = &modules[module];
    size_t found = 0;
    for (uint32_t i = 0; i < m->count;) {
        uint64_t eight;
        if (i + 8 <= m->count && (memcpy(&eight, m->shared + i, 8), eight == 0)) { i += 8; continue; }
        if (m->shared[i] && !m->known[i]) {
            ids[found++] = m->offsets[i];
            if (!keep) learn(m, i);
        }
        i++;
    }
    return found;
}

static void release(const struct module *m, uint32_t count) {
    size_t size = count ? count : 1;
    if (m->offsets) munmap(m->offsets, count ? (size_t)count * 4 : 1);
    if (m->saved) munmap(m->saved, size);
    if (m->known) munmap(m->known, size);
    if (m->shared) munmap(m->shared, size);
}

/* From here on this process marks private memory. 0, or -1 when there is none left. */
int bp_detach(void) {
    for (int k = 0; k < module_count; k++) {
        uint8_t *own = pages(modules[k].count, MAP_PRIVATE);
        if (!own) return -1;
        modules[k].marks = own;
    }
    return 0;
}

/* Arm further addresses of a module, such as starts of basic blocks: offsets, ascending. The number added, or NO_MEMORY.
 * Addresses that are in the table, or outside the code, are left out; whether each is the start of an instruction is the
 * caller's to know. Between two children, in a process without other threads: the tables move. */
int64_t bp_extend(int module, const uint64_t *ids, size_t count) {
    struct module *m = &modules[module], next = *m;
    uint32_t added = 0, old = 0, at = 0;
    if (!installed) return 0;
    uint32_t *fresh = pages(count * 4, MAP_PRIVATE);
    if (!fresh) return NO_MEMORY;
    for (size_t k = 0; k < count; k++) {
        if (ids[k] > UINT32_MAX || (k && ids[k] <= ids[k - 1]) || !in_segment(m, m->base + ids[k])) continue;
        if (find(m, ids[k]) < 0) fresh[added++] = (uint32_t)ids[k];
    }
    next.count = m->count + added;
    next.offsets = pages((size_t)next.count * 4, MAP_PRIVATE);
    next.saved = pages(next.count, MAP_PRIVATE);
    next.known = pages(next.count, MAP_PRIVATE);
    next.shared = pages(next.count, MAP_SHARED);
    next.marks = next.shared;
    if (!added || !next.offsets || !next.saved || !next.known || !next.shared) {
        release(&next, next.count);
        munmap(fresh, count ? count * 4 : 1);
        return added ? NO_MEMORY : 0;
    }
    for (uint32_t k = 0; k < added || old < m->count; at++) {
        if (old < m->count && (k == added || m->offsets[old] < fresh[k])) {
            next.offsets[at] = m->offsets[old];
            next.saved[at] = m->saved[old];
            next.known[at] = m->known[old];
            next.shared[at] = m->shared[old++];
        } else {
            next.offsets[at] = fresh[k++];
            next.saved[at] = *address(&next, at);
        }
    }
    struct module former = *m;
    *m = next;
    release(&former, former.count);
    for (uint32_t k = 0; k < added; k++) {
        int64_t index = find(m, fresh[k]);
        if (m->saved[index] != INT3) *address(m, (uint32_t)index) = INT3;
    }
    munmap(fresh, count * 4);
    return added;
}

void bp_stop(void) {
    if (!installed) return;
    for (int k = 0; k < module_count; k++) {
        struct module *m = &modules[k];
        for (uint32_t i = 0; i < m->count; i++)
            if (m->saved[i] != INT3 && *address(m, i) == INT3) *address(m, i) = m->saved[i];
        protect(m, PROT_READ | PROT_EXEC);
    }
    installed = 0;
    sigaction(SIGTRAP, &previous, NULL);
}
