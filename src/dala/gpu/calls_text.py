"""The drawing calls in machine code: LLVM IR that speaks CPython's own interface.

A call has a *form*, a row of words in memory that :mod:`dala.gpu.calls` fills in once: what the
interpreter's functions and types are called by address, then the command. Everything out of the
ordinary (keywords, numbers that are no ``int`` or do not fit, colours not seen before, surfaces
that are closed) is left to the same call in Python, which does it all again carefully.
"""

from __future__ import annotations

from string import Template
from typing import Final

#: The words of a form, in order; the fields of a command come behind: least, most, bytes of each.
FORM: Final = (
    "careful", "surface", "int", "tuple", "str", "bytes", "list", "seen", "door", "nudge", "none",
    "exception", "PyObject_Vectorcall", "PyLong_AsLongLong", "PyErr_Occurred", "PyErr_Clear",
    "PyErr_ExceptionMatches", "PyDict_GetItemWithError", "PyBytes_FromStringAndSize",
    "PyObject_GetAttr", "PyList_Append", "Py_IncRef", "Py_DecRef", "PyObject_CallNoArgs",
    "queue", "opcode", "colored", "fields",
)  # fmt: skip
#: Fields that a command has at most, and words of each.
FIELDS: Final = 6
FIELD: Final = 3
WORDS: Final = len(FORM) + FIELDS * FIELD


def _words(*names: str, kind: str = "ptr") -> str:
    """Loads words of a form into values of the same names."""
    return "\n".join(
        f"  %{n}.p = getelementptr i64, ptr %form, i64 {FORM.index(n)}\n"
        f"  %{n} = load {kind}, ptr %{n}.p, !invariant.load !0"
        for n in names
    )


