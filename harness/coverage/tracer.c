/* The tracer of Python 3.10 and 3.11: marks lines that are not known, and stays off code that has none left.
 *
 * A trace function slows the interpreter down for every instruction, whatever it does itself. So tracing is switched
 * on and off frame by frame, by a frame evaluation function (PEP 523; Dynamo's own calls the one that was there before):
 * only code with a line that is neither known nor marked is traced, and code that is called often only in some of its
 * calls. Nothing here runs Python code, so nothing of it can meet Dynamo.
 */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE 1                 /* the layout of a frame, for its code object */
#include <Python.h>
#include <frameobject.h>
#if PY_VERSION_HEX >= 0x030B0000
#include <internal/pycore_frame.h>
typedef struct _PyInterpreterFrame eval_frame;
#else
typedef PyFrameObject eval_frame;
#endif
#undef Py_BUILD_CORE

#define FOREIGN (-1)                    /* code outside the measured packages */
#define ALWAYS 8                        /* calls of one code object in one process that are traced in any case */
#define SHARE 8                         /* of later ones, one in so many */

struct entry {
    PyCodeObject *code;
    Py_ssize_t base;                    /* slot of line 0 of its file, or FOREIGN */
    int32_t *slots;                     /* one a line of the code object */
    uint32_t count, calls;
    int32_t pending;                    /* lines neither known nor marked; -1: to be counted */
};

typedef struct {
    PyObject_HEAD
    Py_buffer known, marks;
    PyObject *bases;                    /* path -> slot of line 0 */
    struct entry *entries;              /* open addressing by code object, which each entry keeps alive */
    size_t size, used;                  /* size is a power of two */
} Tracer;

static Tracer *active;                  /* between resume and pause */
static _PyFrameEvalFunction previous;

static struct entry *probe(struct entry *entries, size_t size, PyCodeObject *code) {
    size_t at = ((uintptr_t)code >> 4) * (size_t)0x9E3779B97F4A7C15ull >> 20;
    for (;; at++) {
        struct entry *e = &entries[at & (size - 1)];
        if (e->code == code || e->code == NULL) return e;
    }
}

static int grow(Tracer *self) {
    size_t size = self->size * 2;
    struct entry *entries = PyMem_Calloc(size, sizeof *entries);
    if (!entries) return -1;
    for (size_t k = 0; k < self->size; k++)
        if (self->entries[k].code) *probe(entries, size, self->entries[k].code) = self->entries[k];
    PyMem_Free(self->entries);
    self->entries = entries;
    self->size = size;
    return 0;
}

static int has_slot(const struct entry *e, int32_t slot) {
    for (uint32_t k = e->count; k-- > 0;)
        if (e->slots[k] == slot) return 1;
    return 0;
}

/* The slots of a code object's lines, its first one included. What fails leaves some out: lines are lost, no more. */
static void read_lines(struct entry *e) {
    uint32_t room = 16;
    PyObject *ranges = PyObject_CallMethod((PyObject *)e->code, "co_lines", NULL), *range;
    e->slots = PyMem_Malloc(room * sizeof *e->slots);
    if (e->slots) e->slots[e->count++] = (int32_t)(e->base + e->code->co_firstlineno);
    while (ranges && e->slots && (range = PyIter_Next(ranges))) {
        PyObject *line = PyTuple_GET_ITEM(range, 2);
        int32_t slot = line == Py_None ? -1 : (int32_t)(e->base + PyLong_AsLong(line));
        Py_DECREF(range);
        if (slot <= e->base || has_slot(e, slot)) continue;
        if (e->count == room) {
            int32_t *more = PyMem_Realloc(e->slots, 2 * room * sizeof *more);
            if (!more) break;
            e->slots = more;
            room *= 2;
        }
        e->slots[e->count++] = slot;
    }
    Py_XDECREF(ranges);
}

static struct entry *entry_of(Tracer *self, PyCodeObject *code) {
    struct entry *e = probe(self->entries, self->size, code);
    if (e->code) return e;
    if (self->used * 2 >= self->size) {
        if (grow(self) < 0) return NULL;
        e = probe(self->entries, self->size, code);
    }
    PyObject *type, *value, *trace;     /* a generator may be entered with an exception pending */
    PyErr_Fetch(&type, &value, &trace);
    PyObject *base = PyDict_GetItemWithError(self->bases, code->co_filename);
    e->base = base ? PyLong_AsSsize_t(base) : FOREIGN;
    Py_INCREF(code);
    e->code = code;
    e->pending = -1;
    self->used++;
    if (e->base != FOREIGN) read_lines(e);
    if (PyErr_Occurred()) PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return e;
}

static void count_pending(Tracer *self, struct entry *e) {
    const char *known = self->known.buf, *marks = self->marks.buf;
    e->pending = 0;
    for (uint32_t k = 0; k < e->count; k++) {
        Py_ssize_t slot = e->slots[k];
        e->pending += slot < self->known.len && !known[slot] && !marks[slot];
    }
}

/* Is this call of the code to be traced? */
static int wanted(Tracer *self, PyCodeObject *code) {
    struct entry *e = entry_of(self, code);
    if (!e || e->base == FOREIGN) return 0;
    if (e->pending < 0) count_pending(self, e);
    if (!e->pending) return 0;
    uint32_t call = e->calls++;
    return call < ALWAYS || (call * 2654435761u >> 16) % SHARE == 0;
}

