"""Where the product can be mutated, and how: found over clang's syntax tree (libclang), so that an operand ends where it ends.

find(path, root) gives the Sites of one file. A Site says which bytes it covers and what is put before and after them, so that all
sites of a file, which nest as the tree does, can be woven in at once (weave.py). What is left out, and why: README.md.
"""
import dataclasses
import re

import clang.cindex
from clang.cindex import CursorKind as K

BOUNDS = {"<": ("less", "<="), "<=": ("less_or_equal", "<"), ">": ("more", ">="), ">=": ("more_or_equal", ">")}
# Calls that only tell people something, count, or save time: without them the product does the same.
UNWORTHY_CALLS = re.compile(r"^(log|log_line|trace_stage|at_reader|reserve|shrink_to_fit)$")
COUNTING = re.compile(r"counters_?\s*(\.|->)\s*add\s*\($")
MACRO = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b(\s*\()?")
CONSTANT = re.compile(r"\b(constexpr|consteval|constinit|enum)\b")
FUNCTIONS = (K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.DESTRUCTOR, K.FUNCTION_TEMPLATE, K.CONVERSION_FUNCTION, K.LAMBDA_EXPR)


@dataclasses.dataclass
class Site:
    file: str
    line: int
    text: str        # the line, stripped
    kind: str
    change: str      # in words; file, text, kind and change name a mutant whatever its line
    start: int       # bytes [start, end) of the file
    end: int
    before: str      # NUMBER stands for the mutant's number
    after: str
    cut: tuple = ()  # (start, end, instead): an operator in the middle that is replaced

    def key(self):
        return (self.file, self.text, self.kind, self.change)


class Finder:
    def __init__(self, name, root):
        self.name = name
        self.path = str(root / name)
        self.source = (root / name).read_bytes()
        self.text = self.source.decode("latin-1")  # one character a byte: clang's offsets are bytes
        self.lines = self.text.split("\n")
        code = blank(self.text)
        self.code = code
        self.macros = []
        for match in MACRO.finditer(code):
            if len(match.group(0)) < 3:
                continue
            if match.group(1):
                self.macros.append((match.start(), closing(code, match.end() - 1), True))
            else:
                self.macros.append((match.start(), match.end(), False))
        self.sites = []
        arguments = ["-x", "c++", "-std=c++20", f"-I{root}", "-DBOOST_ASIO_SEPARATE_COMPILATION", "-DBOOST_ASIO_DISABLE_CO_AWAIT",
                     "-DSPDLOG_FMT_EXTERNAL", "-DSPDLOG_COMPILED_LIB", "-w"]
        unit = clang.cindex.Index.create().parse(self.path, arguments)
        self.errors = [str(d) for d in unit.diagnostics if d.severity >= clang.cindex.Diagnostic.Error]
        for child in unit.cursor.get_children():
            if child.location.file is not None and child.location.file.name == self.path:
                self.walk(child, False, None)
        self.sites.sort(key=lambda s: (s.start, -s.end, s.kind, s.change))

    # --- places ---

    def span(self, cursor):
        """(start, end) of what the cursor covers, or None where a macro stands in the way."""
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        for begin, stop, call in self.macros:
            if begin < start < stop or (call and begin <= start < stop):
                return None
            if begin <= end < stop:
                end = stop
        if end <= start or not balanced(self.code[start:end]):
            return None
        return start, end

    def add(self, kind, change, span, before, after, at=None, cut=()):
        line = self.text.count("\n", 0, span[0] if at is None else at) + 1
        text = " ".join(self.lines[line - 1].encode("latin-1").decode().split())
        change = " ".join(change.encode("latin-1").decode().split())
        if len(change) > 110:
            change = change[:107] + "..."
        self.sites.append(Site(self.name, line, text, kind, change, *span, before, after, cut))

    def slice(self, span):
        return self.text[span[0]:span[1]]

    # --- the tree ---

    def walk(self, cursor, constant, parent):
        kind = cursor.kind
        if kind in (K.STATIC_ASSERT, K.ENUM_DECL, K.TYPE_ALIAS_DECL, K.TYPEDEF_DECL, K.USING_DECLARATION, K.PARM_DECL, K.TYPE_REF,
                    K.TEMPLATE_REF, K.TEMPLATE_NON_TYPE_PARAMETER, K.TEMPLATE_TYPE_PARAMETER):
            return
        if kind == K.VAR_DECL:
            start = cursor.extent.start.offset
            head = self.code[start:max(start, cursor.location.offset)]
            at_top = cursor.semantic_parent is not None and cursor.semantic_parent.kind in (
                K.TRANSLATION_UNIT, K.NAMESPACE, K.CLASS_DECL, K.STRUCT_DECL)
            constant = constant or bool(CONSTANT.search(head)) or at_top  # the compiler computes it
        if kind in (K.CALL_EXPR,) and self.unworthy(cursor):
            return
        if not constant:
            self.look(cursor, kind, parent)
        children = list(cursor.get_children())
        for index, child in enumerate(children):
            if kind == K.CASE_STMT and index == 0:
                continue
            self.walk(child, constant or (kind in (K.VAR_DECL, K.FIELD_DECL) and self.in_type(cursor, child)), cursor)

    def in_type(self, variable, child):
        """A template's argument or an array's bound: the compiler computes it."""
        name, start = variable.location.offset, child.extent.start.offset
        return start < name or bool(re.fullmatch(r"\w*\s*\[[^={(]*", self.code[name:start]))

    def look(self, cursor, kind, parent):
        if kind == K.IF_STMT:
            self.if_statement(cursor)
        elif kind in (K.WHILE_STMT, K.FOR_STMT, K.DO_STMT):
            self.condition(cursor, {K.WHILE_STMT: "while", K.FOR_STMT: "for", K.DO_STMT: "do"}[kind])
        elif kind == K.CONDITIONAL_OPERATOR:
            children = list(cursor.get_children())
            if len(children) == 3:
                self.negate(children[0])
        elif kind == K.RETURN_STMT:
            for child in cursor.get_children():
                if child.type.kind == clang.cindex.TypeKind.BOOL and unwrap(child).kind not in (K.CXX_BOOL_LITERAL_EXPR, K.DECL_REF_EXPR):
                    self.negate(child)
        elif kind == K.BINARY_OPERATOR:
            self.binary(cursor)
        elif kind == K.CALL_EXPR and re.fullmatch(r"operator(<|<=|>|>=)", cursor.spelling or ""):
            self.overloaded_bound(cursor)
        elif kind in (K.INTEGER_LITERAL, K.FLOATING_LITERAL, K.CXX_BOOL_LITERAL_EXPR):
            self.literal(cursor, parent)
        if kind in (K.COMPOUND_STMT, K.IF_STMT, K.ELSE_STMT if hasattr(K, "ELSE_STMT") else K.IF_STMT, K.FOR_STMT, K.WHILE_STMT,
                    K.CXX_FOR_RANGE_STMT, K.CASE_STMT, K.DEFAULT_STMT):
            self.statements(cursor, kind)

    # if (c) return ...: taken always, and never; any other: the condition negated.
    def if_statement(self, cursor):
        if re.match(r"if\s+(constexpr|consteval)\b", self.code[cursor.extent.start.offset:]):
            return
        found = self.condition_of(cursor)
        if found is None:
            return
        condition, index, children = found
        then = children[index + 1] if index + 1 < len(children) else None
        span = self.span(condition)
        if span is None or then is None:
            return
        leaves = len(children) == index + 2 and ends_in_leave(then)
        words = self.slice(span)
        if leaves:
            self.add("return", f"always leaves: {words}", span, "(::ccixfer_mutants::on(NUMBER) || static_cast<bool>(", "))")
            self.add("return", f"never leaves: {words}", span, "(!::ccixfer_mutants::on(NUMBER) && static_cast<bool>(", "))")
        else:
            self.negate(condition)

    def condition(self, cursor, _word):
        found = self.condition_of(cursor)
        if found is not None:
            self.negate(found[0])

    def condition_of(self, cursor):
        """The condition among the children of an if, while, do or for: by what stands round it."""
        children = list(cursor.get_children())
        for index, child in enumerate(children):
            if not child.kind.is_expression():
                continue
            span = self.span(child)
            if span is None:
                continue
            behind = self.code[span[1]:span[1] + 200].lstrip()
            ahead = self.code[:span[0]].rstrip()[-1:]
            if cursor.kind == K.FOR_STMT:
                if ahead == ";" and behind.startswith(";"):
                    return child, index, children
            elif behind.startswith(")") and ahead in ("(", ";"):
                return child, index, children
        return None

    def negate(self, condition):
        span = self.span(condition)
        if span is None or unwrap(condition).kind == K.CXX_BOOL_LITERAL_EXPR:
            return
        self.add("negate", f"negated: {self.slice(span)}", span, "(::ccixfer_mutants::on(NUMBER) != static_cast<bool>(", "))")

    def operator_between(self, left, right):
        return self.code[left[1]:right[0]].strip()

    def binary(self, cursor):
        children = list(cursor.get_children())
        if len(children) != 2:
            return
        left, right = self.span(children[0]), self.span(children[1])
        if left is None or right is None or self.span(cursor) is None:
            return
        operator = self.operator_between(left, right)
        if operator in BOUNDS:
            self.bound(operator, left, right)
        elif operator in ("&&", "||"):
            for child, span in ((children[0], left), (children[1], right)):
                inner = unwrap(child)
                if inner.kind == K.BINARY_OPERATOR and self.operator_of(inner) == operator:
                    continue  # its own sides are dropped one by one
                before = "(::ccixfer_mutants::on(NUMBER) || static_cast<bool>(" if operator == "&&" else \
                    "(!::ccixfer_mutants::on(NUMBER) && static_cast<bool>("
                self.add("drop", f"dropped from {operator}: {self.slice(span)}", span, before, "))")

    def operator_of(self, cursor):
        children = list(cursor.get_children())
        if len(children) != 2:
            return ""
        left, right = self.span(children[0]), self.span(children[1])
        return self.operator_between(left, right) if left and right else ""

    def overloaded_bound(self, cursor):
        children = list(cursor.get_children())
        if len(children) != 3:
            return
        spans = sorted(s for s in (self.span(children[0]), self.span(children[2])) if s)
        if len(spans) == 2 and self.operator_between(*spans) in BOUNDS:
            self.bound(self.operator_between(*spans), *spans)

    def bound(self, operator, left, right):
        if re.search(r"(^|[._>])(fd|descriptor)_?$", self.slice(left)) and self.slice(right) == "0":
            return  # 0 is never ours: standard input keeps it
        function, other = BOUNDS[operator]
        at = self.code.index(operator, left[1])
        self.add("bound", f"{self.slice(left)} {other} {self.slice(right)} instead of {operator}", (left[0], right[1]),
                 f"::ccixfer_mutants::{function}(NUMBER, ", ")", at=at, cut=(at, at + len(operator), ","))

    def literal(self, cursor, parent):
        span = self.span(cursor)
        if span is None:
            return
        words = self.slice(span)
        ahead = self.code[:span[0]].rstrip()
        if not re.fullmatch(r"[0-9][0-9a-fA-FxX'.]*[uUlLfF]*|true|false", words):
            return
        if re.search(r"\bcase$|<$", ahead) or (ahead.endswith("[") and parent is not None and parent.kind in (K.VAR_DECL, K.FIELD_DECL)):
            return
        if words == "0" and (re.search(r"[=!<>]=$|(?<![-<])<$|(?<![->])>$", ahead) or re.match(r"\s*([=!<>]=|[<>](?![<>]))", self.code[span[1]:])):
            return  # what a bound's own mutant does
        if ahead.endswith(",") and self.code[span[1]:].lstrip().startswith(">"):
            return
        if words in ("true", "false"):
            self.add("constant", f"{'false' if words == 'true' else 'true'} instead of {words}", span, "(::ccixfer_mutants::on(NUMBER) != ", ")")
        else:
            self.add("constant", f"{words} + 1 instead of {words}", span, f"(::ccixfer_mutants::on(NUMBER) ? {words} + 1 : ", ")")

    def statements(self, cursor, kind):
        for child in cursor.get_children():
            start = child.extent.start.offset
            if kind != K.COMPOUND_STMT:  # a statement, not a condition: it ends with a semicolon, and is not the inc of a for
                ahead = self.code[:start].rstrip()
                if ahead[-1:] == "(" or (ahead[-1:] == ";" and kind in (K.FOR_STMT, K.IF_STMT, K.WHILE_STMT)):
                    continue
            if not child.kind.is_expression():
                continue
            span = self.span(child)
            if span is None or not self.code[span[1]:].lstrip().startswith(";"):
                continue
            inner = unwrap(child)
            words = self.slice(span)
            what = None
            if inner.kind == K.CALL_EXPR:
                if re.fullmatch(r"operator([-+*/%&|^]|<<|>>)?=|operator(\+\+|--)", inner.spelling or ""):
                    what = "assign"
                elif not self.unworthy(inner):
                    what = "call"
            elif inner.kind == K.CXX_STATIC_CAST_EXPR and any(self.call_inside(c) for c in inner.get_children()):
                what = "call"
            elif inner.kind == K.COMPOUND_ASSIGNMENT_OPERATOR or (inner.kind == K.BINARY_OPERATOR and self.operator_of(inner) == "="):
                what = "assign"
            elif inner.kind == K.UNARY_OPERATOR and (words.startswith(("++", "--")) or words.endswith(("++", "--"))):
                what = "assign"
            if what:
                self.add(what, f"skipped: {words}", span, "(::ccixfer_mutants::on(NUMBER) ? static_cast<void>(0) : static_cast<void>(", "))")

    def call_inside(self, cursor):
        inner = unwrap(cursor)
        return inner.kind == K.CALL_EXPR and not self.unworthy(inner)

    def unworthy(self, call):
        if UNWORTHY_CALLS.search(call.spelling or ""):
            return True
        start = call.extent.start.offset
        return (call.spelling or "") == "add" and COUNTING.search(self.code[start:self.code.find("(", start) + 1]) is not None


def unwrap(cursor):
    while cursor.kind in (K.UNEXPOSED_EXPR, K.PAREN_EXPR):
        children = list(cursor.get_children())
        if len(children) != 1:
            break
        cursor = children[0]
    return cursor


def ends_in_leave(then):
    if then.kind in (K.RETURN_STMT, K.CONTINUE_STMT, K.BREAK_STMT):
        return True
    if then.kind == K.COMPOUND_STMT:
        children = list(then.get_children())
        return bool(children) and children[-1].kind in (K.RETURN_STMT, K.CONTINUE_STMT, K.BREAK_STMT)
    return False


LITERALS = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])+\'', re.S)


def blank(text):
    """The text with comments as spaces and the inside of strings as x: as long as before."""
    def cover(match):
        found = match.group(0)
        filler = " " if found.startswith("/") else "x"
        inner = re.sub(r"[^\n]", filler, found)
        return inner if filler == " " else found[0] + inner[1:-1] + found[-1]
    return LITERALS.sub(cover, text)


def closing(code, at):
    depth = 0
    for index in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[index], 0)
        if depth == 0:
            return index + 1
    return len(code)


def balanced(code):
    depth = {")": 0, "]": 0, "}": 0}
    opening = {"(": ")", "[": "]", "{": "}"}
    for character in code:
        if character in opening:
            depth[opening[character]] += 1
        elif character in depth:
            depth[character] -= 1
            if depth[character] < 0:
                return False
    return not any(depth.values())


def find(name, root):
    finder = Finder(name, root)
    return finder.sites, finder.errors