_PUT: Final = Template("""
; 0 with an error set, 1 for the careful way, 2 when it is done
define internal i64 @put(ptr %form, ptr %s, ptr %args, i64 %n, ptr %names) #1 {
entry:
  %bytes.made = alloca [64 x i8], align 16
$load
$numbers
  %more = add i64 %fields, %colored
  %named = icmp ne ptr %names, null
  %counted = icmp ne i64 %n, %more
  %odd = or i1 %named, %counted
  br i1 %odd, label %careful, label %begin
begin:
  %op = trunc i64 %opcode to i8
  store i8 %op, ptr %bytes.made
  br label %next
next:
  %k = phi i64 [ 0, %begin ], [ %k.next, %stored ]
  %at = phi i64 [ 1, %begin ], [ %at.next, %stored ]
  %all = icmp eq i64 %k, %fields
  br i1 %all, label %color, label %field
field:
  %arg.p = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %arg.p
  %arg.type.p = getelementptr i8, ptr %arg, i64 8
  %arg.type = load ptr, ptr %arg.type.p
  %plain = icmp eq ptr %arg.type, %int
  br i1 %plain, label %number, label %careful
number:
  %value = call i64 %PyLong_AsLongLong(ptr %arg)
  %row = mul i64 %k, $field
  %first = add i64 %row, $fields
  %least.p = getelementptr i64, ptr %form, i64 %first
  %least = load i64, ptr %least.p
  %most.p = getelementptr i64, ptr %least.p, i64 1
  %most = load i64, ptr %most.p
  %size.p = getelementptr i64, ptr %least.p, i64 2
  %size = load i64, ptr %size.p
  %low = icmp slt i64 %value, %least
  %high = icmp sgt i64 %value, %most
  %off = or i1 %low, %high
  br i1 %off, label %failed, label %fits
fits:
  %suspect = icmp eq i64 %value, -1
  br i1 %suspect, label %ask, label %stored
ask:
  %told = call ptr %PyErr_Occurred()
  %wrong = icmp ne ptr %told, null
  br i1 %wrong, label %failed, label %stored
stored:
  %place = getelementptr i8, ptr %bytes.made, i64 %at
  store i64 %value, ptr %place, align 1
  %at.next = add i64 %at, %size
  %k.next = add i64 %k, 1
  br label %next
color:
  %wanted = icmp ne i64 %colored, 0
  br i1 %wanted, label %look, label %make
look:
  %shade.p = getelementptr ptr, ptr %args, i64 %fields
  %shade = load ptr, ptr %shade.p
  %shade.type.p = getelementptr i8, ptr %shade, i64 8
  %shade.type = load ptr, ptr %shade.type.p
  %is.tuple = icmp eq ptr %shade.type, %tuple
  %is.str = icmp eq ptr %shade.type, %str
  %known = or i1 %is.tuple, %is.str
  br i1 %known, label %find, label %careful
find:
  %rgba = call ptr %PyDict_GetItemWithError(ptr %seen, ptr %shade)
  %lost = icmp eq ptr %rgba, null
  br i1 %lost, label %failed, label %paint
paint:
  %rgba.p = getelementptr i8, ptr %rgba, i64 $payload
  %word = load i32, ptr %rgba.p, align 1
  %last = getelementptr i8, ptr %bytes.made, i64 %at
  store i32 %word, ptr %last, align 1
  %painted = add i64 %at, 4
  br label %make
make:
  %length = phi i64 [ %at, %color ], [ %painted, %paint ]
  %data = call ptr %PyBytes_FromStringAndSize(ptr %bytes.made, i64 %length)
  %no.room = icmp eq ptr %data, null
  br i1 %no.room, label %error, label %enter
enter:
  ; from here on no Python runs until the bytes are in the queue
  %gate = call ptr %PyObject_GetAttr(ptr %s, ptr %door)
  %shut = icmp eq ptr %gate, null
  br i1 %shut, label %drop, label %append
drop:
  call void %Py_DecRef(ptr %data)
  br label %failed
append:
  %items.p = getelementptr i8, ptr %gate, i64 $payload
  %items = load ptr, ptr %items.p, align 1
  %alert.pp = getelementptr i8, ptr %items.p, i64 8
  %alert.p = load ptr, ptr %alert.pp, align 1
  %bad = call i32 %PyList_Append(ptr %items, ptr %data)
  call void %Py_DecRef(ptr %data)
  %waiting.p = getelementptr i8, ptr %items, i64 16
  %waiting = load i64, ptr %waiting.p
  %alert = load i8, ptr %alert.p
  call void %Py_DecRef(ptr %gate)
  %not.put = icmp ne i32 %bad, 0
  br i1 %not.put, label %error, label %put.in
put.in:
  %many = icmp sgt i64 %waiting, %queue
  %calls = icmp ne i8 %alert, 0
  %stir = or i1 %many, %calls
  br i1 %stir, label %rouse, label %fine
rouse:
  %method = call ptr %PyObject_GetAttr(ptr %s, ptr %nudge)
  %gone = icmp eq ptr %method, null
  br i1 %gone, label %error, label %ring
ring:
  %answer = call ptr %PyObject_CallNoArgs(ptr %method)
  call void %Py_DecRef(ptr %method)
  %refused = icmp eq ptr %answer, null
  br i1 %refused, label %error, label %rung
rung:
  call void %Py_DecRef(ptr %answer)
  br label %fine
failed:
  %what = call ptr %PyErr_Occurred()
  %none.set = icmp eq ptr %what, null
  br i1 %none.set, label %careful, label %judge
judge:
  %ordinary = call i32 %PyErr_ExceptionMatches(ptr %exception)
  %pass = icmp eq i32 %ordinary, 0
  br i1 %pass, label %error, label %forget
forget:
  call void %PyErr_Clear()
  br label %careful
careful:
  ret i64 1
fine:
  ret i64 2
error:
  ret i64 0
}
""")

