//! The process that holds a pod's namespaces open and does nothing else.

use std::ffi::c_int;

unsafe extern "C" {
    fn pause() -> c_int;
    fn signal(signal: c_int, handler: extern "C" fn(c_int)) -> usize;
}

const SIGINT: c_int = 2;
const SIGTERM: c_int = 15;

// As the first process of its namespace it must ask for these signals, or the kernel drops them.
extern "C" fn leave(_signal: c_int) {
    std::process::exit(0);
}

fn main() {
    unsafe {
        signal(SIGINT, leave);
        signal(SIGTERM, leave);
        loop {
            pause();
        }
    }
}
