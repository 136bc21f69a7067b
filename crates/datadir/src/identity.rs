//! Says, with no etcd running, whose data a data dir holds.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::wal;

/// Both records of interest lie in the first hundred bytes of a segment. Segments have 64 MB: only this much is read.
const PREFIX: u64 = 4096;

/// Whose data it is. Compare both: a cluster that was forced to start anew keeps its cluster ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub member_id: u64,
    pub cluster_id: u64,
}

/// What a data dir holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataDir {
    /// Nothing that etcd would continue from: no write-ahead log. A backend file may lie there nevertheless, because a
    /// member's first start creates that before its log.
    Nothing,
    /// The data of this member.
    Member(Identity),
    /// A write-ahead log that does not say whose it is, and why not. etcd would try to continue from it, so it is not
    /// the same as nothing.
    Unreadable(String),
}

/// Whose data lies in `data_dir`?
pub fn read(data_dir: &Path) -> io::Result<DataDir> {
    let segments = segments_newest_first(&data_dir.join("member").join("wal"))?;
    let mut newest_failure = None;
    for segment in segments {
        let identity = if has_segment_name(&segment) {
            wal::identity_in(&read_prefix(&segment)?)
        } else {
            Err("etcd gives no segment such a name".into())
        };
        match identity {
            Ok(identity) => return Ok(DataDir::Member(identity)),
            Err(why) => {
                newest_failure.get_or_insert_with(|| format!("{}: {why}", segment.display()));
            }
        }
    }
    Ok(newest_failure.map_or(DataDir::Nothing, DataDir::Unreadable))
}

/// Every file that makes etcd think that there is a log: what ends in `.wal`. Segments in the making (`.tmp`) and ones
/// that a repair set aside (`.broken`) end otherwise. The names are numbers of a fixed width, so they sort by age.
fn segments_newest_first(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|e| while_reading(dir, e))?,
    };
    let mut segments = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| while_reading(dir, e))?.path();
        if path.extension().is_some_and(|e| e == "wal") {
            segments.push(path);
        }
    }
    segments.sort_unstable_by(|a, b| b.cmp(a));
    Ok(segments)
}

/// Is it named as etcd names segments, `<16 hex digits>-<16 hex digits>.wal`?
fn has_segment_name(path: &Path) -> bool {
    let is_number = |s: &str| s.len() == 16 && s.bytes().all(|b| b.is_ascii_hexdigit());
    let stem = path.file_stem().and_then(|s| s.to_str()).and_then(|s| s.split_once('-'));
    stem.is_some_and(|(sequence, index)| is_number(sequence) && is_number(index))
}

fn read_prefix(path: &Path) -> io::Result<Vec<u8>> {
    let mut prefix = Vec::new();
    File::open(path).and_then(|file| file.take(PREFIX).read_to_end(&mut prefix)).map_err(|e| while_reading(path, e))?;
    Ok(prefix)
}

fn while_reading(path: &Path, e: io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("reading {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wal::tests::segment;

    const OLD: &str = "0000000000000000-0000000000000000.wal";
    const NEW: &str = "000000000000000a-00000000000f4240.wal";
    const SOMEBODY: Identity = Identity { member_id: 0x8e9e05c52164694d, cluster_id: 0xcdf818194e3a8c32 };

    fn data_dir_with(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let wal = dir.path().join("member/wal");
        fs::create_dir_all(&wal).unwrap();
        for (name, bytes) in files {
            fs::write(wal.join(name), bytes).unwrap();
        }
        dir
    }

    #[test]
    fn data_dir_without_files_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(&dir.path().join("absent")).unwrap(), DataDir::Nothing);
        assert_eq!(read(dir.path()).unwrap(), DataDir::Nothing);
        fs::create_dir_all(dir.path().join("lost+found")).unwrap();
        fs::create_dir_all(dir.path().join("member/snap")).unwrap();
        fs::write(dir.path().join("member/snap/db"), b"a backend").unwrap();
        assert_eq!(read(dir.path()).unwrap(), DataDir::Nothing);

        let good = segment(SOMEBODY, 0);
        let dir = data_dir_with(&[("0.tmp", &good), ("0000000000000000-0000000000000000.wal.broken", &good)]);
        assert_eq!(read(dir.path()).unwrap(), DataDir::Nothing);
    }

    #[test]
    fn damaged_wal_is_unreadable_and_not_empty() {
        let good = segment(SOMEBODY, 0);
        for bytes in
            [&[][..], &[0; 64_000], b"garbage that is long enough to look like frames", &good[..good.len() - 9]]
        {
            let dir = data_dir_with(&[(OLD, bytes)]);
            let DataDir::Unreadable(why) = read(dir.path()).unwrap() else { panic!("{bytes:?}") };
            assert!(why.contains(OLD), "{why}");
        }
    }

    #[test]
    fn wal_file_with_another_name_is_ignored() {
        let copy = segment(Identity { member_id: 1, cluster_id: 2 }, 0);
        let dir = data_dir_with(&[("copy.wal", &copy)]);
        assert!(matches!(read(dir.path()).unwrap(), DataDir::Unreadable(_)));
        let dir = data_dir_with(&[("copy.wal", &copy), (OLD, &segment(SOMEBODY, 0))]);
        assert_eq!(read(dir.path()).unwrap(), DataDir::Member(SOMEBODY));
    }

    #[test]
    fn identity_is_read_from_the_newest_readable_segment() {
        let older = segment(Identity { member_id: 1, cluster_id: 2 }, 0);
        let newer = segment(SOMEBODY, 0xfeed);
        let dir = data_dir_with(&[(OLD, &older), (NEW, &newer)]);
        assert_eq!(read(dir.path()).unwrap(), DataDir::Member(SOMEBODY));
        let dir = data_dir_with(&[(OLD, &newer), (NEW, &[0; 4096])]);
        assert_eq!(read(dir.path()).unwrap(), DataDir::Member(SOMEBODY));
    }

    #[test]
    fn data_dir_that_is_no_directory_is_an_error_with_its_path() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("member")).unwrap();
        fs::write(dir.path().join("member/wal"), b"").unwrap();
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("member/wal"), "{error}");
    }

    #[test]
    fn only_the_beginning_of_a_segment_is_read() {
        let dir = data_dir_with(&[(OLD, &segment(SOMEBODY, 0))]);
        let path = dir.path().join("member/wal").join(OLD);
        File::options().write(true).open(&path).unwrap().set_len(64_000_000).unwrap();
        assert_eq!(read_prefix(&path).unwrap().len() as u64, PREFIX);
        assert_eq!(read(dir.path()).unwrap(), DataDir::Member(SOMEBODY));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn arbitrary_files_never_panic_and_are_never_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
            let dir = data_dir_with(&[(OLD, &bytes)]);
            prop_assert!(read(dir.path()).unwrap() != DataDir::Nothing);
        }
    }
}