#: What all functions of a module do, which find the surface first among their arguments; what all
#: methods do.
_WAYS: Final = Template("""
define internal ptr @function(ptr %form, ptr %args, i64 %n, ptr %names) #1 {
entry:
$load
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %first, label %slow
first:
  %s = load ptr, ptr %args
  %type.p = getelementptr i8, ptr %s, i64 8
  %type = load ptr, ptr %type.p
  %ours = icmp eq ptr %type, %surface
  br i1 %ours, label %quick, label %slow
quick:
  %rest = getelementptr ptr, ptr %args, i64 1
  %fewer = sub i64 %n, 1
  %did = call i64 @put(ptr %form, ptr %s, ptr %rest, i64 %fewer, ptr %names)
  switch i64 %did, label %done [ i64 0, label %error
                                 i64 1, label %slow ]
done:
  call void %Py_IncRef(ptr %none)
  ret ptr %none
slow:
  %result = call ptr %PyObject_Vectorcall(ptr %careful, ptr %args, i64 %n, ptr %names)
  ret ptr %result
error:
  ret ptr null
}

define internal ptr @method(ptr %form, ptr %s, ptr %args, i64 %n, ptr %names) #1 {
entry:
  %all = alloca [32 x ptr], align 16
$load
  %did = call i64 @put(ptr %form, ptr %s, ptr %args, i64 %n, ptr %names)
  switch i64 %did, label %done [ i64 0, label %error
                                 i64 1, label %slow ]
done:
  call void %Py_IncRef(ptr %none)
  ret ptr %none
slow:
  store ptr %s, ptr %all
  %named = icmp ne ptr %names, null
  br i1 %named, label %count, label %copy
count:
  %count.p = getelementptr i8, ptr %names, i64 16
  %count.n = load i64, ptr %count.p
  br label %copy
copy:
  %by.name = phi i64 [ 0, %slow ], [ %count.n, %count ]
  %given = add i64 %n, %by.name
  %far = icmp ugt i64 %given, 31
  br i1 %far, label %crowd, label %loop
crowd:
  ; more than anything takes: the first ones are as wrong as all of them
  br label %loop
loop:
  %k = phi i64 [ 0, %copy ], [ 0, %crowd ], [ %k.next, %one ]
  %limit = phi i64 [ %given, %copy ], [ 31, %crowd ], [ %limit, %one ]
  %unnamed = phi i64 [ %n, %copy ], [ 31, %crowd ], [ %unnamed, %one ]
  %called = phi ptr [ %names, %copy ], [ null, %crowd ], [ %called, %one ]
  %over = icmp eq i64 %k, %limit
  br i1 %over, label %go, label %one
one:
  %from = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %from
  %k.next = add i64 %k, 1
  %to = getelementptr ptr, ptr %all, i64 %k.next
  store ptr %arg, ptr %to
  br label %loop
go:
  %with.s = add i64 %unnamed, 1
  %result = call ptr %PyObject_Vectorcall(ptr %careful, ptr %all, i64 %with.s, ptr %called)
  ret ptr %result
error:
  ret ptr null
}
""")

_CALL: Final = Template("""
define ptr @call_$name(ptr %module, ptr %args, i64 %n, ptr %names) #0 {
  %form = getelementptr i64, ptr @forms, i64 $form
  %r = tail call ptr @function(ptr %form, ptr %args, i64 %n, ptr %names)
  ret ptr %r
}

define ptr @method_$name(ptr %s, ptr %args, i64 %n, ptr %names) #0 {
  %form = getelementptr i64, ptr @forms, i64 $form
  %r = tail call ptr @method(ptr %form, ptr %s, ptr %args, i64 %n, ptr %names)
  ret ptr %r
}
""")

