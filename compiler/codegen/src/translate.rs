//! From an MLIR module to PTX: MLIR conversions, translation to LLVM IR, its optimization, the NVPTX back end.
//!
//! This file and those below it are the only ones of the crate with `unsafe`: the C APIs of MLIR and LLVM are called
//! here and nowhere else. Each block has its safety argument; the common rules are:
//!
//! - an LLVM module is dropped before its context ([`LlvmModule`] owns both);
//! - a string from LLVM is copied and then disposed of with LLVM's own function;
//! - an LLVM context is used by one thread at a time.
//!
//! LLVM aborts the process when instruction selection fails. [`guarded`] prevents that.
#![allow(unsafe_code)]

use std::{
    cell::RefCell,
    ffi::{CStr, CString, c_char, c_void},
    ptr,
    sync::Once,
};

use llvm_sys::{
    LLVMAttributeFunctionIndex, LLVMDiagnosticSeverity, LLVMFastMathAllowContract, LLVMLinkage, LLVMModuleFlagBehavior,
    LLVMOpcode,
    analysis::{LLVMVerifierFailureAction, LLVMVerifyModule},
    bit_reader::LLVMGetBitcodeModuleInContext2,
    core::*,
    error::{LLVMDisposeErrorMessage, LLVMGetErrorMessage},
    linker::LLVMLinkModules2,
    prelude::{LLVMContextRef, LLVMDiagnosticInfoRef, LLVMModuleRef},
    support::LLVMParseCommandLineOptions,
    target::*,
    target_machine::*,
    transforms::pass_builder::*,
};
use melior::{
    dialect::DialectRegistry,
    ir::Module,
    pass::{self, PassManager},
};
use rtc_abi::Target;

use crate::{
    compile::Library,
    context::MlirContext,
    error::{CodegenError, Result},
};

mod back_end;
mod exact_products;
mod guarded;
mod paired_casts;
mod pipeline;
mod walk;

pub(crate) use guarded::guarded;

const TRIPLE: &CStr = c"nvptx64-nvidia-cuda";

// The C API of MLIR offers only "register all translations"; these are the C++ functions behind it.
// They take a `DialectRegistry&`, which is the pointer inside the C handle.
unsafe extern "C" {
    #[link_name = "_ZN4mlir33registerBuiltinDialectTranslationERNS_15DialectRegistryE"]
    fn register_builtin_translation(registry: *mut c_void);
    #[link_name = "_ZN4mlir30registerLLVMDialectTranslationERNS_15DialectRegistryE"]
    fn register_llvm_translation(registry: *mut c_void);
    #[link_name = "_ZN4mlir30registerNVVMDialectTranslationERNS_15DialectRegistryE"]
    fn register_nvvm_translation(registry: *mut c_void);
}

/// The version of LLVM that is linked, such as `22.1.2`.
pub fn llvm_version() -> String {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: it writes the three numbers and nothing else.
    unsafe { LLVMGetVersion(&mut major, &mut minor, &mut patch) };
    format!("{major}.{minor}.{patch}")
}

/// Adds the dialects that lowering emits, and their translations to LLVM IR.
pub(crate) fn register_dialects(registry: &DialectRegistry) {
    // SAFETY: the handles are static data of MLIR, and the registry outlives the calls.
    unsafe {
        for handle in [
            mlir_sys::mlirGetDialectHandle__arith__(),
            mlir_sys::mlirGetDialectHandle__scf__(),
            mlir_sys::mlirGetDialectHandle__cf__(),
            mlir_sys::mlirGetDialectHandle__llvm__(),
            mlir_sys::mlirGetDialectHandle__nvvm__(),
        ] {
            mlir_sys::mlirDialectHandleInsertDialect(handle, registry.to_raw());
        }
        register_builtin_translation(registry.to_raw().ptr);
        register_llvm_translation(registry.to_raw().ptr);
        register_nvvm_translation(registry.to_raw().ptr);
    }
}

