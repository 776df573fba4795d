"""How a kernel becomes LLVM's instructions: as numba does it, with half of the instructions.

Numba takes structures apart on the stack, for every ``a[i]`` and every loop anew: thirty instructions where four do,
which LLVM then has to read, to tidy up, and to find equal. What kernels are made of comes here without that: items of
contiguous arrays, their shapes, loops over ranges, variables of numbers, and the counting of who refers to an array.
The rest is left to numba, and so is everything where ``NUMBA_DEBUGINFO`` asks for names of variables.
"""

from __future__ import annotations

from functools import cache

from llvmlite.ir import Constant
from numba.core import cgutils, config, ir, ir_utils, types
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.runtime.context import NRTContext
from numba.core.typed_passes import NativeLowering


@register_pass(mutates_CFG=True, analysis_only=False)
class ShortLowering(NativeLowering):
    """Numba's step with few instructions."""

    _name = "short_lowering"

    @property
    def lowering_class(self):
        """What makes the instructions of a function."""
        return Lower if config.DEBUGINFO_DEFAULT else _Short

    def run_pass(self, state):
        """Translate one function."""
        context = state.targetctx
        context.nrt = _Counting(context, context.enable_nrt)
        return super().run_pass(state)


def member(context, builder, kind, whole, name):
    """What a structure has of a name, such as an array its ``data``."""
    return context.data_model_manager[kind].get(builder, whole, name)


def made_of(context, builder, kind, whole=None, **members):
    """A structure of ``members``; the others are those of ``whole``."""
    model = context.data_model_manager[kind]
    whole = context.get_constant_undef(kind) if whole is None else whole
    for name, value in members.items():
        whole = model.set(builder, whole, value, name)
    return whole


class _Counting(NRTContext):
    """Numba's, but that it takes of a value what is counted and nothing else."""

    def get_meminfos(self, builder, ty, val):
        places = _places_of_references(self._context.data_model_manager[ty])
        if places is None:
            return super().get_meminfos(builder, ty, val)
        return [(ty, builder.extract_value(val, place)) for place in places]


@cache
def _places_of_references(model):
    """Where a value has references that are counted, a path of numbers each; None where only numba can tell."""
    if not model.contains_nrt_meminfo():
        return []
    kind = model.fe_type
    if isinstance(kind, types.Array):
        return [(model.get_field_position("meminfo"),)]
    if not isinstance(kind, types.BaseTuple):
        return None
    # Tuples of one kind have one model for all their members.
    parts = (model.inner_models() * len(kind))[: len(kind)]
    inner = [_places_of_references(part) for part in parts]
    return None if None in inner else [(n, *place) for n, places in enumerate(inner) for place in places]


