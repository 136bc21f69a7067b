//! Decodes the beginning of a segment of etcd's write-ahead log.
//!
//! A segment is a row of frames. A frame is eight bytes, little-endian, whose lower 56 bits are the length of the record;
//! if the highest bit is set, the lowest three bits of the highest byte say how much padding follows the record. Every
//! segment begins with a checksum record, which carries the log's running checksum so far, and a metadata record, which
//! says whose log it is.

use prost::Message;

use crate::identity::Identity;

const KIND_METADATA: i64 = 1;
const KIND_CHECKSUM: i64 = 4;

/// What etcd calls `walpb.Record`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Record {
    #[prost(int64, tag = "1")]
    pub kind: i64,
    #[prost(uint32, tag = "2")]
    pub checksum: u32,
    #[prost(bytes = "vec", tag = "3")]
    pub data: Vec<u8>,
}

/// What etcd calls `etcdserverpb.Metadata`.
#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(uint64, tag = "1")]
    member_id: u64,
    #[prost(uint64, tag = "2")]
    cluster_id: u64,
}

/// Whose log is this? `prefix` is the beginning of a segment; the error says why it cannot be told.
pub(crate) fn identity_in(prefix: &[u8]) -> Result<Identity, String> {
    let (first, rest) = next_record(prefix)?;
    if first.kind != KIND_CHECKSUM {
        return Err(format!("it begins with a record of type {}, not with a checksum", first.kind));
    }
    let (second, _) = next_record(rest)?;
    if second.kind != KIND_METADATA {
        return Err(format!("its second record has type {}, and is not the metadata", second.kind));
    }
    // etcd's checksum runs through the whole log. The first record says what it was at the end of the previous segment
    // (zero in the first one), so a segment can be checked alone.
    if crc32c::crc32c_append(first.checksum, &second.data) != second.checksum {
        return Err("the checksum of its metadata does not match".into());
    }
    let metadata = Metadata::decode(second.data.as_slice()).map_err(|e| format!("its metadata is garbled: {e}"))?;
    // Zero stands for "nobody" in etcd; no member and no cluster has it.
    if metadata.member_id == 0 || metadata.cluster_id == 0 {
        return Err("its metadata names no member or no cluster".into());
    }
    Ok(Identity { member_id: metadata.member_id, cluster_id: metadata.cluster_id })
}

/// Splits the first record off. Nothing is allocated by the length that a frame claims: the record is cut out of what
/// was read.
fn next_record(bytes: &[u8]) -> Result<(Record, &[u8]), String> {
    let Some((frame, rest)) = bytes.split_first_chunk::<8>() else {
        return Err("it ends before its metadata".into());
    };
    let frame = u64::from_le_bytes(*frame);
    // etcd allocates segments full of zeros and writes into them, so a zero frame is where writing ended.
    if frame == 0 {
        return Err("nothing was written to it before its metadata".into());
    }
    let length = frame & (u64::MAX >> 8);
    let Some((record, rest)) = usize::try_from(length).ok().and_then(|n| rest.split_at_checked(n)) else {
        return Err(format!("a record claims {length} bytes, which is more than its beginning holds"));
    };
    let record = Record::decode(record).map_err(|e| format!("a record is garbled: {e}"))?;
    let padding = if frame >> 63 == 1 { (frame >> 56) & 0x7 } else { 0 };
    // Padding that was cut off can hide no record, so what follows is just empty.
    let rest = rest.get(padding as usize..).unwrap_or_default();
    Ok((record, rest))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIXTURES: [(&[u8], Identity); 4] = [
        (
            include_bytes!("../tests/fixtures/etcd-3.5.35.wal"),
            Identity { member_id: 11553900082186688390, cluster_id: 1541743353965657676 },
        ),
        (
            include_bytes!("../tests/fixtures/etcd-3.6.16.wal"),
            Identity { member_id: 16363669548810677506, cluster_id: 3154201346913400033 },
        ),
        (
            include_bytes!("../tests/fixtures/etcd-3.6.16-second-segment.wal"),
            Identity { member_id: 12854278498523834506, cluster_id: 14307410375091369514 },
        ),
        (
            include_bytes!("../tests/fixtures/etcd-3.7.3.wal"),
            Identity { member_id: 13234299541185313275, cluster_id: 16193007706796801840 },
        ),
    ];

    fn frame(record: &Record) -> Vec<u8> {
        let body = record.encode_to_vec();
        let padding = (8 - body.len() % 8) % 8;
        let flag = if padding == 0 { 0 } else { 0x80 | padding as u64 };
        let mut out = (body.len() as u64 | flag << 56).to_le_bytes().to_vec();
        out.extend(body);
        out.resize(out.len() + padding, 0);
        out
    }

    /// The beginning of a segment as etcd would write it, when `seed` is the log's checksum so far.
    pub(crate) fn segment(identity: Identity, seed: u32) -> Vec<u8> {
        let data = Metadata { member_id: identity.member_id, cluster_id: identity.cluster_id }.encode_to_vec();
        let checksum = crc32c::crc32c_append(seed, &data);
        let mut out = frame(&Record { kind: KIND_CHECKSUM, checksum: seed, data: Vec::new() });
        out.extend(frame(&Record { kind: KIND_METADATA, checksum, data }));
        out
    }

    #[test]
    fn wal_written_by_etcd_is_read() {
        for (bytes, identity) in FIXTURES {
            assert_eq!(identity_in(bytes), Ok(identity));
        }
    }

    #[test]
    fn truncated_segment_never_gives_another_identity() {
        for (bytes, identity) in FIXTURES {
            let mut readable = 0;
            for length in 0..=bytes.len() {
                if let Ok(found) = identity_in(&bytes[..length]) {
                    assert_eq!(found, identity, "cut at {length}");
                    readable += 1;
                }
            }
            assert!(readable > 0 && readable < bytes.len());
        }
    }

    #[test]
    fn flipped_bit_in_wal_metadata_is_detected() {
        for (bytes, identity) in FIXTURES {
            // Both records lie in the first 64 bytes; whatever bit flips, nobody else may come out.
            for bit in 0..64 * 8 {
                let mut bytes = bytes.to_vec();
                bytes[bit / 8] ^= 1 << (bit % 8);
                if let Ok(found) = identity_in(&bytes) {
                    assert_eq!(found, identity, "bit {bit}");
                }
            }
        }
    }

    #[test]
    fn wal_with_zeros_or_invalid_lengths_is_refused() {
        assert!(identity_in(&[]).is_err());
        assert!(identity_in(&[0; 4096]).is_err());
        assert!(identity_in(&[0xff; 4096]).is_err());
        let mut claims_much = (u64::MAX >> 8).to_le_bytes().to_vec();
        claims_much.resize(4096, 1);
        assert!(identity_in(&claims_much).is_err());
        assert!(identity_in(&segment(Identity { member_id: 0, cluster_id: 7 }, 0)).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
            let _ = identity_in(&bytes);
        }

        #[test]
        fn arbitrary_records_never_panic(records in proptest::collection::vec(
            (any::<i64>(), any::<u32>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..4)) {
            let bytes: Vec<u8> =
                records.into_iter().flat_map(|(kind, checksum, data)| frame(&Record { kind, checksum, data })).collect();
            let _ = identity_in(&bytes);
        }

        #[test]
        fn wal_records_survive_a_round_trip(member_id in 1u64.., cluster_id in 1u64.., seed: u32) {
            let identity = Identity { member_id, cluster_id };
            prop_assert_eq!(identity_in(&segment(identity, seed)), Ok(identity));
        }
    }
}