/// Converts a module of `scf`, `llvm` and `nvvm` ops to the LLVM dialect; loops become `cf` and `arith` on the way.
pub(crate) fn to_llvm_dialect(cx: &MlirContext, module: &mut Module) -> Result<()> {
    let passes = PassManager::new(cx.get());
    passes.enable_verifier(cfg!(debug_assertions));
    for conversion in [
        pass::conversion::create_scf_to_control_flow(),
        pass::conversion::create_nvvm_to_llvm(),
        pass::conversion::create_arith_to_llvm(),
        pass::conversion::create_control_flow_to_llvm(),
        pass::conversion::create_reconcile_unrealized_casts(),
    ] {
        passes.add_pass(conversion);
    }
    passes.run(module).map_err(|_| CodegenError::Mlir { stage: "conversion", diagnostics: cx.take_diagnostics() })
}

/// An LLVM module with the context that owns its types.
pub(crate) struct LlvmModule {
    context: LLVMContextRef,
    module: LLVMModuleRef,
}

// SAFETY: an LLVM context may move between threads as long as one at a time uses it,
// and `LlvmModule` is the only owner of both pointers.
unsafe impl Send for LlvmModule {}

impl Drop for LlvmModule {
    fn drop(&mut self) {
        // SAFETY: both are live, and the module goes first.
        unsafe {
            LLVMDisposeModule(self.module);
            LLVMContextDispose(self.context);
        }
    }
}

/// Translates a module in the LLVM dialect to LLVM IR.
pub(crate) fn to_llvm(cx: &MlirContext, module: &Module) -> Result<LlvmModule> {
    initialize();
    // SAFETY: the operation is live; the LLVM context is fresh and owned by the result. The two
    // binding crates name the same C types, so the pointers convert by a cast.
    unsafe {
        let context = LLVMContextCreate();
        let translated: LLVMModuleRef =
            mlir_sys::mlirTranslateModuleToLLVMIR(module.as_operation().to_raw(), context.cast()).cast();
        if translated.is_null() {
            LLVMContextDispose(context);
            return Err(CodegenError::Mlir { stage: "translation", diagnostics: cx.take_diagnostics() });
        }
        Ok(LlvmModule { context, module: translated })
    }
}

/// The output of the back end for a module.
pub(crate) struct Emitted {
    /// LLVM IR, optimized.
    pub llvm: String,
    /// The PTX text; empty if only LLVM IR was requested.
    pub ptx: String,
}

/// How far [`emit`] goes, and what it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// LLVM IR text after optimization, no PTX.
    Llvm,
    /// PTX only.
    Ptx,
    /// Both.
    Both,
}

/// A library to take functions from.
#[derive(Debug)]
pub(crate) struct Link {
    pub library: Library,
    /// A product and the sum that takes it may become one operation in its functions.
    pub fuse: bool,
}

/// Links the library, optimizes the module and generates PTX for the target.
pub(crate) fn emit(module: LlvmModule, target: &'static Target, want: Want, link: Option<Link>) -> Result<Emitted> {
    let machine = Machine::new(target)?;
    let errors = module.capture_errors();
    module.prepare(&machine);
    if let Some(link) = &link {
        module.link(link, &errors)?;
    }
    // MLIR verifies the module that it translates.
    if link.is_some() || cfg!(debug_assertions) {
        module.verify()?;
    }
    module.optimize(&machine, link.is_some())?;
    if link.is_some_and(|link| link.fuse) {
        module.allow_contraction();
    }
    exact_products::keep(module.context, module.module);
    paired_casts::pair(module.context, module.module);
    let llvm = if want == Want::Ptx { String::new() } else { module.text() };
    let ptx = if want == Want::Llvm { String::new() } else { module.ptx(&machine)? };
    // The module's context holds a pointer to `errors`; both live until here.
    let messages = errors.borrow().join("; ");
    drop(module);
    if messages.is_empty() {
        Ok(Emitted { llvm, ptx })
    } else {
        Err(CodegenError::Llvm { stage: "code generation", message: messages })
    }
}

impl LlvmModule {
    /// Sets triple and data layout, and describes inline assembly.
    fn prepare(&self, machine: &Machine) {
        // SAFETY: module and machine are live; the data layout is disposed of after its use.
        unsafe {
            LLVMSetTarget(self.module, TRIPLE.as_ptr());
            let layout = LLVMCreateTargetDataLayout(machine.0);
            LLVMSetModuleDataLayout(self.module, layout);
            LLVMDisposeTargetData(layout);
        }
        self.describe_assembly();
    }

