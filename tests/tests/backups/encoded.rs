//! Backups that are compressed and encrypted.

use e2e::Namespace;
use e2e::backup::{Order, backup_manifest, restore_manifest};
use e2e::stores::{Bucket, Store, write_secret};
use serde_json::{Value, json};

use crate::{Known, made, small_cluster};

/// A pair of keys for tests.
pub const RECIPIENT: &str = "age16u40m48rkkjruck8ejlqj9shknxnl4d46vkdffdlc9nvv42ctpaspf20nx";
const IDENTITY: &str = "AGE-SECRET-KEY-1ZRYGV22MN70VQ5V94K7MWJRUYK5HD5Q2GE4ZC7TV86JJZL9203ASZA40HG";
/// A private key that opens nothing here.
pub const OTHER_IDENTITY: &str = "AGE-SECRET-KEY-1GZ4UZK45WA9EQU2WA28FLDM5S38P82XGUMKUFM8W6FAT2U3NT95QTHM0K3";

pub fn opened_with(secret: &str) -> Value {
    json!({"age": {"identitySecretKeyRef": {"name": secret, "key": "identity.txt"}}})
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn compressed_and_encrypted_backup_is_restored_and_contains_no_plaintext() {
    let namespace = Namespace::create("backups-encoded");
    let bucket = Bucket::create(Store::S3, "encoded", &namespace);
    let key_file = format!("# created by hand\n{IDENTITY}\n");
    write_secret(&namespace, "identity", &json!({"identity.txt": key_file}));
    let etcd = small_cluster(&namespace);
    etcd.fill(1000);
    etcd.put("password", "unmistakable");
    let known = Known::of(&etcd);

    // This one knows the cluster only by its address, like one that the operator has nothing to do with.
    let mut manifest = backup_manifest("plain", "c", bucket.destination("plain.db"));
    manifest["spec"]["clusterName"] = Value::Null;
    manifest["spec"]["source"] = json!({"clusterURL": "http://c-client:2379"});
    let plain = Order::place(&namespace, &manifest);
    let mut manifest = backup_manifest("encoded", "c", bucket.destination("encoded.db"));
    manifest["spec"]["compression"] = json!("Zstd");
    manifest["spec"]["encryption"] = json!({"age": {"recipients": [RECIPIENT]}});
    manifest["spec"]["verify"] = json!("Restore");
    manifest["spec"]["decryption"] = opened_with("identity");
    let encoded = Order::place(&namespace, &manifest);
    assert_eq!(plain.complete()["keys"], 1001);
    let status = encoded.complete();
    assert_eq!(status["verified"], true, "{status}");
    let sizes = ["objectSize", "snapshotSize"].map(|field| status[field].as_u64().unwrap());
    assert!(sizes[0] < sizes[1] / 2, "{sizes:?}");
    bucket.assert_holds(&["plain.db", "encoded.db"]);
    let (plain, encoded) = (bucket.read("plain.db"), bucket.read("encoded.db"));
    assert!(has(&plain, "unmistakable") && has(&plain, "password"), "it can be found where nothing hides it");
    assert!(!has(&encoded, "unmistakable") && !has(&encoded, "password"), "it is encrypted");
    let manifest = bucket.manifest_of("encoded.db");
    assert_eq!((&manifest["compression"], &manifest["encryption"]), (&json!("zstd"), &json!("age")));

    let mut source = bucket.source("encoded.db");
    source["decryption"] = opened_with("identity");
    Order::place(&namespace, &restore_manifest("encoded", source, "r", 1)).complete();
    let restored = made(&namespace, "r");
    known.assert_restored_to(&restored, 1);
    assert_eq!(restored.value("password").as_deref(), Some("unmistakable"));
}
