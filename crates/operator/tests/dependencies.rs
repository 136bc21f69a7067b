//! Fails when a dependency brings a second cryptography library, which would make rustls panic or the binary dynamic.

use std::path::Path;

#[test]
fn ring_is_the_only_cryptography_library() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let lock = std::fs::read_to_string(lock).unwrap();
    assert!(lock.contains("name = \"ring\""));
    for unwanted in ["aws-lc-rs", "aws-lc-sys", "openssl", "openssl-sys"] {
        assert!(!lock.contains(&format!("name = \"{unwanted}\"")), "{unwanted} is in Cargo.lock");
    }
}