class _Short(Lower):
    """Numba's, but for what kernels do most."""

    def lower_expr(self, resty, expr):
        own = getattr(self, f"_short_{expr.op}", None)
        found = own(resty, expr) if own else None
        return super().lower_expr(resty, expr) if found is None else found

    def lower_getitem(self, resty, expr, value, index, signature):
        place = self._place(value, index, signature)
        if place is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        item = self.context.unpack_value(self.builder, self.typeof(value.name).dtype, place)
        return self.context.cast(self.builder, item, signature.return_type, resty)

    def lower_setitem(self, target_var, index_var, value_var, signature):
        place = None
        if isinstance(self.typeof(value_var.name), types.Number | types.Boolean):
            place = self._place(target_var, index_var, signature)
        if place is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        kind, dtype = signature.args[2], self.typeof(target_var.name).dtype
        value = self.context.cast(self.builder, self._cast_var(value_var, kind), kind, dtype)
        self.context.pack_value(self.builder, dtype, value, place)
        return None

    def lower_binop(self, resty, expr, op):
        signature = self.fndesc.calltypes[expr]
        if any(given is not ir.UNDEFINED for given in (expr.static_lhs, expr.static_rhs)) or not all(
            isinstance(kind, types.Number | types.Boolean) for kind in signature.args
        ):
            return super().lower_binop(resty, expr, op)
        typing = self.context.typing_context
        function = typing.resolve_value_type(op)
        make = self.context.get_function(function, typing.resolve_function_type(function, signature.args, {}))
        numbers = map(self._cast_var, (expr.lhs, expr.rhs), signature.args)
        return self.context.cast(self.builder, make(self.builder, tuple(numbers)), signature.return_type, resty)

    def storevar(self, value, name, argidx=None):
        kind = self.typeof(name)
        self._alloca_var(name, kind)
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
            return
        if argidx is None and self._refers(kind):
            self.decref(kind, self.loadvar(name))
        self.builder.store(value, self.getvar(name))

    def delvar(self, name):
        if self._refers(self.typeof(name)):
            super().delvar(name)
        elif name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)

    def alloca_lltype(self, name, lltype, datamodel=None):
        return cgutils.alloca_once(self.builder, lltype, name=name)

    def _refers(self, kind):
        """Whether somebody counts what refers to a value."""
        return self.context.enable_nrt and _places_of_references(self._model(kind)) != []

    def _model(self, kind):
        return self.context.data_model_manager[kind]

    def _place(self, array, index, signature):
        """Where an item of an array of numbers is, or None for what is no such thing."""
        kind, wanted = self.typeof(array.name), signature.args[1]
        numbers = wanted.types if isinstance(wanted, types.BaseTuple) else (wanted,)
        if not (
            isinstance(kind, types.Array)
            and kind.layout == "C"
            and kind.aligned
            and kind.ndim == len(numbers)
            and isinstance(kind.dtype, types.Number | types.Boolean)
            and all(isinstance(number, types.Integer) for number in numbers)
            and not self.context.enable_boundscheck
        ):
            return None
        builder, own, at = self.builder, self.loadvar(array.name), None
        shape = self._model(kind).get_field_position("shape")
        given = self._cast_var(index, wanted)
        given = cgutils.unpack_tuple(builder, given) if isinstance(wanted, types.BaseTuple) else [given]
        for n, (number, value) in enumerate(zip(numbers, given, strict=True)):
            value = self.context.cast(builder, value, number, types.intp if number.signed else types.uintp)
            if number.signed:
                value = _from_the_start(builder, value, lambda n=n: builder.extract_value(own, (shape, n)))
            at = value if at is None else builder.add(builder.mul(at, builder.extract_value(own, (shape, n))), value)
        return builder.gep(self._model(kind).get(builder, own, "data"), [at])

    def _short_getattr(self, resty, expr):
        kind = self.typeof(expr.value.name)
        if not (isinstance(kind, types.Array) and expr.attr == "shape"):
            return None
        return self._model(kind).get(self.builder, self.loadvar(expr.value.name), "shape")

    def _short_call(self, resty, expr):
        if not self._is_plain_range(expr):
            return None
        numbers = [self._cast_var(number, resty.dtype) for number in expr.args]
        zero, one = (self.context.get_constant(resty.dtype, number) for number in (0, 1))
        return made_of(
            self.context, self.builder, resty, start=numbers[0] if numbers[1:] else zero, stop=numbers[-1], step=one
        )

    def _is_plain_range(self, expr):
        """Whether an expression is ``range(stop)`` or ``range(start, stop)``."""
        kind = isinstance(expr, ir.Expr) and expr.op == "call" and self.typeof(expr.func.name)
        is_range = isinstance(kind, types.Function) and kind.typing_key is range
        return is_range and len(expr.args) in (1, 2) and not expr.kws and not expr.vararg

    def _short_getiter(self, resty, expr):
        kind = self.typeof(expr.value.name)
        made = ir_utils.guard(ir_utils.get_definition, self.func_ir, expr.value)
        if not (isinstance(kind, types.RangeType) and resty == kind.iterator_type and self._is_plain_range(made)):
            return None
        builder, model, numbers = self.builder, self._model(kind), self.loadvar(expr.value.name)
        start, stop, step = (model.get(builder, numbers, name) for name in ("start", "stop", "step"))
        zero, size = start.type(0), builder.sub(stop, start)
        following, left = cgutils.alloca_once(builder, start.type), cgutils.alloca_once(builder, start.type)
        builder.store(start, following)
        builder.store(builder.select(builder.icmp_signed(">", size, zero), size, zero), left)
        return made_of(self.context, self.builder, resty, iter=following, stop=stop, step=step, count=left)

    def _short_iternext(self, resty, expr):
        kind = self.typeof(expr.value.name)
        if not isinstance(kind, types.RangeIteratorType) or resty.first_type != kind.yield_type:
            return None
        builder, model, own = self.builder, self._model(kind), self.loadvar(expr.value.name)
        following, left = model.get(builder, own, "iter"), model.get(builder, own, "count")
        value, count = builder.load(following), builder.load(left)
        builder.store(builder.add(value, model.get(builder, own, "step")), following)
        builder.store(builder.sub(count, count.type(1), flags=["nsw"]), left)
        return made_of(
            self.context, self.builder, resty, first=value, second=builder.icmp_signed(">", count, count.type(0))
        )

    def _short_pair_first(self, resty, expr):
        return self._member(resty, expr, "first")

    def _short_pair_second(self, resty, expr):
        return self._member(resty, expr, "second")

    def _member(self, resty, expr, name):
        found = self._model(self.typeof(expr.value.name)).get(self.builder, self.loadvar(expr.value.name), name)
        self.incref(resty, found)
        return found


def _from_the_start(builder, index, size):
    """An index that may count from the end."""
    if isinstance(index, Constant) and index.constant >= 0:
        return index
    negative = builder.icmp_signed("<", index, index.type(0))
    return builder.select(negative, builder.add(index, size()), index)