    /// Sets the LLVM attributes of inline assembly, which MLIR cannot express.
    ///
    /// Assembly with side effects is convergent: without that LLVM may move a warp-wide instruction under a condition.
    /// Assembly without side effects is arithmetic on its operands by our convention: it accesses no memory and may be
    /// moved, merged and dropped.
    fn describe_assembly(&self) {
        // SAFETY: walks the live module by LLVM's own iterators and adds call-site attributes only.
        unsafe {
            let attribute = |name: &str| {
                let kind = LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
                // For `memory`, zero says: reads and writes nothing.
                LLVMCreateEnumAttribute(self.context, kind, 0)
            };
            let with_effects = [attribute("convergent")];
            let without = [attribute("memory"), attribute("nounwind"), attribute("willreturn")];
            walk::each_instruction(self.module, |instruction| {
                if LLVMIsACallInst(instruction).is_null() {
                    return;
                }
                let callee = LLVMGetCalledValue(instruction);
                if !LLVMIsAInlineAsm(callee).is_null() {
                    let effects = LLVMGetInlineAsmHasSideEffects(callee) != 0;
                    for attribute in if effects { &with_effects[..] } else { &without[..] } {
                        LLVMAddCallSiteAttribute(instruction, LLVMAttributeFunctionIndex, *attribute);
                    }
                }
            });
        }
    }

    /// Links the functions that the module calls from a library; they become internal, so that the rest is dropped
    /// after inlining.
    fn link(&self, link: &Link, errors: &RefCell<Vec<String>>) -> Result<()> {
        let refused = |what: &str| {
            let reasons = errors.borrow_mut().drain(..).collect::<Vec<_>>().join("; ");
            let separator = if reasons.is_empty() { "" } else { ": " };
            CodegenError::Library { message: format!("{what}{separator}{reasons}") }
        };
        let bitcode = &link.library.bitcode;
        // SAFETY: the buffer is a copy; the library's module owns it once it is read, and linking consumes that module.
        // Functions and instructions are walked by LLVM's own iterators.
        unsafe {
            let name = c"library".as_ptr();
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(bitcode.as_ptr().cast(), bitcode.len(), name);
            let mut library = ptr::null_mut();
            if LLVMGetBitcodeModuleInContext2(self.context, buffer, &mut library) != 0 {
                LLVMDisposeMemoryBuffer(buffer);
                return Err(refused("the library is not bitcode that LLVM reads"));
            }
            LLVMSetTarget(library, TRIPLE.as_ptr());
            LLVMSetDataLayout(library, LLVMGetDataLayoutStr(self.module));
            // The library is read lazily, and of functions with this linkage only those are linked that are called.
            walk::each_function(library, |function| {
                if LLVMIsDeclaration(function) == 0 && LLVMGetLinkage(function) == LLVMLinkage::LLVMExternalLinkage {
                    LLVMSetLinkage(function, LLVMLinkage::LLVMLinkOnceODRLinkage);
                }
            });
            if LLVMLinkModules2(self.module, library) != 0 {
                return Err(refused("the library cannot be linked"));
            }
            let mut missing = Vec::new();
            walk::each_function(self.module, |function| {
                let linkage = LLVMGetLinkage(function);
                if LLVMIsDeclaration(function) != 0 {
                    let mut length = 0;
                    let start = LLVMGetValueName2(function, &mut length).cast::<u8>();
                    let name = String::from_utf8_lossy(std::slice::from_raw_parts(start, length)).into_owned();
                    // Functions of the driver and of LLVM itself.
                    let known = matches!(&*name, "vprintf" | "__assertfail" | "__nvvm_reflect");
                    if !known && !name.starts_with("llvm.") {
                        missing.push(name);
                    }
                } else if matches!(linkage, LLVMLinkage::LLVMLinkOnceODRLinkage | LLVMLinkage::LLVMInternalLinkage) {
                    LLVMSetLinkage(function, LLVMLinkage::LLVMInternalLinkage);
                }
            });
            if !missing.is_empty() {
                return Err(refused(&format!("the library has no function {}", missing.join(", "))));
            }
            let key = "nvvm-reflect-ftz";
            let flag = u64::from(link.library.flush_denormals);
            let flag = LLVMConstInt(LLVMInt32TypeInContext(self.context), flag, 0);
            let behavior = LLVMModuleFlagBehavior::LLVMModuleFlagBehaviorOverride;
            LLVMAddModuleFlag(self.module, behavior, key.as_ptr().cast(), key.len(), LLVMValueAsMetadata(flag));
        }
        Ok(())
    }