#: A list of bytes as the bytes of a batch; None unless all of it is bytes, and none is empty.
_JOIN: Final = Template("""
define ptr @join(ptr %module, ptr %given) #0 {
entry:
  %form = getelementptr i64, ptr @forms, i64 0
$load
  %type.p = getelementptr i8, ptr %given, i64 8
  %type = load ptr, ptr %type.p
  %fits = icmp eq ptr %type, %list
  br i1 %fits, label %start, label %odd
start:
  %n.p = getelementptr i8, ptr %given, i64 16
  %n = load i64, ptr %n.p
  %items.p = getelementptr i8, ptr %given, i64 24
  %items = load ptr, ptr %items.p
  %long = icmp ugt i64 %n, 4294967295
  br i1 %long, label %odd, label %sum
sum:
  %i = phi i64 [ 0, %start ], [ %i.next, %sized ]
  %total = phi i64 [ 5, %start ], [ %total.next, %sized ]
  %counted = icmp eq i64 %i, %n
  br i1 %counted, label %make, label %item
item:
  %o.p = getelementptr ptr, ptr %items, i64 %i
  %o = load ptr, ptr %o.p
  %o.type.p = getelementptr i8, ptr %o, i64 8
  %o.type = load ptr, ptr %o.type.p
  %o.size.p = getelementptr i8, ptr %o, i64 16
  %is.bytes = icmp eq ptr %o.type, %bytes
  br i1 %is.bytes, label %some, label %odd
some:
  %o.size = load i64, ptr %o.size.p
  %empty = icmp eq i64 %o.size, 0
  br i1 %empty, label %odd, label %sized
sized:
  %total.next = add i64 %total, %o.size
  %i.next = add i64 %i, 1
  br label %sum, !llvm.loop !1
make:
  %made = call ptr %PyBytes_FromStringAndSize(ptr null, i64 %total)
  %no.room = icmp eq ptr %made, null
  br i1 %no.room, label %error, label %head
head:
  %out = getelementptr i8, ptr %made, i64 $payload
  store i8 $batch, ptr %out
  %count.p = getelementptr i8, ptr %out, i64 1
  %count = trunc i64 %n to i32
  store i32 %count, ptr %count.p, align 1
  br label %copy
copy:
  %j = phi i64 [ 0, %head ], [ %j.next, %copied ]
  %at = phi i64 [ 5, %head ], [ %at.next, %copied ]
  %finished = icmp eq i64 %j, %n
  br i1 %finished, label %done, label %source
source:
  %b.p = getelementptr ptr, ptr %items, i64 %j
  %b = load ptr, ptr %b.p
  %size.p = getelementptr i8, ptr %b, i64 16
  %size = load i64, ptr %size.p
  %from = getelementptr i8, ptr %b, i64 $payload
  %to = getelementptr i8, ptr %out, i64 %at
  %wide = icmp uge i64 %size, 16
  br i1 %wide, label %vectors, label %narrow
vectors:
  %v = phi i64 [ 0, %source ], [ %v.next, %vectors ]
  %v.from = getelementptr i8, ptr %from, i64 %v
  %v.to = getelementptr i8, ptr %to, i64 %v
  %sixteen = load <16 x i8>, ptr %v.from, align 1
  store <16 x i8> %sixteen, ptr %v.to, align 1
  %v.next = add i64 %v, 16
  %v.end = add i64 %v.next, 16
  %v.more = icmp ule i64 %v.end, %size
  br i1 %v.more, label %vectors, label %rest, !llvm.loop !1
rest:
  ; the last sixteen bytes, which may overlap those before
  %tail = sub i64 %size, 16
  %t.from = getelementptr i8, ptr %from, i64 %tail
  %t.to = getelementptr i8, ptr %to, i64 %tail
  %last = load <16 x i8>, ptr %t.from, align 1
  store <16 x i8> %last, ptr %t.to, align 1
  br label %copied
narrow:
  %c = phi i64 [ 0, %source ], [ %c.next, %narrow ]
  %c.from = getelementptr i8, ptr %from, i64 %c
  %c.to = getelementptr i8, ptr %to, i64 %c
  %byte = load volatile i8, ptr %c.from  ; so that no call of memcpy is made of it
  store i8 %byte, ptr %c.to
  %c.next = add i64 %c, 1
  %c.more = icmp ult i64 %c.next, %size
  br i1 %c.more, label %narrow, label %copied, !llvm.loop !1
copied:
  %at.next = add i64 %at, %size
  %j.next = add i64 %j, 1
  br label %copy, !llvm.loop !1
done:
  ret ptr %made
odd:
  call void %Py_IncRef(ptr %none)
  ret ptr %none
error:
  ret ptr null
}
""")


_FORMS: Final = Template("""
@forms = internal global [$words x i64] zeroinitializer, align 8

define ptr @where() #0 {
  ret ptr @forms
}
""")


def calls_text(names: tuple[str, ...], payload: int, batch: int) -> str:
    """The module: where the forms are; a function and a method for each, in order; and ``join``."""
    load = _words("careful", "surface", "none", "PyObject_Vectorcall", "Py_IncRef")
    parts = [
        _FORMS.substitute(words=WORDS * len(names)),
        _PUT.substitute(
            load=_words(*FORM[2:24]),
            numbers=_words("queue", "opcode", "colored", "fields", kind="i64"),
            field=FIELD,
            fields=len(FORM),
            payload=payload,
        ),
        _WAYS.substitute(load=load),
    ]
    parts += [_CALL.substitute(name=name, form=n * WORDS) for n, name in enumerate(names)]
    load = _words("list", "bytes", "none", "Py_IncRef", "PyBytes_FromStringAndSize")
    parts.append(_JOIN.substitute(load=load, payload=payload, batch=batch))
    parts.append(
        'attributes #0 = { nounwind "no-stack-arg-probe" }\n'
        'attributes #1 = { nounwind noinline "no-stack-arg-probe" }\n!0 = !{}\n'
        '!1 = distinct !{!1, !2, !3}\n!2 = !{!"llvm.loop.unroll.disable"}\n'
        '!3 = !{!"llvm.loop.vectorize.enable", i1 false}\n'
    )
    return "\n".join(parts)
