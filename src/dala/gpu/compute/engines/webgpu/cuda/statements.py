"""ShaderStatements: they are read and translated at once."""

from __future__ import annotations

from dala.gpu.compute.engines.webgpu.cuda.expressions import ShaderExpressions
from dala.gpu.compute.engines.webgpu.cuda.types import (
    INT,
    WgslArray,
    WgslPlace,
    WgslType,
    WgslValue,
)


class ShaderStatements(ShaderExpressions):
    """The body of a function."""

    #: The type of the function's result.
    result: WgslType | None = None

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        #: Where break and continue go, the innermost last.
        self.breaks: list[str] = []
        self.continues: list[str] = []

    def block(self) -> None:
        """Translate the statements between braces."""
        self.cursor.expect("{")
        self.scopes.append({})
        while not self.cursor.skip("}"):
            self.statement()
        self.scopes.pop()

    def statement(self) -> None:
        """Translate one statement."""
        cursor, word = self.cursor, self.cursor.next
        if word == "{":
            self.block()
        elif cursor.skip(";"):
            pass
        elif word in ("if", "for", "while", "loop", "switch"):
            cursor.take()
            getattr(self, f"_{word}")()
        else:
            self.simple()
            cursor.expect(";")

    def simple(self) -> None:
        """Translate a statement without a block."""
        cursor, emitter, word = self.cursor, self.emitter, self.cursor.next
        if word in ("let", "const", "var"):
            self._declare(cursor.take())
        elif cursor.skip("return"):
            if cursor.next == ";":
                emitter.end(self.module.target.leave if self.is_entry else "ret void")
            else:
                assert self.result is not None
                value = emitter.coerce(self.expression(), self.result)
                emitter.end(f"ret {value.kind.llvm} {value.text}")
            emitter.lines.append(f"{emitter.name('after')}:")
        elif word in ("break", "continue"):
            cursor.take()
            if word == "break" and cursor.skip("if"):
                rest = emitter.name("rest")
                emitter.branch(self.expression(), self.breaks[-1], rest)
            else:
                target = self.breaks if word == "break" else self.continues
                emitter.end(f"br label %{target[-1]}")
                rest = emitter.name("after")
            emitter.lines.append(f"{rest}:")
        elif cursor.skip("_"):
            cursor.expect("=")
            self.expression()
        else:
            self._assign()

    is_entry = False

    def _declare(self, word: str) -> None:
        cursor, emitter = self.cursor, self.emitter
        if cursor.next == "<":  # var<function>
            cursor.skip_block("<", ">")
        name = cursor.take()
        kind = self.module.type(cursor) if cursor.skip(":") else None
        value = self.expression() if cursor.skip("=") else None
        if value is None:
            assert kind is not None
            value = self.construct(kind, [])
        if kind is not None:
            value = emitter.coerce(value, kind)
        elif word != "const":
            value = emitter.concrete(value)
        if word == "var" or isinstance(value.kind, WgslArray):
            place = emitter.variable(value.kind)
            emitter.store(place, value)
            self.scopes[-1][name] = place
        else:
            self.scopes[-1][name] = value

    def _assign(self) -> None:
        cursor, emitter = self.cursor, self.emitter
        place = self.postfix()
        sign = cursor.next
        if sign in ("++", "--"):
            cursor.take()
            assert isinstance(place, WgslPlace)
            old = emitter.load(place)
            emitter.store(place, self.operate(sign[0], old, WgslValue(INT, "", 1)))
        elif sign == "=":
            cursor.take()
            value = self.expression()
            assert isinstance(place, WgslPlace)
            emitter.store(place, value)
        elif sign.endswith("=") and sign not in ("==", "<=", ">=", "!="):
            cursor.take()
            assert isinstance(place, WgslPlace)
            old = emitter.load(place)
            emitter.store(place, self.operate(sign[:-1], old, self.expression()))
        # else a call, whose result is not used

    # control ----------------------------------------------------------------------------------

    def _if(self) -> None:
        emitter = self.emitter
        yes, no, done = (emitter.name(stem) for stem in ("yes", "no", "done"))
        emitter.branch(self.expression(), yes, no)
        emitter.block(yes)
        self.block()
        emitter.end(f"br label %{done}")
        emitter.block(no)
        if self.cursor.skip("else"):
            if self.cursor.skip("if"):
                self._if()
            else:
                self.block()
        emitter.block(done)

    def _repeat(self, test: int, step: int, body: int, end: int) -> None:
        """Translate a loop whose parts begin at these tokens; -1 for those that are missing."""
        emitter, cursor = self.emitter, self.cursor
        head, inside, again, done = (emitter.name(s) for s in ("loop", "body", "again", "done"))
        emitter.block(head)
        if test >= 0:
            cursor.at = test
            emitter.branch(self.expression(), inside, done)
        emitter.block(inside)
        self.breaks.append(done)
        self.continues.append(again)
        cursor.at = body
        self.block()
        emitter.block(again)
        if step >= 0:
            cursor.at = step
            self.simple()
        self.breaks.pop()
        self.continues.pop()
        emitter.end(f"br label %{head}{self.module.loop_hint()}")
        emitter.block(done)
        cursor.at = end

    def _body_end(self, body: int) -> int:
        self.cursor.at = body
        self.cursor.skip_block("{", "}")
        return self.cursor.at

    def _for(self) -> None:
        cursor = self.cursor
        self.scopes.append({})
        cursor.expect("(")
        if cursor.next != ";":
            self.simple()
        cursor.expect(";")
        test = cursor.at if cursor.next != ";" else -1
        while not cursor.skip(";"):
            cursor.take()
        step = cursor.at if cursor.next != ")" else -1
        depth = 1
        while depth:
            token = cursor.take()
            depth += (token == "(") - (token == ")")
        body = cursor.at
        self._repeat(test, step, body, self._body_end(body))
        self.scopes.pop()

    def _while(self) -> None:
        test = self.cursor.at
        while self.cursor.next != "{":
            self.cursor.take()
        body = self.cursor.at
        self._repeat(test, -1, body, self._body_end(body))

    def _loop(self) -> None:
        body = self.cursor.at
        self._repeat(-1, -1, body, self._body_end(body))

    def _switch(self) -> None:
        emitter, cursor = self.emitter, self.cursor
        value = emitter.concrete(self.expression())
        done = emitter.name("done")
        self.breaks.append(done)
        cursor.expect("{")
        default = -1
        while not cursor.skip("}"):
            if cursor.skip("default"):
                cursor.skip(":")
                default = cursor.at
                cursor.skip_block("{", "}")
                continue
            cursor.expect("case")
            tests: list[WgslValue] = []
            while cursor.next not in (":", "{"):
                tests.append(self.operate("==", value, self.expression()))
                cursor.skip(",")
            cursor.skip(":")
            yes, no = emitter.name("case"), emitter.name("next")
            total = tests[0]
            for other in tests[1:]:
                total = self.operate("|", total, other)
            emitter.branch(total, yes, no)
            emitter.block(yes)
            self.block()
            emitter.end(f"br label %{done}")
            emitter.block(no)
        end = cursor.at
        if default >= 0:
            cursor.at = default
            self.block()
        emitter.block(done)
        self.breaks.pop()
        cursor.at = end
