//! Properties of reader and writer together: round trips in every compression, and damage of every kind.

use std::io::Read;

use proptest::prelude::*;

use super::*;
use crate::time::Timestamp;

const COMPRESSIONS: [Compression; 4] =
    [Compression::None, Compression::Gzip(6), Compression::Gzip(0), Compression::Zstd(3)];

/// One thing the reader reported, with everything that can be compared.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Record {
        id: String,
        fields: Vec<(String, String)>,
        block: Vec<u8>,
        extent: Extent,
    },
    /// A record that turned out damaged after its head was read.
    Broken(String, Damage),
    Damage(Damage),
}

fn read_all(bytes: &[u8], seekable: bool) -> Vec<Seen> {
    let source = std::io::Cursor::new(bytes);
    let mut reader = if seekable { WarcReader::seekable(source).unwrap() } else { WarcReader::new(source) };
    let mut seen = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        seen.push(match item {
            Item::Damage(damage) => Seen::Damage(damage),
            Item::Record(mut record) => {
                let id = record.header().record_id().unwrap_or("").to_string();
                let fields = record.header().fields().map(|(n, v)| (n.to_string(), v.to_string())).collect();
                let mut block = Vec::new();
                let _ = record.read_to_end(&mut block);
                match record.finish().unwrap() {
                    Ok(extent) => Seen::Record { id, fields, block, extent },
                    Err(damage) => Seen::Broken(id, damage),
                }
            }
        });
        assert!(seen.len() < 100_000, "the reader does not come to an end");
    }
    seen
}

fn sound_ids(seen: &[Seen]) -> Vec<String> {
    seen.iter()
        .filter_map(|s| match s {
            Seen::Record { id, .. } => Some(id.clone()),
            _ => None,
        })
        .collect()
}

/// What a test writes: a kind by number, an address, a body.
type Plan = (u8, String, Vec<u8>);

fn write_plans(plans: &[Plan], compression: Compression) -> (Vec<u8>, Vec<Written>, Vec<String>) {
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
            .refers_to(url, date, None),
        };
        written.push(writer.write(&record).unwrap());
        names.push(id.to_string());
    }
    (writer.into_inner(), written, names)
}

fn plans(max_body: usize) -> impl Strategy<Value = Vec<Plan>> {
    let body = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..max_body),
        "(abc|def|\r\n|<p>|WARC|/1.0){0,60}".prop_map(String::into_bytes),
    ];
    let url = "http://[a-z]{1,8}\\.example/[a-zA-Z0-9 \n%é]{0,20}";
    proptest::collection::vec((any::<u8>(), url, body), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_written_is_read_back(plans in plans(3000), pick in 0..4usize, seekable: bool) {
        let (bytes, written, names) = write_plans(&plans, COMPRESSIONS[pick]);
        let seen = read_all(&bytes, seekable);
        prop_assert_eq!(sound_ids(&seen), names);
        prop_assert_eq!(seen.len(), plans.len());
        for ((seen, written), (kind, _, body)) in seen.iter().zip(&written).zip(&plans) {
            let Seen::Record { fields, block, extent, .. } = seen else { unreachable!() };
            prop_assert_eq!((extent.offset, extent.length, extent.shared), (written.offset, written.length, false));
            if kind % 6 < 4 {
                prop_assert!(block.ends_with(body));
            }
            let digest = fields.iter().find(|(n, _)| n == "WARC-Block-Digest").map(|(_, v)| v.clone());
            prop_assert_eq!(digest, Some(sha1_label(block)));
        }
    }

    #[test]
    fn digests_of_what_is_written_hold(plans in plans(500), pick in 0..4usize) {
        let (bytes, _, _) = write_plans(&plans, COMPRESSIONS[pick]);
        let mut reader = WarcReader::new(&bytes[..]);
        while let Some(item) = reader.next_item().unwrap() {
            let Item::Record(mut record) = item else { panic!("damage") };
            let has_payload = !matches!(record.header().record_type(), RecordType::Warcinfo | RecordType::Revisit);
            let (block, payload) = record.check_digests().unwrap();
            prop_assert_eq!(block, DigestVerdict::Match);
            prop_assert_eq!(payload, if has_payload { DigestVerdict::Match } else { DigestVerdict::Absent });
        }
    }
}
