//! Feeds that name a hub -> subscriptions at the hub (WebSub, W3C Recommendation of 2018).
//!
//! A state machine without effects. The driver sends the requests that [`HubSubscriptions::due`] returns, and passes
//! on requests to the callback URL. The content that a hub delivers is not used. A notification only makes the feed
//! due, so the archive contains the response of the feed's own host.

use std::collections::BTreeMap;

use sha1::Sha1;
use sha2::digest::Digest;
use sha2::{Sha256, Sha384, Sha512};
use url::{Url, form_urlencoded};

use crate::time::{Span, Timestamp};
use crate::url::PageId;

/// Maximum number of subscriptions.
const MAX_SUBSCRIPTIONS: usize = 10_000;
/// The requested lease, which is also the default if the hub names none.
const LEASE: Span = Span::from_hours(24 * 10);
/// Bounds of a lease.
const SHORTEST_LEASE: Span = Span::from_secs(300);
const LONGEST_LEASE: Span = Span::from_hours(24 * 60);
/// The wait for a hub that has not verified a subscription. It doubles with each try.
const FIRST_RETRY: Span = Span::from_secs(600);
const LONGEST_RETRY: Span = Span::from_hours(24);
/// Longer challenges are not answered.
const MAX_CHALLENGE_BYTES: usize = 4_096;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HubRequest {
    pub hub: Url,
    /// The body, form-encoded.
    pub form: String,
}

/// The result of a notification at the callback URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PushOutcome {
    /// The feed has new items.
    News(PageId),
    /// The signature is wrong or missing: the notification is ignored but not refused (WebSub 7.1).
    Unsigned,
    /// There is no such subscription.
    Unknown,
}

#[derive(Clone, Debug)]
struct HubSubscription {
    page: PageId,
    topic: String,
    hub: Url,
    secret: String,
    /// When to send the next request to the hub.
    request_at: Timestamp,
    n_tries: u32,
    /// The end of the lease, once the hub has verified it.
    until: Option<Timestamp>,
}

/// All subscriptions of a crawl, by the tokens at the end of their callback URLs.
pub struct HubSubscriptions {
    callback: Url,
    by_token: BTreeMap<String, HubSubscription>,
    by_page: BTreeMap<PageId, String>,
}

impl HubSubscriptions {
    /// `callback` is the URL at which hubs reach this crawl. Each subscription appends its token.
    pub fn new(mut callback: Url) -> HubSubscriptions {
        if !callback.path().ends_with('/') {
            let path = format!("{}/", callback.path());
            callback.set_path(&path);
        }
        HubSubscriptions { callback, by_token: BTreeMap::new(), by_page: BTreeMap::new() }
    }

    /// Requests a subscription for a feed that names a hub. `token` and `secret` must be unguessable. They are used
    /// if the subscription is new or the hub has changed.
    pub fn want(&mut self, page: PageId, topic: &str, hub: &Url, token: &str, secret: &str, now: Timestamp) {
        if let Some(known) = self.by_page.get(&page) {
            let is_same = |known: &HubSubscription| known.topic == topic && known.hub == *hub;
            if self.by_token.get(known).is_some_and(is_same) {
                return;
            }
            self.by_token.remove(known);
        }
        if self.by_token.len() >= MAX_SUBSCRIPTIONS {
            return;
        }
        self.by_page.insert(page, token.to_owned());
        let subscription = HubSubscription {
            page,
            topic: topic.to_owned(),
            hub: hub.clone(),
            secret: secret.to_owned(),
            request_at: now,
            n_tries: 0,
            until: None,
        };
        self.by_token.insert(token.to_owned(), subscription);
    }

    /// The number of active subscriptions.
    pub fn n_active(&self, now: Timestamp) -> usize {
        self.by_token.values().filter(|known| known.until.is_some_and(|until| until > now)).count()
    }

    /// The next request that is due. It counts as a try until the hub verifies the subscription.
    pub fn due(&mut self, now: Timestamp) -> Option<HubRequest> {
        let (token, known) = self.by_token.iter_mut().find(|(_, known)| known.request_at <= now)?;
        let wait = FIRST_RETRY.as_millis().saturating_mul(1 << known.n_tries.min(10));
        known.request_at = now + Span::from_millis(wait.min(LONGEST_RETRY.as_millis()));
        known.n_tries = known.n_tries.saturating_add(1);
        let callback = self.callback.join(token).ok()?;
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("hub.mode", "subscribe")
            .append_pair("hub.topic", &known.topic)
            .append_pair("hub.callback", callback.as_str())
            .append_pair("hub.secret", &known.secret)
            .append_pair("hub.lease_seconds", &(LEASE.as_millis() / 1000).to_string())
            .finish();
        Some(HubRequest { hub: known.hub.clone(), form })
    }