    /// Allows multiplications and additions to be fused. The library's functions carry no flags, because the linking
    /// module decides; the result of linking and of the passes is marked at the end, so that multiplications which the
    /// library wants rounded are fused exactly where Triton fuses them.
    fn allow_contraction(&self) {
        // SAFETY: walks the live module by LLVM's own iterators; only float arithmetic is given a float flag.
        unsafe {
            walk::each_instruction(self.module, |instruction| {
                let opcode = LLVMGetInstructionOpcode(instruction);
                if matches!(opcode, LLVMOpcode::LLVMFAdd | LLVMOpcode::LLVMFSub | LLVMOpcode::LLVMFMul) {
                    let flags = LLVMGetFastMathFlags(instruction) | LLVMFastMathAllowContract;
                    LLVMSetFastMathFlags(instruction, flags);
                }
            });
        }
    }

    /// Sends the context's errors into a list instead of to stderr.
    fn capture_errors(&self) -> Box<RefCell<Vec<String>>> {
        extern "C" fn record(info: LLVMDiagnosticInfoRef, sink: *mut c_void) {
            // SAFETY: LLVM passes back the pointer installed below, whose box outlives the module.
            unsafe {
                if LLVMGetDiagInfoSeverity(info) == LLVMDiagnosticSeverity::LLVMDSError {
                    let text = take_message(LLVMGetDiagInfoDescription(info));
                    (*sink.cast::<RefCell<Vec<String>>>()).borrow_mut().push(text);
                }
            }
        }
        let errors = Box::new(RefCell::new(Vec::new()));
        let sink = ptr::from_ref(&*errors).cast_mut().cast::<c_void>();
        // SAFETY: the box keeps its address and is dropped after the module by `emit`.
        unsafe { LLVMContextSetDiagnosticHandler(self.context, Some(record), sink) };
        errors
    }

    fn verify(&self) -> Result<()> {
        // SAFETY: the module is live; the message is copied and disposed of.
        unsafe {
            let mut message = ptr::null_mut();
            let broken =
                LLVMVerifyModule(self.module, LLVMVerifierFailureAction::LLVMReturnStatusAction, &mut message) != 0;
            let text = take_message(message);
            if broken { Err(CodegenError::Llvm { stage: "verification", message: text }) } else { Ok(()) }
        }
    }

    /// Optimizes the module; `linked` says whether it calls functions that are to be inlined.
    fn optimize(&self, machine: &Machine, linked: bool) -> Result<()> {
        let pipeline::Pipeline { passes, long } = pipeline::choose(self.module, linked);
        self.run(passes, Some(machine))?;
        back_end::leave_out(self.context, self.module, long);
        Ok(())
    }

    /// Runs passes. They must be given the machine: without one they take threads not to diverge, as on a CPU.
    fn run(&self, passes: &CStr, machine: Option<&Machine>) -> Result<()> {
        let machine = machine.map_or(ptr::null_mut(), |machine| machine.0);
        // SAFETY: all handles are live; the options are disposed of; an error's text is consumed.
        unsafe {
            let options = LLVMCreatePassBuilderOptions();
            // Tile values are already spread over threads: loops hold no further vectors.
            LLVMPassBuilderOptionsSetLoopInterleaving(options, 0);
            LLVMPassBuilderOptionsSetLoopVectorization(options, 0);
            // ptxas unrolls with the machine in view; doing it here only makes the text longer.
            LLVMPassBuilderOptionsSetLoopUnrolling(options, 0);
            let error = LLVMRunPasses(self.module, passes.as_ptr(), machine, options);
            LLVMDisposePassBuilderOptions(options);
            if error.is_null() {
                return Ok(());
            }
            let text = LLVMGetErrorMessage(error);
            let message = CStr::from_ptr(text).to_string_lossy().into_owned();
            LLVMDisposeErrorMessage(text);
            Err(CodegenError::Llvm { stage: "optimization", message })
        }
    }

