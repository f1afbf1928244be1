//! A thread in which MLIR and LLVM may fail without ending the process.
//!
//! LLVM reports failures as fatal errors, and a bug in it is an invalid access, a trap or an abort. Either would end
//! the program that embeds the compiler. So the work runs in a thread of its own; the handlers of fatal errors and of
//! signals report to the caller and then park that thread for good. The price is a leaked thread with all its memory;
//! the caller gets a [`CodegenError`].
//!
//! Signals of other threads, and all signals while nothing is compiled, go to the previous handlers. A crash that
//! leaves a lock of the C library taken, such as that of its allocator, is not handled.

use std::{
    cell::Cell,
    ffi::{CStr, c_char},
    io::{self, Read},
    os::fd::{AsRawFd, RawFd},
    sync::{Once, OnceLock},
    thread,
};

use llvm_sys::error_handling::LLVMInstallFatalErrorHandler;

use crate::error::{CodegenError, Result};

const STAGE: &str = "code generation";

/// Selection recurses over expressions; a large stack is only address space until it is used.
const STACK_BYTES: usize = 64 << 20;

/// The stack of the signal handler: the thread may have run out of stack.
const SIGNAL_STACK_BYTES: usize = 64 << 10;

/// Ends each message through the pipe; an empty message says that the work is done.
const END: u8 = 0;

/// The signals of crashes, and their messages.
const SIGNALS: [(i32, &[u8]); 6] = [
    (libc::SIGSEGV, b"LLVM crashed: invalid memory access (SIGSEGV)\0"),
    (libc::SIGBUS, b"LLVM crashed: invalid memory access (SIGBUS)\0"),
    (libc::SIGILL, b"LLVM crashed: invalid instruction (SIGILL)\0"),
    (libc::SIGFPE, b"LLVM crashed: invalid arithmetic (SIGFPE)\0"),
    (libc::SIGTRAP, b"LLVM crashed: trap (SIGTRAP)\0"),
    (libc::SIGABRT, b"LLVM crashed: abort (SIGABRT)\0"),
];

const NO_CALLER: RawFd = -1;

thread_local! {
    /// The end of the pipe to the caller that waits for this thread. Without a destructor, so that signal handlers may
    /// read it.
    static CALLER: Cell<RawFd> = const { Cell::new(NO_CALLER) };
}

/// The handlers that were there before ours, in the order of [`SIGNALS`].
static BEFORE: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// Runs `work` in a thread of its own and turns a fatal error or a crash of LLVM into an error value. A panic is
/// resumed in the caller.
pub(crate) fn guarded<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let failed = |message: String| CodegenError::Llvm { stage: STAGE, message };
    install_handlers();
    let (mut reader, writer) = io::pipe().map_err(|error| failed(format!("no pipe: {error}")))?;
    let to_caller = writer.as_raw_fd();
    let run = move || {
        let stack = SignalStack::install();
        CALLER.set(to_caller);
        // A panic must not pass by the message without which the caller waits for ever.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        CALLER.set(NO_CALLER);
        drop(stack);
        tell(to_caller, &[END]);
        outcome
    };
    let builder = thread::Builder::new().name("rtc-llvm".to_owned()).stack_size(STACK_BYTES);
    // SAFETY: what `work` borrows outlives this call, and this call ends only after the message that the work is done or
    // that its thread is parked, which then touches nothing any more.
    let thread = unsafe { builder.spawn_unchecked(run) }.map_err(|error| failed(format!("no thread: {error}")))?;
    let message = read_message(&mut reader);
    if !message.is_empty() {
        return Err(failed(message));
    }
    match thread.join() {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) | Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Waits for a message. Other processes may hold copies of the pipe's ends, so its end says nothing.
fn read_message(reader: &mut io::PipeReader) -> String {
    let mut message = Vec::new();
    let mut byte = [END];
    // An error cannot happen with a pipe of ours; if it does, the thread is joined, which is the safe way to wait.
    while reader.read_exact(&mut byte).is_ok() && byte[0] != END {
        message.push(byte[0]);
    }
    String::from_utf8_lossy(&message).into_owned()
}

