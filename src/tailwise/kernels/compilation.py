"""How kernels are compiled: numba's ``njit``, where a kernel becomes machine code once, with all that it calls.

Numba makes machine code of every function for its own sake: optimised, with wrappers for Python and for C, and once
more within each function that calls it. Here what is called by others is only translated; what Python calls is
optimised and made machine code with everything that it calls, and kept on disk (:mod:`tailwise.kernels.cache`).
"""

from __future__ import annotations

import gc
from contextlib import contextmanager

from llvmlite import binding
from numba import config, types
from numba.core import cgutils, compiler, ir, sigutils, typing
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import InlineOverloads, NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

from tailwise.kernels.cache import KernelCache
from tailwise.kernels.lowering import ShortLowering

_KNOWN: dict = {}
"""What an operation on given types is: kernels have most of them in common."""
_PYTHON_WRAPPER, _C_WRAPPER = "wrapper", "cfunc_wrapper"
_ENVIRONMENT = "_ZN08NumbaEnv"


def njit(*, cache=False, borrows=False, **options):
    """``numba.njit(**options)``; ``cache=True`` keeps what is compiled, wherever that is possible.

    ``borrows=True`` is for kernels that make no array and return none: nobody counts there who refers to arrays. That
    takes an atomic operation an array, at every call of a function that branches: more than the work of a short one.
    """

    def decorate(function):
        if config.DISABLE_JIT:
            return function
        # Otherwise numba would take that of whoever calls it first.
        kernel = Kernel(function, targetoptions={"nopython": True, "fastmath": False, "_nrt": not borrows, **options})
        if cache:
            kernel._cache = KernelCache(function)
        return kernel

    return decorate


class Kernel(CPUDispatcher):
    """A function that is compiled for each kind of arguments: for Python, or for other kernels to call."""

    def __init__(self, py_func, locals=None, targetoptions=None, pipeline_class=compiler.Compiler):
        super().__init__(py_func, locals or {}, targetoptions or {}, pipeline_class)
        self._compiler.compile = self._make
        self._called = {}

    def get_call_template(self, args, kws):
        """What numba asks for when it types a call: the signatures of what other kernels may call.

        A number that the caller has as a constant is one like any other, and an array that may be written to goes where
        one is only read: the same code serves all of them.
        """
        pysig, folded = self._compiler.fold_argument_types(args, kws)
        wanted = tuple(map(types.unliteral, folded))
        if not any(_serves(found.signature, wanted) for found in self._called.values()):
            self._translate(wanted)
        name = self.py_func.__name__
        signatures = [found.signature for found in self._called.values()]
        return typing.make_concrete_template(f"CallTemplate({name})", name, signatures), pysig, folded, {}

    def get_overload(self, sig):
        """The key under which numba finds what another kernel calls."""
        return self._called[sigutils.normalize_signature(sig)[0]].library

    def _make(self, args, return_type):
        """Compile for Python; numba's own functions that are called are translated for that."""
        codegen = self.targetctx.codegen()
        library = _Whole(codegen, self.py_func.__qualname__)
        library.enable_object_caching()
        with _in_parts(codegen), _remembering(self.typingctx), _without_collecting():
            found = self._compile(args, return_type, library)
        for variable in library._final_module.global_variables:
            environment = variable.name.startswith(_ENVIRONMENT) and lookup_environment(variable.name)
            if environment:
                codegen.set_env(variable.name, environment)
        return found

    def _translate(self, args):
        """Have the code for ``args`` ready for others to take in: no wrapper, no machine code."""
        with global_compiler_lock, self._compiling_counter:
            if args not in self._called:
                library = _Part(self.targetctx.codegen(), self.py_func.__qualname__)
                found = self._compile(args, None, library, no_compile=True, no_cpython_wrapper=True)
                self.targetctx.insert_user_function(library, found.fndesc, [library])
                self._called[args] = found

    def _compile(self, args, return_type, library, **more):
        flags = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        for name, value in {**more, "no_cfunc_wrapper": True}.items():
            setattr(flags, name, value)
        library.rearranges = bool(flags.fastmath)
        return compiler.compile_extra(
            self.typingctx, self.targetctx, self.py_func, args, return_type, flags, self.locals, library, _Steps
        )


class _Steps(compiler.Compiler):
    """Numba's steps but for those that nothing in a kernel asks for: they take a tenth of the time to find that out."""

    def define_pipelines(self):
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [
                (_OWN.get(step, step), why)
                for step, why in pipeline.passes
                if step not in (InlineClosureLikes, InlineOverloads)
            ]
            pipeline.finalize()
        return pipelines