    fn text(&self) -> String {
        // SAFETY: the module is live and the string is ours to dispose of.
        unsafe { take_message(LLVMPrintModuleToString(self.module)) }
    }

    fn ptx(&self, machine: &Machine) -> Result<String> {
        // SAFETY: on success the buffer is ours until disposed of; on failure the message is.
        unsafe {
            let mut buffer = ptr::null_mut();
            let mut message = ptr::null_mut();
            if LLVMTargetMachineEmitToMemoryBuffer(
                machine.0,
                self.module,
                LLVMCodeGenFileType::LLVMAssemblyFile,
                &mut message,
                &mut buffer,
            ) != 0
            {
                return Err(CodegenError::Llvm { stage: "code generation", message: take_message(message) });
            }
            let bytes = std::slice::from_raw_parts(LLVMGetBufferStart(buffer).cast::<u8>(), LLVMGetBufferSize(buffer));
            let ptx = String::from_utf8_lossy(bytes).into_owned();
            LLVMDisposeMemoryBuffer(buffer);
            Ok(ptx)
        }
    }
}

/// A target machine, disposed of when dropped.
struct Machine(LLVMTargetMachineRef);

impl Machine {
    fn new(target: &Target) -> Result<Self> {
        initialize();
        let (major, minor) = target.ptx_version;
        let features = CString::new(format!("+ptx{major}{minor}")).expect("digits hold no NUL");
        let cpu = CString::new(target.name).expect("names in the table hold no NUL");
        // SAFETY: the strings outlive the calls; the machine is owned by the result.
        unsafe {
            let mut handle = ptr::null_mut();
            let mut message = ptr::null_mut();
            if LLVMGetTargetFromTriple(TRIPLE.as_ptr(), &mut handle, &mut message) != 0 {
                return Err(CodegenError::Llvm { stage: "target look-up", message: take_message(message) });
            }
            Ok(Machine(LLVMCreateTargetMachine(
                handle,
                TRIPLE.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                // "Aggressive" repeats value numbering, for a tenth more time and the same machine code after ptxas.
                LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
                LLVMRelocMode::LLVMRelocPIC,
                LLVMCodeModel::LLVMCodeModelDefault,
            )))
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: created by `new` and disposed of once.
        unsafe { LLVMDisposeTargetMachine(self.0) };
    }
}

/// Initializes the NVPTX back end and its options, once per process.
fn initialize() {
    static ONCE: Once = Once::new();
    // SAFETY: `Once` keeps these process-wide calls from running twice or at the same time.
    ONCE.call_once(|| unsafe {
        LLVMInitializeNVPTXTargetInfo();
        LLVMInitializeNVPTXTarget();
        LLVMInitializeNVPTXTargetMC();
        LLVMInitializeNVPTXAsmPrinter();
        // Shared-memory addresses fit in 32 bits, which halves their registers.
        // Accesses come out of the passes as wide as they can be. The load-store vectorizer's search is quadratic, and
        // the vector combiner takes wide loads apart whose elements are used one by one.
        let options = [
            c"rtc".as_ptr(),
            c"-nvptx-short-ptr".as_ptr(),
            c"-disable-nvptx-load-store-vectorizer".as_ptr(),
            c"-disable-vector-combine".as_ptr(),
        ];
        LLVMParseCommandLineOptions(options.len() as i32, options.as_ptr(), ptr::null());
    });
}

/// Copies a message of LLVM and disposes of it; a null pointer is the empty message.
///
/// # Safety
///
/// `message` is null or a string that LLVM allocated for the caller.
unsafe fn take_message(message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: by contract a live, NUL-terminated string that is ours.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        text
    }
}

#[cfg(test)]
mod tests;
