/* The trace function of Python 3.10 and 3.11 in C: marks lines that are not known.
 *
 * Python-level trace functions cost more than what they observe; this one costs what tracing itself costs. It runs no
 * Python code, so nothing of it can meet Dynamo's frame evaluation.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>

#define FOREIGN (-1)                    /* code outside the measured packages */

struct entry { PyCodeObject *code; Py_ssize_t base; };

typedef struct {
    PyObject_HEAD
    Py_buffer known, marks;
    PyObject *bases;                    /* path -> slot of line 0 */
    struct entry *entries;              /* open addressing by code object, which each entry keeps alive */
    size_t size, used;                  /* size is a power of two */
} Tracer;

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

/* Slot of line 0 of the code's file, or FOREIGN. Out of memory counts as foreign: a line is lost, nothing else. */
static Py_ssize_t base_of(Tracer *self, PyCodeObject *code) {
    struct entry *e = probe(self->entries, self->size, code);
    if (e->code) return e->base;
    if (self->used * 2 >= self->size) {
        if (grow(self) < 0) return FOREIGN;
        e = probe(self->entries, self->size, code);
    }
    PyObject *base = PyDict_GetItemWithError(self->bases, code->co_filename);
    Py_ssize_t slot = base ? PyLong_AsSsize_t(base) : FOREIGN;
    if (PyErr_Occurred()) PyErr_Clear();
    Py_INCREF(code);
    e->code = code;
    e->base = slot;
    self->used++;
    return slot;
}

static int on_event(PyObject *object, PyFrameObject *frame, int what, PyObject *argument) {
    (void)argument;
    if (what != PyTrace_LINE && what != PyTrace_CALL) return 0;
    Tracer *self = (Tracer *)object;
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_ssize_t base = base_of(self, code);
    Py_DECREF(code);                    /* the frame holds it */
    if (base == FOREIGN) return 0;
    Py_ssize_t slot = base + PyFrame_GetLineNumber(frame);
    if (slot >= base && slot < self->known.len && !((char *)self->known.buf)[slot])
        ((char *)self->marks.buf)[slot] = 1;
    return 0;
}

static PyObject *resume(PyObject *self, PyObject *unused) {
    (void)unused;
    PyEval_SetTrace(on_event, self);
    Py_RETURN_NONE;
}

static PyObject *pause_tracing(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    PyEval_SetTrace(NULL, NULL);
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
    self->size = 1 << 15;
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
    for (size_t k = 0; self->entries && k < self->size; k++) Py_XDECREF(self->entries[k].code);
    PyMem_Free(self->entries);
    Py_XDECREF(self->bases);
    if (self->known.obj) PyBuffer_Release(&self->known);
    if (self->marks.obj) PyBuffer_Release(&self->marks);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {
    {"resume", resume, METH_NOARGS, "Trace this thread from here on."},
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