@register_pass(mutates_CFG=True, analysis_only=False)
class _WholeArrays(NopythonRewrites):
    """One loop for what is computed of whole arrays, where there is that."""

    _name = "whole_arrays"

    def run_pass(self, state):
        return any(map(_makes_array, state.calltypes.items())) and super().run_pass(state)


_OWN = {NopythonRewrites: _WholeArrays, NativeLowering: ShortLowering}
"""What stands in the place of numba's steps."""


def _makes_array(operation):
    """Whether an expression that is no call, with its signature, gives an array."""
    expression, signature = operation
    is_operator = isinstance(expression, ir.Expr) and expression.op in ("binop", "inplace_binop", "unary")
    return is_operator and isinstance(signature.return_type, types.Array)


def _serves(signature, args):
    """Whether code for ``signature`` takes ``args``, of which some arrays may be read-only in it; it returns none."""
    if isinstance(signature.return_type, types.Array | types.BaseTuple):
        return signature.args == args
    return all(map(_takes, signature.args, args))


def _takes(known, given):
    if isinstance(known, types.Tuple) and isinstance(given, types.Tuple) and len(known) == len(given):
        return all(map(_takes, known, given))
    return known == given or (isinstance(given, types.Array) and known == given.copy(readonly=True))


class _Whole(JITCodeLibrary):
    """Code with all that it calls, which is optimised as a whole."""

    def _optimize_functions(self, ll_module):
        """Tidy up what was translated. Numba optimises each function here: most of that is done again with its callers.

        It takes a third of the time. What hands arguments over from Python stays as it is then: that is half of the
        instructions of some kernels, which run once a call.
        """
        ll_module.data_layout = self._codegen._data_layout
        passes = binding.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        passes.add_loop_rotate_pass()
        passes.add_simplify_cfg_pass()
        passes.run(ll_module, self._codegen._pass_builder())
        if ll_module.name == _PYTHON_WRAPPER:
            for function in ll_module.functions:
                if not function.is_declaration:
                    for attribute in ("noinline", "optnone"):
                        function.add_function_attribute(attribute)


class _Part(_Whole):
    """Code that is taken in by other code, and optimised with that, unless Python calls it too."""

    called_by_python = False
    rearranges = False
    """Whether sums may be rearranged. Then it is optimised at once, so that they come out the same whoever calls."""

    @property
    def codegen(self):
        """What numba tells where the code's environment is: those who take the code in ask for it themselves."""
        return super().codegen if self.called_by_python else self

    def set_env(self, name, environment):
        """Pass over it."""

    def add_ir_module(self, ir_module):
        """Take in what was translated, without a wrapper for C and an environment that nothing refers to.

        An environment names a module that is imported wherever the compiled code is loaded.
        """
        self.called_by_python |= ir_module.name == _PYTHON_WRAPPER
        if ir_module.name == _C_WRAPPER:
            return
        text = cgutils.normalize_ir_text(str(ir_module))
        for name in ir_module.globals:
            if name.startswith(_ENVIRONMENT) and text.count(name) == 1:
                text = "\n".join(line for line in text.split("\n") if name not in line)
        module = binding.parse_assembly(text)
        module.name = ir_module.name
        self.add_llvm_module(module)

    def finalize(self):
        """Take in the code of all that is called, and leave the rest to others."""
        if self.called_by_python:
            super().finalize()
            return
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        if self.rearranges:
            self._optimize_final_module()
        self._finalized = True

    def get_pointer_to_function(self, name):
        """Zero, as numba has it for functions that Python does not call."""
        return super().get_pointer_to_function(name) if self.called_by_python else 0


@contextmanager
def _in_parts(codegen):
    """Have numba make parts of the functions that it compiles for another one's sake."""
    codegen._library_class = _Part
    try:
        yield
    finally:
        del codegen._library_class


@contextmanager
def _remembering(typing_context):
    """Have an operation on given types looked up once: numba asks every candidate, for each line and more than once."""
    look_up = typing_context.resolve_function_type

    def resolve(function, args, kws):
        if kws or not isinstance(function, types.Function):
            return look_up(function, args, kws)
        if (function, args) not in _KNOWN:
            _KNOWN[function, args] = look_up(function, args, kws)
        return _KNOWN[function, args]

    typing_context.resolve_function_type = resolve
    try:
        yield
    finally:
        del typing_context.resolve_function_type


@contextmanager
def _without_collecting():
    """Have no garbage looked for: a compiler makes very many objects that stay, which costs a fifth of its time.

    They count as old afterwards, or all of them would be looked at as soon as this ends.
    """
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if collected:
            gc.enable()