static int on_event(PyObject *object, PyFrameObject *frame, int what, PyObject *argument) {
    (void)argument;
    if (what != PyTrace_LINE && what != PyTrace_CALL) return 0;
    Tracer *self = (Tracer *)object;
    PyCodeObject *code = PyFrame_GetCode(frame);
    struct entry *e = entry_of(self, code);
    Py_DECREF(code);                    /* the frame holds it */
    if (!e || e->base == FOREIGN) return 0;
    Py_ssize_t slot = e->base + PyFrame_GetLineNumber(frame);
    char *known = self->known.buf, *marks = self->marks.buf;
    if (slot >= e->base && slot < self->known.len && !known[slot] && !marks[slot]) {
        marks[slot] = 1;
        e->pending = -1;
    }
    return 0;
}

static PyObject *evaluate(PyThreadState *state, eval_frame *frame, int throw) {
    Tracer *self = active;
    if (!self) return previous(state, frame, throw);
    int before = state->cframe->use_tracing;
    /* Another thread has no trace function: tracing its frames would call nothing. */
    state->cframe->use_tracing = state->c_tracefunc == on_event && wanted(self, frame->f_code) ? 255 : 0;
    PyObject *result = previous(state, frame, throw);
    state->cframe->use_tracing = before;
    return result;
}

static PyObject *resume(PyObject *self, PyObject *unused) {
    (void)unused;
    PyThreadState *state = PyThreadState_Get();
    PyInterpreterState *interpreter = PyThreadState_GetInterpreter(state);
    if (!previous) {
        previous = _PyInterpreterState_GetEvalFrameFunc(interpreter);
        _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
    }
    active = (Tracer *)self;
    PyEval_SetTrace(on_event, self);
    state->cframe->use_tracing = 0;     /* of the caller, who is none of those measured */
    Py_RETURN_NONE;
}

static PyObject *pause_tracing(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    active = NULL;
    PyEval_SetTrace(NULL, NULL);
    Py_RETURN_NONE;
}

static int add_nested(Tracer *self, PyCodeObject *code) {
    if (!entry_of(self, code)) return -1;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(code->co_consts); k++) {
        PyObject *constant = PyTuple_GET_ITEM(code->co_consts, k);
        if (PyCode_Check(constant) && add_nested(self, (PyCodeObject *)constant) < 0) return -1;
    }
    return 0;
}

static PyObject *add(PyObject *self, PyObject *code) {
    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "add() takes a code object");
        return NULL;
    }
    if (add_nested((Tracer *)self, (PyCodeObject *)code) < 0) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *recount(PyObject *object, PyObject *unused) {
    (void)unused;
    Tracer *self = (Tracer *)object;
    for (size_t k = 0; k < self->size; k++) {
        struct entry *e = &self->entries[k];
        if (!e->code) continue;
        e->calls = 0;
        if (e->base != FOREIGN) count_pending(self, e);
    }
    Py_RETURN_NONE;
}

static int tracer_init(PyObject *object, PyObject *arguments, PyObject *keywords) {
    Tracer *self = (Tracer *)object;
    static char *names[] = {"known", "marks", "bases", NULL};
    PyObject *bases;
    if (self->entries) {
        PyErr_SetString(PyExc_RuntimeError, "a Tracer is initialised once");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "y*w*O!", names, &self->known, &self->marks,
                                     &PyDict_Type, &bases))
        return -1;
    if (self->known.len != self->marks.len) {
        PyErr_SetString(PyExc_ValueError, "known and marks differ in length");
        return -1;
    }
    self->size = 1 << 16;
    self->entries = PyMem_Calloc(self->size, sizeof *self->entries);
    if (!self->entries) {
        PyErr_NoMemory();
        return -1;
    }
    self->bases = Py_NewRef(bases);
    return 0;
}

static void tracer_dealloc(PyObject *object) {
    Tracer *self = (Tracer *)object;
    for (size_t k = 0; self->entries && k < self->size; k++) {
        Py_XDECREF(self->entries[k].code);
        PyMem_Free(self->entries[k].slots);
    }
    PyMem_Free(self->entries);
    Py_XDECREF(self->bases);
    if (self->known.obj) PyBuffer_Release(&self->known);
    if (self->marks.obj) PyBuffer_Release(&self->marks);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {
    {"resume", resume, METH_NOARGS, "Trace this thread from here on."},
    {"add", add, METH_O, "Read the lines of a code object and of those inside it, so that no child has to."},
    {"recount", recount, METH_NOARGS, "In the server, before a fork: what is known has changed, or marks are gone."},
    {"pause", pause_tracing, METH_NOARGS, "Trace this thread no more."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject tracer_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tracer.Tracer",
    .tp_doc = "Tracer(known, marks, bases): marks the lines of files in bases that are not known.",
    .tp_basicsize = sizeof(Tracer),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = tracer_init,
    .tp_dealloc = tracer_dealloc,
    .tp_methods = methods,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "tracer", .m_size = -1};

PyMODINIT_FUNC PyInit_tracer(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module || PyType_Ready(&tracer_type) < 0) return NULL;
    Py_INCREF(&tracer_type);
    if (PyModule_AddObject(module, "Tracer", (PyObject *)&tracer_type) < 0) {
        Py_DECREF(&tracer_type);
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