    /// Verifies a request of a hub, and returns the challenge to echo if the subscription is wanted.
    pub fn verify(&mut self, token: &str, query: &str, now: Timestamp) -> Option<String> {
        let said: BTreeMap<_, _> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let known = self.by_token.get_mut(token)?;
        if said.get("hub.topic").map(String::as_str) != Some(known.topic.as_str()) {
            return None;
        }
        match said.get("hub.mode").map(String::as_str)? {
            "subscribe" => {
                let challenge = said.get("hub.challenge").filter(|text| text.len() <= MAX_CHALLENGE_BYTES)?;
                let secs = said.get("hub.lease_seconds").and_then(|secs| secs.parse::<u32>().ok());
                let lease = secs.map_or(LEASE, |secs| Span::from_secs(i64::from(secs)));
                let lease = lease.max(SHORTEST_LEASE).min(LONGEST_LEASE);
                known.until = Some(now + lease);
                // Renew when a tenth of the lease is left.
                known.request_at = now + Span::from_millis(lease.as_millis() / 10 * 9);
                known.n_tries = 0;
                Some(challenge.clone())
            }
            // The hub denied the subscription. Try again after the longest wait.
            "denied" => {
                (known.until, known.request_at) = (None, now + LONGEST_RETRY);
                Some(String::new())
            }
            // Subscriptions are never ended from here.
            _ => None,
        }
    }

    /// Checks a notification. `signature` is the field `X-Hub-Signature`.
    pub fn receive(&self, token: &str, signature: Option<&str>, body: &[u8]) -> PushOutcome {
        let Some(known) = self.by_token.get(token) else { return PushOutcome::Unknown };
        match signature.is_some_and(|signature| is_signed(signature, known.secret.as_bytes(), body)) {
            true => PushOutcome::News(known.page),
            false => PushOutcome::Unsigned,
        }
    }
}