/// Writes a message to a pipe, as a signal handler may.
fn tell(pipe: RawFd, mut message: &[u8]) {
    while !message.is_empty() {
        // SAFETY: the pipe is open as long as its caller waits, and the bytes are live.
        let written = unsafe { libc::write(pipe, message.as_ptr().cast(), message.len()) };
        match usize::try_from(written) {
            Ok(written) => message = &message[written..],
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Reports to the caller of this thread, if one is waiting, and then never returns.
fn give_up(message: &[u8]) {
    let caller = CALLER.replace(NO_CALLER);
    if caller != NO_CALLER {
        tell(caller, message);
        loop {
            // SAFETY: it only waits.
            unsafe { libc::pause() };
        }
    }
}

/// LLVM's handler of fatal errors; LLVM ends the process when it returns.
extern "C" fn fatal(reason: *const c_char) {
    // SAFETY: LLVM passes a NUL-terminated string.
    give_up(unsafe { CStr::from_ptr(reason) }.to_bytes_with_nul());
}

/// The signal handler. It calls async-signal-safe functions only, and reads state that is set before it is installed.
extern "C" fn crashed(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(index) = SIGNALS.iter().position(|&(number, _)| number == signal) else { return };
    give_up(SIGNALS[index].1);
    let Some(before) = BEFORE.get().map(|all| &all[index]) else { return };
    match before.sa_sigaction {
        libc::SIG_IGN => {}
        // SAFETY: the default action is put back, which ends the process as soon as the signal, raised again, is no longer
        // blocked: when this handler returns.
        libc::SIG_DFL => unsafe {
            libc::sigaction(signal, before, std::ptr::null_mut());
            libc::raise(signal);
        },
        // SAFETY: what `sigaction` gave is a handler of the kind that its flags say.
        handler => unsafe {
            if before.sa_flags & libc::SA_SIGINFO != 0 {
                type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
                std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
            } else {
                std::mem::transmute::<usize, extern "C" fn(i32)>(handler)(signal);
            }
        },
    }
}

/// Installs the handlers of fatal errors and of signals, once per process.
fn install_handlers() {
    static ONCE: Once = Once::new();
    // SAFETY: `Once` keeps this from running twice. A zeroed `sigaction` is a valid one, and each call gets live ones.
    ONCE.call_once(|| unsafe {
        LLVMInstallFatalErrorHandler(Some(fatal));
        let before = SIGNALS.map(|(signal, _)| {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut before);
            before
        });
        // Set only once: `Once`.
        let _ = BEFORE.set(before);
        for (signal, _) in SIGNALS {
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = crashed as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&mut ours.sa_mask);
            libc::sigaction(signal, &ours, std::ptr::null_mut());
        }
    });
}

/// A stack for signal handlers of this thread; the one before comes back when it is dropped.
struct SignalStack {
    before: libc::stack_t,
    /// Unused but by the handler; on the heap, where it stays when a crash leaks it.
    _memory: Vec<u8>,
}

impl SignalStack {
    fn install() -> SignalStack {
        let mut memory = vec![0; SIGNAL_STACK_BYTES];
        let ours = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
        // SAFETY: a zeroed `stack_t` is a valid one; the memory lives until the stack before it is back.
        let before = unsafe {
            let mut before: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(&ours, &mut before);
            before
        };
        SignalStack { before, _memory: memory }
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        // SAFETY: the stack that this thread had before.
        unsafe { libc::sigaltstack(&self.before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T: std::fmt::Debug>(outcome: Result<T>) -> String {
        match outcome {
            Err(CodegenError::Llvm { message, .. }) => message,
            other => panic!("{other:?}"),
        }
    }

    /// Reads through a null pointer within LLVM.
    fn crash_of_llvm() -> Result<i32> {
        // SAFETY: none; that is the test. The process goes on because the thread that did it never does.
        unsafe { Ok(llvm_sys::core::LLVMGetTypeKind(std::ptr::null_mut()) as i32) }
    }

    #[test]
    fn a_crash_of_llvm_is_an_error_value() {
        for _ in 0..3 {
            assert_eq!(message(guarded(crash_of_llvm)), "LLVM crashed: invalid memory access (SIGSEGV)");
            assert_eq!(guarded(|| Ok(1)).expect("the next work runs"), 1);
        }
    }

    #[test]
    fn an_abort_is_an_error_value() {
        let outcome = guarded(|| -> Result<()> { std::process::abort() });
        assert_eq!(message(outcome), "LLVM crashed: abort (SIGABRT)");
    }

    #[test]
    fn a_stack_that_runs_out_is_an_error_value() {
        fn deep(n: u64) -> u64 {
            let all = std::hint::black_box([n; 64]);
            if all[0] == 0 { 0 } else { deep(n - 1) + all[1] }
        }
        let outcome = guarded(|| Ok(deep(std::hint::black_box(u64::MAX))));
        assert!(message(outcome).contains("SIGSEGV"));
    }

    #[test]
    fn a_panic_goes_on_in_the_caller() {
        let panic =
            std::panic::catch_unwind(|| guarded(|| -> Result<()> { panic!("planted") })).expect_err("it panicked");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"planted"));
    }

    #[test]
    fn many_threads_crash_at_once() {
        let threads: Vec<_> = (0..8)
            .map(|i| {
                thread::spawn(
                    move || if i % 2 == 0 { guarded(crash_of_llvm).is_err() } else { guarded(|| Ok(i)) == Ok(i) },
                )
            })
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().expect("no panic")));
    }

    #[test]
    fn a_crash_elsewhere_ends_the_process_as_before() {
        const CHILD: &str = "RTC_TEST_CRASHES_ELSEWHERE";
        if std::env::var_os(CHILD).is_some() {
            guarded(|| Ok(())).expect("the handlers are installed");
            std::process::abort();
        }
        let name = "translate::guarded::tests::a_crash_elsewhere_ends_the_process_as_before";
        let mut child = std::process::Command::new(std::env::current_exe().expect("this program"));
        let status = child.args(["--exact", name]).env(CHILD, "1").output().expect("it runs").status;
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGABRT));
    }
}
