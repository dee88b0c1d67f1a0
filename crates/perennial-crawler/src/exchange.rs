//! An exchange between fetching and archiving. Its document is decoded once.

use perennial_core::http::response::Validators;
use perennial_core::time::Timestamp;
use perennial_warc::Compression;

use super::record::StoredExchange;
use perennial_archive::links::{self, DocumentText, PageLinks, RENDERED_PREFIX};
use perennial_archive::{
    AppendOutcome, CompressedRecords, DerivedResource, Exchange, ExchangeBody, HOPS, LeftOutVersion,
};
use perennial_fetch::{FetchedBody, FetchedResponse};

/// The fact that describes an action in a page, in the metadata record of its capture.
const ACTION: &str = "behavior";

pub(super) struct FetchedExchange {
    pub(super) url: String,
    pub(super) time: Timestamp,
    /// The path of discovery, in Heritrix notation.
    pub(super) hops: String,
    pub(super) fetched: FetchedResponse,
    /// The text of an HTML document or a stylesheet. It is dropped before the exchange waits for the archive.
    pub(super) document: Option<DocumentText>,
    /// Why the document was only partly read, if so.
    pub(super) unread: Option<String>,
    /// Whether the document is large enough to be read and analysed separately ([`links::read_small_text`]).
    pub(super) is_large: bool,
    /// Its links. If `None`, the archive extracts them.
    pub(super) links: Option<PageLinks>,
    /// The rendered document, if a browser rendered it.
    pub(super) dom: Option<String>,
    /// The actions of the browser in the page, in words.
    pub(super) actions: Vec<String>,
    /// Its WARC records, compressed in parallel by the fetching threads.
    pub(super) records: Option<CompressedRecords>,
    /// Replaces the payload of a version that is not worth indexing (`keep = "important"`).
    pub(super) left_out: Option<LeftOutVersion>,
}

impl FetchedExchange {
    pub(super) fn new(
        url: String,
        time: Timestamp,
        hops: String,
        fetched: FetchedResponse,
    ) -> FetchedExchange {
        FetchedExchange {
            url,
            time,
            hops,
            fetched,
            document: None,
            unread: None,
            is_large: false,
            links: None,
            dom: None,
            actions: Vec::new(),
            records: None,
            left_out: None,
        }
    }

    /// Decodes the document if it may have links. Returns false for a large document unless `is_large` is set.
    pub(super) fn read_document(&mut self) -> bool {
        if !links::has_links(&self.fetched.head) {
            return true;
        }
        let Ok(body) = self.fetched.body.prefix(links::MAX_STORED_BYTES as usize) else { return true };
        self.document = match self.is_large {
            true => Some(links::read_text(&self.fetched.head, &*body)),
            false => links::read_small_text(&self.fetched.head, &*body),
        };
        let cut = self.document.as_ref().and_then(|document| document.cut.as_ref());
        self.unread = cut.map(|cut| cut.to_string());
        self.document.is_some()
    }

    /// The text of a delivered HTML page.
    pub(super) fn html(&self) -> Option<&str> {
        let document = self.document.as_ref()?;
        links::is_html(&self.fetched.head).then_some(document.text.as_str())
    }

    /// Computes digests and compresses on the fetching thread. If that fails, the archive does it.
    pub(super) fn compress(&mut self, compression: Compression) {
        self.records =
            self.with_exchange(None, |exchange| CompressedRecords::of(&exchange, compression).ok().flatten());
    }

    /// Calls `with` on the exchange in the archive's form.
    pub(super) fn with_exchange<R>(
        &mut self,
        links: Option<PageLinks>,
        with: impl FnOnce(Exchange<'_>) -> R,
    ) -> R {
        let millis = self.fetched.took.as_millis().to_string();
        let dom_uri = format!("{RENDERED_PREFIX}{}", self.url);
        let content_type = "text/html; charset=utf-8";
        let derived: Vec<DerivedResource<'_>> = self
            .dom
            .iter()
            .map(|dom| DerivedResource { uri: &dom_uri, content_type, bytes: dom.as_bytes() })
            .collect();
        let mut metadata = vec![("fetchTimeMs", millis.as_str()), (HOPS, &self.hops)];
        metadata.extend(self.actions.iter().map(|action| (ACTION, action.as_str())));
        with(Exchange {
            url: &self.url,
            time: self.time,
            ip: self.fetched.address.map(|address| address.ip()),
            request_head: &self.fetched.request_head,
            request_body: &self.fetched.request_body,
            response_head: self.fetched.head.as_bytes(),
            body: match &mut self.fetched.body {
                FetchedBody::Memory(bytes) => ExchangeBody::Bytes(bytes),
                FetchedBody::Spooled(file, _) => ExchangeBody::Spooled(file.as_file()),
            },
            truncated: self.fetched.truncation,
            metadata: &metadata,
            derived: &derived,
            links,
        })
    }

    /// What remains of the exchange after archiving.
    pub(super) fn into_stored(self, appended: AppendOutcome) -> StoredExchange {
        let fetched = &self.fetched;
        let field = |name: &str| fetched.head.get(name).map(|value| value.into_owned());
        StoredExchange {
            time: Timestamp::from_secs(self.time.as_secs()),
            status: fetched.status(),
            body_bytes: fetched.body.len(),
            truncation: fetched.truncation,
            validators: Validators { etag: field("ETag"), last_modified: field("Last-Modified") },
            retry_after: field("Retry-After"),
            unread: self.unread,
            actions: self.actions,
            is_large: self.is_large,
            url: self.url,
            appended,
        }
    }
}