/// Whether `method=hex` is the HMAC of a body by one of the methods of WebSub 7.1.
fn is_signed(signature: &str, secret: &[u8], body: &[u8]) -> bool {
    let Some((method, hex)) = signature.trim().split_once('=') else { return false };
    let Ok(given) = data_encoding::HEXLOWER_PERMISSIVE.decode(hex.as_bytes()) else { return false };
    let expected = match method {
        "sha1" => hmac::<Sha1>(secret, body, 64),
        "sha256" => hmac::<Sha256>(secret, body, 64),
        "sha384" => hmac::<Sha384>(secret, body, 128),
        "sha512" => hmac::<Sha512>(secret, body, 128),
        _ => return false,
    };
    // Compares all bytes, so the time reveals nothing.
    given.len() == expected.len() && given.iter().zip(&expected).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// RFC 2104.
fn hmac<D: Digest>(key: &[u8], text: &[u8], block_bytes: usize) -> Vec<u8> {
    let mut block = if key.len() > block_bytes { D::digest(key).to_vec() } else { key.to_vec() };
    block.resize(block_bytes, 0);
    let padded = |pad: u8| block.iter().map(|byte| byte ^ pad).collect::<Vec<u8>>();
    let inner = D::new().chain_update(padded(0x36)).chain_update(text).finalize();
    D::new().chain_update(padded(0x5c)).chain_update(inner).finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(1_790_000_000 + secs)
    }

    fn subscribed() -> HubSubscriptions {
        let mut all = HubSubscriptions::new(Url::parse("http://me.example/sub").unwrap());
        let hub = Url::parse("http://hub.example/").unwrap();
        all.want(PageId(7), "http://a.example/feed?x=1&y", &hub, "t0", "secret", at(0));
        all
    }

    fn verification(mode: &str, topic: &str) -> String {
        form_urlencoded::Serializer::new(String::new())
            .append_pair("hub.mode", mode)
            .append_pair("hub.topic", topic)
            .append_pair("hub.challenge", "c&1")
            .append_pair("hub.lease_seconds", "1000")
            .finish()
    }

    #[test]
    fn a_hub_is_subscribed_to_and_verifies() {
        let mut all = subscribed();
        let subscription_request = all.due(at(0)).unwrap();
        assert!(
            subscription_request.form.contains("hub.callback=http%3A%2F%2Fme.example%2Fsub%2Ft0"),
            "{}",
            subscription_request.form
        );
        assert!(
            subscription_request.form.contains("hub.topic=http%3A%2F%2Fa.example%2Ffeed%3Fx%3D1%26y"),
            "{}",
            subscription_request.form
        );
        assert_eq!(all.due(at(599)), None, "it has time to ask back");
        let topic = "http://a.example/feed?x=1&y";
        assert_eq!(all.verify("t0", &verification("subscribe", topic), at(10)).as_deref(), Some("c&1"));
        assert_eq!((all.n_active(at(11)), all.n_active(at(1011))), (1, 0));
        assert_eq!(all.due(at(900)), None);
        assert!(all.due(at(910)).is_some(), "renewed when a tenth of the lease is left");
        assert_eq!(all.verify("t1", &verification("subscribe", topic), at(10)), None, "nobody subscribed so");
        assert_eq!(all.verify("t0", &verification("subscribe", "http://b.example/"), at(10)), None);
        assert_eq!(
            all.verify("t0", &verification("unsubscribe", topic), at(10)),
            None,
            "nobody asked for that"
        );
    }

    #[test]
    fn a_silent_hub_is_requested_more_and_more_rarely() {
        let mut all = subscribed();
        let mut times = Vec::new();
        for minute in 0..4000 {
            times.extend(all.due(at(minute * 60)).map(|_| minute));
        }
        assert_eq!(times, [0, 10, 30, 70, 150, 310, 630, 1270, 2550, 3990]);
    }

    #[test]
    fn only_signed_messages_are_accepted() {
        let all = subscribed();
        // The examples of RFC 2202 and RFC 4231 verify the methods; these use different keys.
        let right =
            "sha256=".to_owned() + &data_encoding::HEXLOWER.encode(&hmac::<Sha256>(b"secret", b"news", 64));
        assert_eq!(all.receive("t0", Some(&right), b"news"), PushOutcome::News(PageId(7)));
        for wrong in [
            None,
            Some("sha256=00"),
            Some("md5=00"),
            Some("sha1="),
            Some(right.replace("sha256", "sha1").as_str()),
        ] {
            assert_eq!(all.receive("t0", wrong, b"news"), PushOutcome::Unsigned, "{wrong:?}");
        }
        assert_eq!(all.receive("t0", Some(&right), b"other news"), PushOutcome::Unsigned);
        assert_eq!(all.receive("t1", Some(&right), b"news"), PushOutcome::Unknown);
    }

    #[test]
    fn hmac_is_that_of_the_standards() {
        let hex = |bytes: Vec<u8>| data_encoding::HEXLOWER.encode(&bytes);
        let (key, text) = (&b"Jefe"[..], &b"what do ya want for nothing?"[..]);
        assert_eq!(hex(hmac::<Sha1>(key, text, 64)), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
        assert_eq!(
            hex(hmac::<Sha256>(key, text, 64)),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert!(
            hex(hmac::<Sha512>(key, text, 128))
                .starts_with("164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd6")
        );
        assert_eq!(
            hex(hmac::<Sha1>(&[0xaa; 80], b"Test Using Larger Than Block-Size Key - Hash Key First", 64)),
            "aa4ae5e15272d00e95705637ce8a3b55ed402112"
        );
    }

    #[test]
    fn another_hub_is_another_subscription() {
        let mut all = subscribed();
        let hub = Url::parse("http://other.example/").unwrap();
        all.want(PageId(7), "http://a.example/feed?x=1&y", &hub, "t1", "secret", at(5));
        assert_eq!(all.receive("t0", None, b""), PushOutcome::Unknown, "the former one has ended");
        assert_eq!(all.due(at(5)).unwrap().hub, hub);
        all.want(PageId(7), "http://a.example/feed?x=1&y", &hub, "t2", "secret", at(6));
        assert_eq!(all.due(at(6)), None, "the same is not asked for twice");
    }

    proptest! {
        /// Nothing sent to the callback URL is trusted without the secret.
        #[test]
        fn requests_without_the_secret_are_ignored(token in "t0|[a-z0-9]{0,8}", query in "[ -~]{0,80}", signature in "(sha1|sha256)=[0-9a-f]{0,64}|\\PC{0,40}") {
            let mut all = subscribed();
            prop_assert_eq!(all.verify(&token, &query, at(1)), None);
            prop_assert!(!matches!(all.receive(&token, Some(&signature), b"x"), PushOutcome::News(_)));
        }
    }
}
