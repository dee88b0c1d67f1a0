//! Properties of reader and writer together: round trips in every compression, and damage of every kind.

use std::io::Read;

use proptest::prelude::*;

use super::*;
use crate::time::Timestamp;

const COMPRESSIONS: [Compression; 4] =
    [Compression::None, Compression::Gzip(6), Compression::Gzip(0), Compression::Zstd(3)];

/// One item from the reader, with all values that can be compared.
#[derive(Debug, Clone, PartialEq)]
enum ReadResult {
    Record {
        id: String,
        fields: Vec<(String, String)>,
        block: Vec<u8>,
        extent: RecordExtent,
    },
    /// A record whose damage was found only after its head was read.
    Broken(String, Damage),
    Damage(Damage),
}

fn read_all(bytes: &[u8], seekable: bool) -> Vec<ReadResult> {
    let source = std::io::Cursor::new(bytes);
    if seekable { walk(WarcReader::seekable(source).unwrap()) } else { walk(WarcReader::new(source)) }
}

/// A source that returns a few bytes at a time, as sockets and full pipes do.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = out.len().min(self.1).min(self.0.len());
        out[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

fn walk<R: Read>(mut reader: WarcReader<R>) -> Vec<ReadResult> {
    let mut seen = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        seen.push(match item {
            WarcItem::Damage(damage) => ReadResult::Damage(damage),
            WarcItem::Record(mut record) => {
                let id = record.header().record_id().unwrap_or("").to_string();
                let fields = record.header().fields().map(|(n, v)| (n.to_string(), v.to_string())).collect();
                let mut block = Vec::new();
                let _ = record.read_to_end(&mut block);
                match record.finish().unwrap() {
                    Ok(extent) => ReadResult::Record { id, fields, block, extent },
                    Err(damage) => ReadResult::Broken(id, damage),
                }
            }
        });
        assert!(seen.len() < 100_000, "the reader does not come to an end");
    }
    seen
}

fn sound_ids(seen: &[ReadResult]) -> Vec<String> {
    seen.iter()
        .filter_map(|s| match s {
            ReadResult::Record { id, .. } => Some(id.clone()),
            _ => None,
        })
        .collect()
}

/// A record for a test to write: its type by number, its URL and its body.
type RecordPlan = (u8, String, Vec<u8>);

fn write_plans(plans: &[RecordPlan], compression: Compression) -> (Vec<u8>, Vec<WrittenRecord>, Vec<String>) {
    let mut writer = WarcWriter::new(Vec::new(), 0, compression).unwrap();
    let mut ids = RecordIds::new(7);
    let (mut written, mut names) = (Vec::new(), Vec::new());
    for (i, (kind, url, body)) in plans.iter().enumerate() {
        let id = ids.next_id();
        let date = Timestamp::from_secs(1_600_000_000 + i as i64);
        let record = match kind % 6 {
            0 => NewRecord::response(id, date, url, b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", body),
            1 => NewRecord::request(id, date, url, b"GET / HTTP/1.1\r\n\r\n", body),
            2 => NewRecord::resource(id, date, url, "text/plain", body),
            3 => NewRecord::metadata_block(id, date, url, "application/json", body),
            4 => NewRecord::warcinfo(id, date, "x.warc.gz", &[("software", "perennial"), ("format", "a\nb")]),
            _ => NewRecord::revisit(
                id,
                date,
                url,
                RevisitProfile::IdenticalPayloadDigest,
                b"HTTP/1.1 200 OK\r\n\r\n",
                Some("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
            )
            .refers_to(url, date),
        };
        written.push(writer.write(&record).unwrap());
        names.push(id.to_string());
    }
    (writer.into_inner(), written, names)
}

fn plans(max_body: usize) -> impl Strategy<Value = Vec<RecordPlan>> {
    let body = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..max_body),
        "(abc|def|\r\n|<p>|WARC|/1.0){0,60}".prop_map(String::into_bytes),
    ];
    let url = "http://[a-z]{1,8}\\.example/[a-zA-Z0-9 \n%é]{0,20}";
    proptest::collection::vec((any::<u8>(), url, body), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_back(plans in plans(3000), pick in 0..4usize, seekable: bool) {
        let (bytes, written, names) = write_plans(&plans, COMPRESSIONS[pick]);
        let seen = read_all(&bytes, seekable);
        prop_assert_eq!(sound_ids(&seen), names);
        prop_assert_eq!(seen.len(), plans.len());
        for ((seen, written), (kind, _, body)) in seen.iter().zip(&written).zip(&plans) {
            let ReadResult::Record { fields, block, extent, .. } = seen else { unreachable!() };
            prop_assert_eq!((extent.offset, extent.length, extent.shared), (written.offset, written.length, false));
            if kind % 6 < 4 {
                prop_assert!(block.ends_with(body));
            }
            let digest = fields.iter().find(|(n, _)| n == "WARC-Block-Digest").map(|(_, v)| v.clone());
            prop_assert_eq!(digest, Some(sha1_label(block)));
        }
    }

    #[test]
    fn small_reads_change_nothing(plans in plans(300), pick in 0..4usize, step in 1..40usize, at: prop::sample::Index, flip: bool) {
        let (mut bytes, _, _) = write_plans(&plans, COMPRESSIONS[pick]);
        // libzstd accepts a wrong window size if it has the whole frame.
        if flip && pick < 3 {
            let at = at.index(bytes.len());
            bytes[at] ^= 0x10;
        }
        // The size of the window affects when damage is found, but not which records are sound.
        let sound = |seen: Vec<ReadResult>| seen.into_iter().filter(|s| matches!(s, ReadResult::Record { .. })).collect::<Vec<_>>();
        prop_assert_eq!(sound(walk(WarcReader::new(Trickle(&bytes, step)))), sound(read_all(&bytes, true)));
    }

    #[test]
    fn digests_of_what_is_written_hold(plans in plans(500), pick in 0..4usize) {
        let (bytes, _, _) = write_plans(&plans, COMPRESSIONS[pick]);
        let mut reader = WarcReader::new(&bytes[..]);
        while let Some(item) = reader.next_item().unwrap() {
            let WarcItem::Record(mut record) = item else { panic!("damage") };
            let has_payload = !matches!(record.header().record_type(), RecordType::Warcinfo | RecordType::Revisit);
            let (block, payload) = record.check_digests().unwrap();
            prop_assert_eq!(block, DigestVerdict::Match);
            prop_assert_eq!(payload, if has_payload { DigestVerdict::Match } else { DigestVerdict::Absent });
        }
    }

    #[test]
    fn a_flipped_bit_costs_one_record(plans in plans(2000), pick in 0..4usize, at: prop::sample::Index, bit in 0..8u8, seekable: bool) {
        let (mut bytes, written, names) = write_plans(&plans, COMPRESSIONS[pick]);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let hit = written.iter().rposition(|w| w.offset <= at as u64).unwrap();
        expect_all_but(&names, hit, &read_all(&bytes, seekable))?;
    }

    #[test]
    fn a_torn_tail_costs_the_last_record(plans in plans(2000), pick in 0..4usize, at: prop::sample::Index, seekable: bool) {
        let (mut bytes, written, names) = write_plans(&plans, COMPRESSIONS[pick]);
        let at = at.index(bytes.len());
        bytes.truncate(at);
        let n_whole = written.iter().filter(|w| w.offset + w.length <= at as u64).count();
        let seen = read_all(&bytes, seekable);
        prop_assert_eq!(&sound_ids(&seen)[..], &names[..n_whole]);
        let torn_at = written.get(n_whole).map_or(at as u64, |w| w.offset);
        if torn_at < at as u64 {
            let damage = seen.iter().find_map(|s| match s {
                ReadResult::Damage(d) | ReadResult::Broken(_, d) => Some(*d),
                ReadResult::Record { .. } => None,
            });
            prop_assert_eq!(damage.map(|d| (d.offset, d.offset + d.length)), Some((torn_at, at as u64)));
        }
    }

    #[test]
    fn a_crash_in_the_middle_costs_one_record(plans in plans(2000), pick in 0..4usize, hit: prop::sample::Index, share in 0.0..1.0f64) {
        let (bytes, written, names) = write_plans(&plans, COMPRESSIONS[pick]);
        let hit = hit.index(written.len());
        let (offset, length) = (written[hit].offset as usize, written[hit].length as usize);
        let keep = offset + 1 + ((length - 1) as f64 * share) as usize;
        let next = written.get(hit + 1).map_or(bytes.len(), |w| w.offset as usize);
        let torn = [&bytes[..keep.min(next)], &bytes[next..]].concat();
        expect_all_but(&names, hit, &read_all(&torn, true))?;
    }

    #[test]
    fn garbage_between_records_costs_none(plans in plans(2000), pick in 0..4usize, hit: prop::sample::Index, garbage in proptest::collection::vec(any::<u8>(), 1..300), seekable: bool) {
        prop_assume!(garbage.iter().any(|b| !b"\r\n".contains(b)));
        let (bytes, written, names) = write_plans(&plans, COMPRESSIONS[pick]);
        let at = written[hit.index(written.len())].offset as usize;
        let dirty = [&bytes[..at], &garbage, &bytes[at..]].concat();
        let seen = read_all(&dirty, seekable);
        prop_assert_eq!(sound_ids(&seen), names);
        let damage = seen.iter().find_map(|s| match s { ReadResult::Damage(d) => Some(d.cause), _ => None });
        prop_assert_eq!(damage.is_some(), true);
    }

    #[test]
    fn a_wrong_length_costs_one_record(plans in plans(2000), pick in 0..4usize, hit: prop::sample::Index, length in 0..20_000u64) {
        let (bytes, written, names) = write_plans(&plans, Compression::None);
        let hit = hit.index(written.len());
        let next = written.get(hit + 1).map_or(bytes.len(), |w| w.offset as usize);
        let record = String::from_utf8_lossy(&bytes[written[hit].offset as usize..next]).into_owned();
        let field = record.find("Content-Length: ").unwrap() + 16;
        let old: u64 = record[field..].split('\r').next().unwrap().parse().unwrap();
        prop_assume!(old != length);
        let (from, end) = (written[hit].offset as usize + field, written[hit].offset as usize + field + old.to_string().len());
        let lied = [&bytes[..from], length.to_string().as_bytes(), &bytes[end..]].concat();
        let shift = length.to_string().len() as i64 - old.to_string().len() as i64;
        let members: Vec<&[u8]> = (0..written.len()).map(|i| {
            let moved = |o: u64, i: usize| (o as i64 + if i > hit { shift } else { 0 }) as usize;
            let end = written.get(i + 1).map_or(lied.len(), |w| moved(w.offset, i + 1));
            &lied[moved(written[i].offset, i)..end]
        }).collect();
        let packed: Vec<u8> = match COMPRESSIONS[pick] {
            Compression::None => lied.clone(),
            Compression::Gzip(_) => members.iter().flat_map(|m| gzip(m)).collect(),
            Compression::Zstd(_) => members.iter().flat_map(|m| zstd::bulk::compress(m, 1).unwrap()).collect(),
        };
        expect_all_but(&names, hit, &read_all(&packed, true))?;
    }

    #[test]
    fn one_gzip_member_for_all_is_read_and_marked(plans in plans(2000)) {
        let (bytes, _, names) = write_plans(&plans, Compression::None);
        let seen = read_all(&gzip(&bytes), false);
        prop_assert_eq!(sound_ids(&seen), names);
        prop_assert_eq!(seen.len(), plans.len());
        for s in &seen {
            let ReadResult::Record { extent, .. } = s else { unreachable!() };
            prop_assert_eq!(extent.shared, plans.len() > 1);
        }
    }

    #[test]
    fn any_bytes_come_to_an_end(
        parts in proptest::collection::vec(prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            Just(b"WARC/1.0\r\n".to_vec()),
            Just(b"WARC-Type: response\r\nWARC-Target-URI: http://a/\r\n".to_vec()),
            "Content-Length: [0-9]{0,20}\r\n".prop_map(String::into_bytes),
            Just(b"\r\n\r\n".to_vec()),
            Just(b"http://a/ 1.2.3.4 20200101000000 text/html 7\n".to_vec()),
            Just(vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0]),
            Just(vec![0x1f, 0x8b, 8, 31]),
            Just(vec![0x28, 0xb5, 0x2f, 0xfd]),
            Just(vec![0x5d, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4]),
            Just(gzip(b"WARC/1.0\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n")),
            Just(gzip(b"x")),
        ], 0..30),
        seekable: bool,
    ) {
        let bytes = parts.concat();
        let seen = read_all(&bytes, seekable);
        prop_assert!(seen.len() <= bytes.len() + 1);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

/// Checks that all records but one are sound and in order; that one may be. In a plain file a record's wrong length
/// may end by chance at the end of a later record. Its block then contains that record, and its digest must be wrong.
fn expect_all_but(names: &[String], hit: usize, seen: &[ReadResult]) -> Result<(), TestCaseError> {
    let sound = sound_ids(seen);
    let mut others = names.to_vec();
    let lost = others.remove(hit);
    let rest: Vec<String> = sound.iter().filter(|id| names.contains(id) && **id != lost).cloned().collect();
    let swallowed = names_in_block_of(&lost, seen);
    others.retain(|id| !swallowed.contains(id));
    prop_assert_eq!(rest, others, "hit {}: {:?}", hit, seen);
    Ok(())
}

/// Returns the records in the block of a record whose digest is wrong.
fn names_in_block_of(id: &str, seen: &[ReadResult]) -> Vec<String> {
    let is_it = |s: &&ReadResult| matches!(s, ReadResult::Record { id: other, .. } if other == id);
    let Some(ReadResult::Record { fields, block, .. }) = seen.iter().find(is_it) else { return Vec::new() };
    if fields.iter().any(|(n, v)| n == "WARC-Block-Digest" && *v == sha1_label(block)) {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(block);
    let ids = text.split("WARC-Record-ID: ").skip(1);
    ids.filter_map(|rest| rest.lines().next()).map(str::to_string).collect()
}
